"""Selective prediction: accuracy at a coverage, its curve, and the effect of a confidence threshold.

Items are accepted in the order of their confidence, the probability of the most probable class. Items
of equal confidence are accepted in equal parts, as by a random order on average, because few distinct
votes make many ties and the order in a file must not matter. Among tied classes, one is guessed.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from judgebayes.arrays import AnyArray, Scalar
from judgebayes.compiled.float64 import in_float64
from judgebayes.compiled.jit_inline import jit_inline
from judgebayes.measures.scores import SAME, answers, average, labelled_weight


class AccuracyCurve(NamedTuple):
    """Share of accepted items, the most confident first, and the accuracy on them."""

    coverage: Float[Array, " item"]
    accuracy: Float[Array, " item"]


class Kept(NamedTuple):
    """The effect of a threshold on the confidence."""

    share: Float[Array, ""]
    accuracy: Float[Array, ""]
    """On the accepted items; NaN if there are none."""


class _Sorted(NamedTuple):
    """Cumulative weight and cumulative right predictions, ties divided evenly; both start at 0."""

    weight: Float[Array, " step"]
    right: Float[Array, " step"]


@jit_inline()
def _sorted(
    log_probs: Float[AnyArray, "item class"],
    labels: Int[AnyArray, " item"],
    weight: Float[AnyArray, " item"] | None,
) -> _Sorted:
    w = labelled_weight(labels, weight)
    confidence, right = answers(log_probs, labels)
    order = jnp.argsort(-confidence)
    doubt, w = -confidence[order], w[order]
    zero = jnp.zeros(1)
    mass = jnp.concatenate([zero, w.cumsum()])
    hits = jnp.concatenate([zero, jnp.where(w > 0, w * right[order], 0.0).cumsum()])
    # Within a block of equal confidence, right predictions accumulate at a constant rate.
    begin = jnp.searchsorted(doubt, doubt - SAME, side="left")
    end = jnp.searchsorted(doubt, doubt + SAME, side="right")
    block = mass[end] - mass[begin]
    rate = (hits[end] - hits[begin]) / jnp.where(block > 0, block, 1.0)
    return _Sorted(mass, jnp.concatenate([zero, (w * rate).cumsum()]))


@in_float64
@jit_inline()
def accuracy_at_coverage(
    log_probs: Float[AnyArray, "item class"],
    labels: Int[AnyArray, " item"],
    coverage: Scalar,
    weight: Float[AnyArray, " item"] | None = None,
) -> Float[Array, ""]:
    """Return the accuracy on the most confident share `coverage` (above 0, up to 1) of the items.

    Examples
    --------
    >>> import numpy as np
    >>> log_probs = np.log([[0.1, 0.9], [0.8, 0.2], [0.4, 0.6], [0.45, 0.55]])
    >>> float(accuracy_at_coverage(log_probs, np.array([1, 0, 0, 0]), 0.5))
    1.0
    """
    mass, right = _sorted(log_probs, labels, weight)
    accepted = coverage * mass[-1]
    return jnp.interp(accepted, mass, right) / accepted


@in_float64
@jit_inline()
def auac(
    log_probs: Float[AnyArray, "item class"],
    labels: Int[AnyArray, " item"],
    weight: Float[AnyArray, " item"] | None = None,
) -> Float[Array, ""]:
    r"""Return the area under the accuracy-coverage curve (P2 App. H.14).

    .. math:: \int_0^1 \mathrm{acc}(c)\, dc, \qquad \mathrm{acc}(c) = R(c) / c

    with the right predictions R among the accepted share c. R is linear on each block of equal
    confidence, so the integral is exact: :math:`a (c_2 - c_1) + (R_1 - a c_1) \log(c_2 / c_1)` on a
    block with the rate a.
    """
    mass, right = _sorted(log_probs, labels, weight)
    c, r = mass / mass[-1], right / mass[-1]
    width = c[1:] - c[:-1]
    rate = (r[1:] - r[:-1]) / jnp.where(width > 0, width, 1.0)
    before = jnp.where(c[:-1] > 0, c[:-1], 1.0)
    growth = jnp.where((c[:-1] > 0) & (width > 0), jnp.log1p(width / before), 0.0)
    return jnp.sum(rate * width + (r[:-1] - rate * c[:-1]) * growth)


@in_float64
@jit_inline()
def kept_at_confidence(
    log_probs: Float[AnyArray, "item class"],
    labels: Int[AnyArray, " item"],
    confidence: Scalar,
    weight: Float[AnyArray, " item"] | None = None,
) -> Kept:
    """Return the share of items with at least this confidence, and the accuracy on them.

    P2 Appendix H.14. Computed over the labelled items.
    """
    w = labelled_weight(labels, weight)
    own_confidence, right = answers(log_probs, labels)
    accepted = own_confidence >= confidence - SAME
    return Kept(average(accepted.astype(float), w), average(right, jnp.where(accepted, w, 0.0)))
