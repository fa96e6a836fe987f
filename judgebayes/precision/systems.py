r"""Answers about systems: success rates, who wins, and their order, from judges and labels.

Beside the posterior of `Impression`, three answers that use one panel score per item (the mean of
its judges' votes, or any other) and labels of some items drawn at random:

- labels only, the mean of the labels;
- Rogan and Gladen's correction of the mean score, with the delta method's variance;
- prediction-powered inference (Angelopoulos et al. 2023; the power tuning of PPI++, 2023),

.. math:: \hat\theta = \bar y_n + \hat\lambda (\bar f_N - \bar f_n), \qquad
          \hat\lambda = \frac{\mathrm{Cov}(y, f)}{(1 + n/N) \mathrm{Var}(f)}

with f the scores, n labelled and N unlabelled items. A win rate of A over B is the success rate of
the pairs' label "A is better". `groups` are what items share (a program, a question): variances
are then sums over groups, because items of a group err together.
"""

import numpy as np
from jaxtyping import Bool, Float, Int

from judgebayes.errors import JudgeBayesError
from judgebayes.precision.impression import FittedImpression
from judgebayes.significance import Interval

__all__ = ["labels_only", "order_probabilities", "prediction_powered", "rogan_gladen_interval"]

Z90 = 1.6448536269514722


def _variance(
    residual: Float[np.ndarray, " item"], groups: Int[np.ndarray, " item"] | None
) -> float:
    """Return the variance of a mean of items whose residuals are given, by groups."""
    n = len(residual)
    which = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]
    sums = np.bincount(which, weights=residual - residual.mean())
    count = len(sums)
    if count < 2:
        raise JudgeBayesError("An interval needs labelled items of at least two groups.")
    return float(count / (count - 1) * (sums**2).sum() / n**2)


def _interval(mean: float, variance: float, z: float) -> Interval:
    half = z * float(np.sqrt(variance))
    return Interval(mean, mean - half, mean + half)


def _split(
    scores: Float[np.ndarray, " item"], labels: Int[np.ndarray, " item"]
) -> Bool[np.ndarray, " item"]:
    known = np.asarray(labels) >= 0
    if not known.any():
        raise JudgeBayesError("No item is labelled; a success rate needs some labels.")
    if not np.isfinite(scores).all():
        raise JudgeBayesError(
            f"Item {int(np.argmax(~np.isfinite(scores)))} has no score: leave out items that no "
            "judge voted on."
        )
    return known


def labels_only(
    labels: Int[np.ndarray, " item"],
    groups: Int[np.ndarray, " item"] | None = None,
    *,
    z: float = Z90,
) -> Interval:
    """Return the share of valid items among the labelled ones, with its interval."""
    known = np.asarray(labels) >= 0
    y = np.asarray(labels)[known].astype(float)
    return _interval(float(y.mean()), _variance(y, None if groups is None else groups[known]), z)


def prediction_powered(
    scores: Float[np.ndarray, " item"],
    labels: Int[np.ndarray, " item"],
    groups: Int[np.ndarray, " item"] | None = None,
    *,
    power: float | None = None,
    z: float = Z90,
) -> Interval:
    """Return the prediction-powered success rate; `power` is lambda, tuned if not given.

    Raises
    ------
    JudgeBayesError
        If no item is labelled, or none is unlabelled, or a score is missing.
    """
    known = _split(scores, labels)
    if known.all():
        raise JudgeBayesError("Every item is labelled; labels_only is the answer.")
    y, f, rest = np.asarray(labels)[known].astype(float), scores[known], scores[~known]
    if power is None:
        spread = float(np.var(np.concatenate([f, rest]), ddof=0))
        joint = float(((f - f.mean()) * (y - y.mean())).mean())
        power = joint / ((1 + len(f) / len(rest)) * spread) if spread > 0 else 0.0
    mean = power * rest.mean() + (y - power * f).mean()
    own, other = (None, None) if groups is None else (groups[known], groups[~known])
    variance = _variance(y - power * f, own) + _variance(power * rest, other)
    return _interval(float(mean), variance, z)


def rogan_gladen_interval(
    scores: Float[np.ndarray, " item"],
    labels: Int[np.ndarray, " item"],
    groups: Int[np.ndarray, " item"] | None = None,
    *,
    z: float = Z90,
) -> Interval:
    r"""Return Rogan and Gladen's success rate of the unlabelled items, by the delta method.

    .. math:: \hat g = (\bar f - \bar f_0) / (\bar f_1 - \bar f_0)

    with :math:`\bar f_1` and :math:`\bar f_0` the mean scores of the labelled valid and invalid
    items. The interval is not clipped: beyond [0, 1] it says that the judges know too little.

    Raises
    ------
    JudgeBayesError
        If valid or invalid items are missing among the labelled ones.
    """
    known = _split(scores, labels)
    labels = np.asarray(labels)
    parts = [~known, labels == 1, labels == 0]
    for name, part in zip(("unlabelled", "valid", "invalid"), parts, strict=True):
        if not part.any():
            raise JudgeBayesError(f"No item is {name}; Rogan and Gladen's correction needs some.")
    means = [float(scores[p].mean()) for p in parts]
    reach = means[1] - means[2]
    g = (means[0] - means[2]) / reach
    slopes = (1 / reach, -g / reach, (g - 1) / reach)
    variance = sum(
        slope**2 * _variance(scores[p], None if groups is None else groups[p])
        for slope, p in zip(slopes, parts, strict=True)
    )
    return _interval(g, variance, z)


def order_probabilities(
    fit: FittedImpression, draws: int = 4000
) -> Float[np.ndarray, "generator generator"]:
    """Return the probability that each generator (row) is better than each other (column).

    From joint draws, in which what two generators share, the judges, cancels. The diagonal is 1/2.
    """
    drawn = np.asarray(fit.draws(draws))
    above = (drawn[:, :, None] > drawn[:, None, :]).mean(0)
    return above + 0.5 * (drawn[:, :, None] == drawn[:, None, :]).mean(0)
