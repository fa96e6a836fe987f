"""Proper scores of a probability forecast and metrics of a decision.

Scores take one item: the log-probabilities of its classes and the index of its label. Apply them to
several items with `jax.vmap` or `mean_score`. Metrics take whole sets of items and weights, where
weight 0 equals a dropped item.

Beside them are the agreement of several annotators, decisions (the Bayes action from probabilities and
a loss matrix), and reliability: how often events happen, by bins of their predicted probability.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Bool, Float, Int

from judgebayes.arrays import AnyArray, AnyProbs, ItemCodes, ItemValues, Labels, Weights
from judgebayes.compiled.float64 import in_float64, inside
from judgebayes.compiled.jit_inline import jit_inline
from judgebayes.measures.significance import share_interval


def krippendorff_alpha(counts: Int[AnyArray, "item class"] | AnyProbs) -> float:
    r"""Return Krippendorff's alpha of nominal labels, from the number of labels by item and class.

    .. math:: \alpha = 1 - \frac{D_o}{D_e}, \qquad
              D_o = \frac1n \sum_i \frac{m_i^2 - \sum_k n_{ik}^2}{m_i - 1}, \qquad
              D_e = \frac{n^2 - \sum_k n_k^2}{n (n - 1)}

    with :math:`n_{ik}` annotators who give item i the class k, :math:`m_i = \sum_k n_{ik}` and n the
    labels of items with at least two. It is 1 if all agree and about 0 if they agree by chance; NaN if
    no item has two labels, or if all labels are the same (Krippendorff 2011, "Computing Krippendorff's
    alpha-reliability").

    Examples
    --------
    >>> import numpy as np
    >>> from judgebayes.measures.scores import krippendorff_alpha
    >>> counts = np.array([[2, 0], [2, 0], [0, 2], [1, 1]])
    >>> print(round(krippendorff_alpha(counts), 2))
    0.53
    """
    counts = np.asarray(counts, float)
    size = counts.sum(1)
    counts, size = counts[size > 1], size[size > 1]
    n = size.sum()
    expected = (n**2 - (counts.sum(0) ** 2).sum()) / (n * (n - 1)) if n else 0.0
    if expected == 0:
        return float("nan")
    observed = ((size**2 - (counts**2).sum(1)) / (size - 1)).sum() / n
    return float(1 - observed / expected)


TINY = 1e-30
"""Avoids a division by zero in an empty bin."""

Score = Callable[[Float[Array, " class"], Int[Array, ""]], Float[Array, ""]]
"""A proper score: (log-probabilities of the classes, label index) -> penalty, lower is better."""


def drps(log_probs: Float[Array, " class"], label: Int[Array, ""]) -> Float[Array, ""]:
    r"""Return the discrete ranked probability score of one item (P1 eq 11).

    .. math:: \sum_{k=1}^{K-1} (F_k - 1\{y \le k\})^2, \qquad F_k = \sum_{j \le k} p_j

    Its range is 0 to K - 1. Gneiting & Raftery (2007), section 4.2.

    >>> float(drps(jnp.log(jnp.array([0.5, 0.25, 0.25])), jnp.array(0)))
    0.3125
    """
    below = jnp.cumsum(jnp.exp(log_probs))[:-1]
    is_below = label <= jnp.arange(below.shape[0])
    return jnp.sum((below - is_below) ** 2)


def nll(log_probs: Float[Array, " class"], label: Int[Array, ""]) -> Float[Array, ""]:
    r"""Return the negative log-likelihood :math:`-\log p_y` of one item, in nats.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> round(float(nll(jnp.log(jnp.array([0.5, 0.25, 0.25])), jnp.array(0))), 4)
    0.6931
    """
    return -log_probs[label]


def brier(log_probs: Float[Array, " class"], label: Int[Array, ""]) -> Float[Array, ""]:
    r"""Return the Brier score :math:`\sum_k (p_k - 1\{y = k\})^2` of one item, 0 to 2.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> float(brier(jnp.log(jnp.array([0.5, 0.25, 0.25])), jnp.array(0)))
    0.375
    """
    truth = jax.nn.one_hot(label, log_probs.shape[0], dtype=log_probs.dtype)
    return jnp.sum((jnp.exp(log_probs) - truth) ** 2)


@jit_inline()
def labelled_weight(labels: Labels, weight: Weights | None) -> ItemValues:
    """Return the item weights, 0 where the label is unknown (-1)."""
    base = jnp.ones(labels.shape, float) if weight is None else jnp.asarray(weight)
    return jnp.where(jnp.asarray(labels) >= 0, base, 0.0)


@jit_inline()
def average(values: ItemValues, weight: ItemValues) -> Float[Array, ""]:
    """Return the weighted mean. Values with weight 0 are ignored; NaN if all weights are 0."""
    return jnp.sum(jnp.where(weight > 0, values, 0.0) * weight) / jnp.sum(weight)


@in_float64
def mean_score(
    score: Score, log_probs: AnyProbs, labels: Labels, weight: Weights | None = None
) -> Float[Array, ""]:
    """Return the weighted mean of a proper score over the items whose label is known.

    Examples
    --------
    >>> import numpy as np
    >>> float(mean_score(nll, np.log([[0.5, 0.5], [0.25, 0.75]]), np.array([0, 1])))
    0.490
    """
    each = jax.vmap(score)(jnp.asarray(log_probs), jnp.maximum(jnp.asarray(labels), 0))
    return average(each, labelled_weight(labels, weight))


@in_float64
@jit_inline()
def mae(decisions: Labels, labels: Labels, weight: Weights | None = None) -> Float[Array, ""]:
    r"""Return the mean absolute error :math:`|\hat y - y|` in class steps (P1 eq 1).

    Examples
    --------
    >>> import numpy as np
    >>> float(mae(np.array([0, 1, 2]), np.array([2, 1, 2])))
    0.667
    """
    return average(
        jnp.abs(jnp.asarray(decisions) - labels).astype(float), labelled_weight(labels, weight)
    )


@in_float64
@jit_inline()
def accuracy(decisions: Labels, labels: Labels, weight: Weights | None = None) -> Float[Array, ""]:
    """Return the share of items whose decision is the label (P1: pairwise accuracy).

    Examples
    --------
    >>> import numpy as np
    >>> float(accuracy(np.array([0, 1, 1]), np.array([0, 1, 0])))
    0.667
    """
    return average(
        (jnp.asarray(decisions) == labels).astype(float), labelled_weight(labels, weight)
    )


def _bins(
    log_probs: AnyProbs, labels: Labels, weight: Weights | None, bins: int
) -> tuple[Float[Array, " bin"], Float[Array, " bin"], Float[Array, " bin"]]:
    """Return mass, mean confidence and accuracy of the most probable class, by confidence bin."""
    w = labelled_weight(labels, weight)
    log_probs = jnp.asarray(log_probs)
    confidence = jnp.exp(log_probs.max(-1))
    right = (log_probs.argmax(-1) == labels).astype(float)
    which = jnp.clip(jnp.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)  # (low, high]
    member = jax.nn.one_hot(which, bins, dtype=float) * w[:, None]
    mass = member.sum(0)
    share = jnp.maximum(mass, TINY)
    return mass, (confidence @ member) / share, (right @ member) / share


@in_float64
@jit_inline("bins")
def ece(
    log_probs: AnyProbs, labels: Labels, weight: Weights | None = None, bins: int = 10
) -> Float[Array, ""]:
    r"""Return the expected calibration error of the most probable class.

    .. math:: \sum_b \frac{n_b}{n} |\mathrm{acc}_b - \mathrm{conf}_b|

    over equal-width confidence bins (Guo et al. 2017). Biased upwards: `ece_debiased`.

    Examples
    --------
    >>> import numpy as np
    >>> log_probs = np.log([[0.1, 0.9], [0.1, 0.9], [0.2, 0.8], [0.2, 0.8]])
    >>> round(float(ece(log_probs, np.array([1, 1, 1, 0]))), 3)
    0.2
    """
    mass, confidence, right = _bins(log_probs, labels, weight, bins)
    return jnp.sum(mass * jnp.abs(right - confidence)) / jnp.sum(mass)


@in_float64
@jit_inline("bins")
def ece_debiased(
    log_probs: AnyProbs, labels: Labels, weight: Weights | None = None, bins: int = 10
) -> Float[Array, ""]:
    r"""Return the root of the debiased squared calibration error (Kumar et al. 2019, eq 6).

    .. math:: \sum_b \frac{n_b}{n}
              \left[(\mathrm{acc}_b - \mathrm{conf}_b)^2
              - \frac{\mathrm{acc}_b (1 - \mathrm{acc}_b)}{n_b - 1}\right]

    over bins with more than one item. The estimate of the squared error is unbiased and can be negative
    by chance; the root keeps its sign, so that averages over splits stay near the truth. Note the
    scale: a root mean square is at least the mean absolute error that `ece` estimates.
    """
    mass, confidence, right = _bins(log_probs, labels, weight, bins)
    noise = right * (1 - right) / jnp.maximum(mass - 1, TINY)
    squared = jnp.where(mass > 1, mass * ((right - confidence) ** 2 - noise), 0.0)
    total = squared.sum() / jnp.where(mass > 1, mass, 0.0).sum()
    return jnp.sign(total) * jnp.sqrt(jnp.abs(total))


TIE_TOLERANCE = 1e-9
"""Risks closer than this are tied, so that rounding does not decide."""

Loss = Float[AnyArray, "action class"]


def absolute_loss(n_classes: int) -> Float[np.ndarray, "action class"]:
    """Return the loss ``|a - y|`` in class steps, whose Bayes action is the median (P1 eq 6).

    Examples
    --------
    >>> absolute_loss(3).tolist()
    [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]
    """
    k = np.arange(n_classes)
    return np.abs(k[:, None] - k[None, :]).astype(float)


def zero_one_loss(n_classes: int) -> Float[np.ndarray, "action class"]:
    """Return the loss 1{a != y}, whose Bayes action is the mode.

    Examples
    --------
    >>> zero_one_loss(2).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    return 1.0 - np.eye(n_classes)


@in_float64
@jit_inline()
def risk(log_probs: Float[AnyArray, "*item class"], loss: Loss) -> Float[Array, "*item action"]:
    r"""Return the expected loss :math:`R(a) = \sum_y L(a, y) p(y)` of every action (P1 eq 6).

    Examples
    --------
    >>> import numpy as np
    >>> print(risk(np.log([[0.2, 0.5, 0.3]]), absolute_loss(3)).round(2))
    [[1.1 0.5 0.9]]
    """
    return jnp.exp(jnp.asarray(log_probs)) @ jnp.asarray(loss).T


@in_float64
@jit_inline()
def bayes_action(log_probs: Float[AnyArray, "*item class"], loss: Loss) -> Int[Array, "*item"]:
    """Return the action of least risk (P1 eq 7); ties go to the middle, see `middle_most`.

    Examples
    --------
    >>> import numpy as np
    >>> log_probs = np.log([[0.2, 0.3, 0.5], [0.4, 0.2, 0.4]])
    >>> bayes_action(log_probs, absolute_loss(3)).tolist()
    [1, 1]
    >>> bayes_action(log_probs, zero_one_loss(3)).tolist()
    [2, 0]
    """
    log_probs, loss = jnp.asarray(log_probs), jnp.asarray(loss)
    if loss.shape == (2, 2):
        return _second_of_two(log_probs[..., 1] - log_probs[..., 0], loss).astype(int)
    risks = inside(risk)(log_probs, loss)
    return middle_most(risks <= risks.min(-1, keepdims=True) + TIE_TOLERANCE)


@in_float64
@jit_inline()
def decide(log_probs: AnyProbs, loss: Loss) -> tuple[ItemCodes, ItemValues]:
    """Return the action of least risk on every item, as `bayes_action` does, and that risk."""
    decisions = inside(bayes_action)(log_probs, loss)
    return decisions, inside(risk)(log_probs, loss)[jnp.arange(len(log_probs)), decisions]


def _second_of_two(margin: Float[Array, "*item"], loss: Loss) -> Bool[Array, "*item"]:
    """Return whether the second of two actions has less risk; a tie goes to the first.

    The gain of the second action is a + (b - a) p with the probability p of the second class. The
    threshold of p, and so of the log-odds (`margin`), is the same for all items.
    """
    a, b = loss[0, 0] - loss[1, 0], loss[0, 1] - loss[1, 1]
    p = jnp.clip((TIE_TOLERANCE - a) / jnp.where(a == b, 1.0, b - a), 0.0, 1.0)
    limit = jnp.log(p) - jnp.log1p(-p)
    largest = np.finfo(float).max
    finite = jnp.clip(margin, -largest, largest)  # an infinite limit is passed by all, or by none
    passed = jnp.where(b > a, finite > limit, finite < limit)
    return jnp.where(a == b, a > TIE_TOLERANCE, passed)


@jit_inline()
def middle_most(tied: Bool[Array, "*item class"]) -> Int[Array, "*item"]:
    """Return which of several tied classes is chosen.

    This is the class nearest to the centre of the tied ones; of two equally near, the one nearer to
    the middle of the scale; of two equally near to both, the lower. Mirroring the classes mirrors the
    result, except in that last case (an even number of classes, tied around the middle).

    >>> middle_most(jnp.array([[True, False, True], [False, True, True]])).tolist()
    [0, 1]
    """
    n_classes = tied.shape[-1]
    k = jnp.arange(n_classes)
    lowest = jnp.argmax(tied, -1)
    highest = n_classes - 1 - jnp.argmax(tied[..., ::-1], -1)
    from_centre = jnp.abs(2 * k - (lowest + highest)[..., None])
    from_middle = jnp.abs(2 * k - (n_classes - 1))
    rank = (from_centre * n_classes + from_middle) * n_classes + k
    return jnp.argmin(jnp.where(tied, rank, n_classes**3), -1)


SAME = 1e-12
"""Confidences within this distance count as equal."""


class Reliability(NamedTuple):
    """A reliability diagram: the mass of each bin, and its mean probability and frequency."""

    mass: Float[Array, " bin"]
    predicted: Float[Array, " bin"]
    observed: Float[Array, " bin"]


def answers(log_probs: AnyProbs, labels: Labels) -> tuple[ItemValues, ItemValues]:
    """Return the confidence of each prediction and whether it is right, a share where classes tie."""
    probs = jnp.exp(jnp.asarray(log_probs))
    confidence = probs.max(-1)
    tied: Bool[Array, "item class"] = probs >= confidence[:, None] - SAME
    hit = jnp.take_along_axis(tied, jnp.maximum(jnp.asarray(labels), 0)[:, None], 1)[:, 0]
    return confidence, hit / tied.sum(-1)


@in_float64
@jit_inline("bins", "of")
def reliability(
    log_probs: AnyProbs,
    labels: Labels,
    *,
    bins: int = 15,
    of: int | None = None,
) -> Reliability:
    """Return mean probability and frequency by equal-width bins (low, high] (P2 App. H.15).

    For the probability of the most probable class, and how often it is the label; with `of`, for that
    class instead. Both are 0 in an empty bin.
    """
    w = labelled_weight(labels, None)
    if of is None:
        probability, happened = answers(log_probs, labels)
    else:
        probability = jnp.exp(jnp.asarray(log_probs)[:, of])
        happened = (jnp.asarray(labels) == of).astype(float)
    which = jnp.clip(jnp.ceil(probability * bins - SAME).astype(int) - 1, 0, bins - 1)
    member = jax.nn.one_hot(which, bins, dtype=float) * w[:, None]
    mass = member.sum(0)
    share = jnp.maximum(mass, TINY)
    return Reliability(mass, (probability @ member) / share, (happened @ member) / share)


def confidence_bins(
    log_probs: Float[np.ndarray, "answer class"],
    labels: Int[np.ndarray, " answer"],
    items: Int[np.ndarray, " answer"],
    groups: Int[np.ndarray, " all_items"] | None = None,
    *,
    bins: int = 10,
    level: float = 0.95,
) -> pd.DataFrame:
    """Return how often the most probable class is right, by bins of its probability, lowest first.

    Bins without a prediction are left out. `items` is the item of each prediction: in the interval, an
    item, or a group of items, counts once however often it occurs.

    Returns
    -------
    A row for each bin: `place` (of n bins, it spans place / n to (place + 1) / n), the number of its
    distinct `items`, its `share` of all predictions, their mean probability (`predicted`), and the share
    of right ones (`right`) with its interval (`low`, `high`).
    """
    confidence = np.exp(log_probs).max(1)
    each = pd.DataFrame(
        {
            "place": np.clip(np.ceil(confidence * bins - SAME).astype(int) - 1, 0, bins - 1),
            "item": items,
            "unit": items if groups is None else groups[items],
            "predicted": confidence,
            "right": log_probs.argmax(1) == labels,
        }
    )
    table = each.groupby("place", as_index=False).agg(
        items=("item", "nunique"),
        units=("unit", "nunique"),
        share=("item", lambda own: len(own) / len(each)),
        predicted=("predicted", "mean"),
        right=("right", "mean"),
    )
    right, units = (table[name].to_numpy(float) for name in ("right", "units"))
    low, high = share_interval(right * units, units, level=level)
    return table.drop(columns="units").assign(low=low, high=high)
