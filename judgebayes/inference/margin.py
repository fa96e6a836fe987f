r"""Scores of two classes: functions of one number an item, the margin of its label.

With s = 1 where the label is class 1 and -1 where it is class 0, the label has the probability

.. math:: p = \frac{1}{1 + e^{-m}}, \qquad m_i = s_i (z_{i1} - z_{i0}),

and the score of an item, its slope and its bend in m are all that its logits have to say: one
exponential an item, and a row of numbers for each parameter and each pair of parameters.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.lax import optimization_barrier
from jaxtyping import Array, Float, Int

from judgebayes.inference.fast.log_softmax import log1p_of_share
from judgebayes.inference.optimise import Derivatives, Differentiated
from judgebayes.measures.scores import Score, drps, nll

__all__ = ["over_margins", "symmetric"]

Items = Float[Array, " item"]


class _Curve(NamedTuple):
    """The score of every item, and its first and second derivative in the margin."""

    value: Items
    slope: Items
    bend: Items


class _Label(NamedTuple):
    """How probable every item's label is."""

    p: Items
    rest: Items
    """1 - p, without its rounding error."""
    product: Items
    """p (1 - p)."""
    surprise: Items
    """-log p, also where p is 0 in floating point."""


def over_margins(
    score: Score,
    difference: Sequence[Items],
    labels: Int[Array, " item"],
    weight: Items,
    slip: Float[Array, ""],
) -> Differentiated:
    """Return the weighted sum of a score as a function of the parameters, with two derivatives.

    Parameters
    ----------
    score
        DRPS or NLL.
    difference
        By parameter, how fast the logit of class 1 gains on that of class 0; 0 at items that do not
        count.
    labels, weight
        Class indices; items that do not count weigh 0.
    slip
        The share of wrong labels.
    """
    size = len(difference)
    sign = jnp.where(labels == 1, 1.0, -1.0)
    gains = _rows([sign * x for x in difference])
    pairs = _rows([difference[a] * difference[b] for a in range(size) for b in range(a + 1)])
    # Kept as they are: a compiler that thinks them cheap would make them anew in every pass.
    gains, pairs, weight = optimization_barrier((gains, pairs, weight))

    def weighted(slip: Array | None, margin: Items) -> tuple[Float[Array, ""], Items, Items]:
        found = _CURVES[score](_label(margin), slip)
        # Summed as it is, or what is summed runs at the speed of a library made for sums (YNNPACK);
        # and no product of vectors: values are compared to the last bit.
        values = optimization_barrier(weight * found.value)
        return values.sum(), weight * found.slope, weight * found.bend

    def at(theta: Float[Array, " parameter"]) -> Derivatives:
        margin = theta @ gains
        if score is drps:  # polynomials: right labels are no cheaper
            value, slope, bend = weighted(slip, margin)
        else:  # matrices stay outside: compilers move them about on their way into a branch
            value, slope, bend = lax.cond(
                slip == 0, partial(weighted, None), partial(weighted, slip), margin
            )
        return Derivatives(value, gains @ slope, symmetric(pairs @ bend, size))

    return at


def _rows(rows: Sequence[Items]) -> Float[Array, "row item"]:
    """Return rows as a matrix: `jnp.stack`, which over lanes has them outermost from JAX 0.11 on.

    A product with each lane's matrix would then begin by moving all numbers about.
    """
    return jnp.concatenate([row[None] for row in rows])


def symmetric(below: Float[Array, " pair"], size: int) -> Float[Array, "parameter parameter"]:
    """Return the symmetric matrix of a lower triangle, row by row."""
    lower = np.tril_indices(size)
    place = np.empty((size, size), int)
    place[lower] = place[lower[::-1]] = np.arange(len(lower[0]))
    # Not an index: over many lanes that would be a scatter.
    return jnp.stack([below[k] for k in place.ravel().tolist()]).reshape(size, size)


def _label(margin: Items) -> _Label:
    small = jnp.exp(-jnp.abs(margin))
    larger = 1 / (1 + small)
    smaller = small * larger
    ahead = margin > 0
    return _Label(
        jnp.where(ahead, larger, smaller),
        jnp.where(ahead, smaller, larger),
        smaller * larger,
        jnp.maximum(-margin, 0) + log1p_of_share(small),
    )


def _nll(label: _Label, slip: Array | None) -> _Curve:
    r"""Return the negative log-likelihood.

    With :math:`s = a p / (a p + b)`, which is 1 without noise: slope :math:`-s (1 - p)`, bend
    :math:`s p (1 - p) - s (1 - s)(1 - p)^2`.
    """
    if slip is None:
        return _Curve(label.surprise, -label.rest, label.product)
    right = jnp.log1p(-2 * slip) - label.surprise
    seen = jnp.logaddexp(right, jnp.log(slip))
    share = jnp.exp(right - seen)
    bend = share * label.product - share * (1 - share) * label.rest**2
    return _Curve(-seen, -share * label.rest, bend)


def _drps(label: _Label, slip: Array | None) -> _Curve:
    """Return the ranked probability score, of two classes the square of the label's gap."""
    slip = jnp.zeros(()) if slip is None else slip
    scale = 1 - 2 * slip
    gap = scale * label.rest + slip
    step = scale * label.product
    bend = 2 * step**2 - 2 * gap * step * (label.rest - label.p)
    return _Curve(gap**2, -2 * gap * step, bend)


_CURVES: dict[Score, Callable[[_Label, Array | None], _Curve]] = {nll: _nll, drps: _drps}
