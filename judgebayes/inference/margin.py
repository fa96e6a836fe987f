r"""Scores of two classes as functions of one number per item, the margin of its label.

With s = 1 where the label is class 1 and -1 where it is class 0, the label has the probability

.. math:: p = \frac{1}{1 + e^{-m}}, \qquad m_i = s_i (z_{i1} - z_{i0}),

and the derivatives in the parameters follow from the score of an item and its gradient and Hessian in
m: one exponential per item, and a row of numbers for each parameter and each pair of parameters.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.lax import optimization_barrier
from jaxtyping import Array, Float

from judgebayes.arrays import ItemCodes, ItemValues
from judgebayes.inference.optimise import Derivatives, Differentiated
from judgebayes.measures.scores import Score, drps, nll

Items = ItemValues


class _Curve(NamedTuple):
    """The score of every item, and its first and second derivative in the margin."""

    value: Items
    gradient: Items
    hessian: Items


class _Label(NamedTuple):
    """The probability of every item's label."""

    p: Items
    rest: Items
    """1 - p, without its rounding error."""
    product: Items
    """p (1 - p)."""
    nll: Items
    """-log p, also where p is 0 in floating point."""


def binary_score(
    score: Score,
    difference: Sequence[Items],
    labels: ItemCodes,
    weight: Items,
    flip_rate: Float[Array, ""],
) -> Differentiated:
    """Return the weighted sum of a score as a function of the parameters, with two derivatives.

    Parameters
    ----------
    score
        DRPS or NLL.
    difference
        By parameter, the derivative of the logit of class 1 minus that of class 0; 0 at items that do
        not count.
    labels, weight
        Class indices; items that do not count weigh 0.
    flip_rate
        The share of wrong labels.
    """
    size = len(difference)
    sign = jnp.where(labels == 1, 1.0, -1.0)
    margin_rows = _rows([sign * x for x in difference])
    pairs = _rows([difference[a] * difference[b] for a in range(size) for b in range(a + 1)])
    # The barrier keeps the compiler from recomputing these rows in every pass.
    margin_rows, pairs, weight = optimization_barrier((margin_rows, pairs, weight))

    def weighted(flip_rate: Array | None, margin: Items) -> tuple[Float[Array, ""], Items, Items]:
        curve = _CURVES[score](_label(margin), flip_rate)
        # The barrier keeps XLA from fusing the values into a library reduction (YNNPACK), which is
        # slow; and no dot product is used, because values are compared to the last bit.
        values = optimization_barrier(weight * curve.value)
        return values.sum(), weight * curve.gradient, weight * curve.hessian

    def at(theta: Float[Array, " parameter"]) -> Derivatives:
        margin = theta @ margin_rows
        if score is drps:  # polynomials: nothing is saved without label noise
            value, gradient, hessian = weighted(flip_rate, margin)
        else:  # matrices stay outside the branches, where compilers would copy them
            value, gradient, hessian = lax.cond(
                flip_rate == 0, partial(weighted, None), partial(weighted, flip_rate), margin
            )
        return Derivatives(value, margin_rows @ gradient, symmetric(pairs @ hessian, size))

    return at


def _rows(rows: Sequence[Items]) -> Float[Array, "row item"]:
    """Return rows as a matrix. `jnp.stack` under `vmap` puts the rows outermost from JAX 0.11 on.

    A product with each lane's matrix would then begin with a transposition.
    """
    return jnp.concatenate([row[None] for row in rows])


def symmetric(below: Float[Array, " pair"], size: int) -> Float[Array, "parameter parameter"]:
    """Return the symmetric matrix with this lower triangle, given row by row."""
    lower = np.tril_indices(size)
    place = np.empty((size, size), int)
    place[lower] = place[lower[::-1]] = np.arange(len(lower[0]))
    # No indexed update: under `vmap` that would be a scatter.
    return jnp.stack([below[k] for k in place.ravel().tolist()]).reshape(size, size)


def _label(margin: Items) -> _Label:
    small = jnp.exp(-jnp.abs(margin))
    larger = 1 / (1 + small)
    smaller = small * larger
    positive = margin > 0
    return _Label(
        jnp.where(positive, larger, smaller),
        jnp.where(positive, smaller, larger),
        smaller * larger,
        jnp.maximum(-margin, 0) + jnp.log1p(small),
    )


def _nll(label: _Label, flip_rate: Array | None) -> _Curve:
    r"""Return the negative log-likelihood.

    With :math:`s = a p / (a p + b)`, which is 1 without noise: gradient :math:`-s (1 - p)`, Hessian
    :math:`s p (1 - p) - s (1 - s)(1 - p)^2`.
    """
    if flip_rate is None:
        return _Curve(label.nll, -label.rest, label.product)
    right = jnp.log1p(-2 * flip_rate) - label.nll
    log_prob = jnp.logaddexp(right, jnp.log(flip_rate))
    share = jnp.exp(right - log_prob)
    hessian = share * label.product - share * (1 - share) * label.rest**2
    return _Curve(-log_prob, -share * label.rest, hessian)


def _drps(label: _Label, flip_rate: Array | None) -> _Curve:
    """Return the ranked probability score: for two classes, the squared error of the label's p."""
    flip_rate = jnp.zeros(()) if flip_rate is None else flip_rate
    scale = 1 - 2 * flip_rate
    gap = scale * label.rest + flip_rate
    step = scale * label.product
    hessian = 2 * step**2 - 2 * gap * step * (label.rest - label.p)
    return _Curve(gap**2, -2 * gap * step, hessian)


_CURVES: dict[Score, Callable[[_Label, Array | None], _Curve]] = {nll: _nll, drps: _drps}
