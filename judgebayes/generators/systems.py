r"""Success rates and win rates of systems, from judges and labels.

Beside the posterior of `Panel`, there are two estimators. They use one panel score per item (the
mean of its judges' votes, or any other) and labels of some items drawn at random:

- labels only: the mean of the labels;
- prediction-powered inference (Angelopoulos et al. 2023; the power tuning of PPI++, 2023),

.. math:: \hat\theta = \bar y_n + \hat\lambda (\bar f_N - \bar f_n), \qquad
          \hat\lambda = \frac{\mathrm{Cov}(y, f)}{(1 + n/N) \mathrm{Var}(f)}

with f the scores, n labelled and N unlabelled items. Every estimate comes with its *influence*, the
first-order effect of each item on it. The covariance of two estimates is

.. math:: \mathrm{Cov}(\hat\theta_a, \hat\theta_b) = \sum_g \psi_{ag} \psi_{bg}, \qquad
          \psi_{ag} = \sum_{i \in g} \psi_{ai}

over the groups that items share (a program, a question), whose errors are correlated within a system
and between systems. A win rate of A over B is the success rate of their pairs, whose label is "A is
better".

When a simple estimator breaks: conditions to check before its result is used.

Each function takes the same data as the estimator and returns whether the estimate, or its interval, can
be used.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from judgebayes.arrays import ItemFloats, ItemInts
from judgebayes.errors import JudgeBayesError
from judgebayes.generators.counts import PrecisionCounts
from judgebayes.generators.own_labels import LEAST, panel_youden

_Known = Float[np.ndarray, " labelled"]
_Rest = Float[np.ndarray, " rest"]


class Rate(NamedTuple):
    """A success rate, the influence of each item on it, and which items are labelled."""

    value: float
    influence: ItemFloats
    labelled: ItemInts
    """1 for labelled items, 0 for the others; the influences of each part are centred separately."""


def labels_only(labels: ItemInts) -> Rate:
    """Return the mean of the labels (1 valid, 0 invalid, -1 unknown) with each item's influence."""
    truth = labels[labels >= 0].astype(float)
    return answer_of(float(truth.mean()), labels, (truth - truth.mean()) / len(truth))


def prediction_powered(scores: ItemFloats, labels: ItemInts, power: float) -> Rate:
    """Return the prediction-powered success rate with the influence of every item.

    Parameters
    ----------
    scores
        The panel's score of every item.
    labels
        1 valid, 0 invalid, -1 unknown; some are known, and some are not.
    power
        Lambda, the weight of the scores (`tuned_power`, `stable_power`).
    """
    y, f, rest = parted(scores, labels)
    residual = y - power * f
    on_labelled = (residual - residual.mean()) / len(y)
    value = float(power * rest.mean() + residual.mean())
    return answer_of(value, labels, on_labelled, power * (rest - rest.mean()) / len(rest))


def parted(scores: ItemFloats, labels: ItemInts) -> tuple[_Known, _Known, _Rest]:
    """Return the known labels as numbers, their items' scores, and the scores of the other items."""
    known = labels >= 0
    return labels[known].astype(float), scores[known], scores[~known]


def answer_of(
    value: float, labels: ItemInts, on_labelled: _Known, on_rest: _Rest | float = 0.0
) -> Rate:
    """Return an estimate with its influences, given by part, in the order of the items."""
    influence, known = np.zeros(len(labels)), labels >= 0
    influence[known], influence[~known] = on_labelled, on_rest
    return Rate(value, influence, known.astype(int))


def tuned_power(scores: ItemFloats, labels: ItemInts) -> float:
    """Return the weight of the scores that minimises the variance; 0 if all scores are equal."""
    y, f, rest = parted(scores, labels)
    spread = float(np.var(np.concatenate([f, rest]), ddof=0))
    joint = float(((f - f.mean()) * (y - y.mean())).mean())
    return joint / ((1 + len(f) / len(rest)) * spread) if spread > 0 else 0.0


def covariance(
    answers: Sequence[Rate], groups: Sequence[Int[np.ndarray, " _"] | None] | None = None
) -> Float[np.ndarray, "system system"]:
    """Return the covariance of estimates; `groups` contains the group of each item, for each estimate.

    The same number in two estimates is the same group. Without groups every item is a separate group,
    and the estimates are independent.

    Raises
    ------
    JudgeBayesError
        If the labelled or the unlabelled items of an estimate have a single group.
    """
    group_lists = [None] * len(answers) if groups is None else list(groups)
    n_items = [len(a.influence) for a in answers]
    start = np.concatenate([[0], np.cumsum(n_items)])
    group_ids = [
        np.arange(n) + first if own_groups is None else np.asarray(own_groups)
        for n, first, own_groups in zip(n_items, start, group_lists, strict=False)
    ]
    group_index = np.unique(np.concatenate(group_ids), return_inverse=True)[1]
    sums = np.zeros((len(answers), group_index.max() + 1))
    for index, answer in enumerate(answers):
        own_groups = group_index[start[index] : start[index + 1]]
        for part in (0, 1):
            inside = (answer.labelled == part) & (answer.influence != 0)
            if not inside.any():
                continue
            count = len(np.unique(own_groups[answer.labelled == part]))
            if count < 2:
                raise JudgeBayesError("An interval needs labelled items of at least two groups.")
            scale = np.sqrt(count / (count - 1))
            sums[index] += scale * np.bincount(
                own_groups[inside], weights=answer.influence[inside], minlength=sums.shape[1]
            )
    return np.asarray(sums @ sums.T)


def mean_win_rates(
    pairs: Sequence[tuple[int, int]], n_systems: int
) -> Float[np.ndarray, "system pair"]:
    """Return the matrix M that maps win rates (first over second) to each system's mean win rate.

    A system's mean win rate is `M @ (rates - 1/2) + 1/2`; draws or a covariance of the win rates are
    transformed by M too. The mean win rates rank the systems.

    Raises
    ------
    JudgeBayesError
        If a system is in no pair.
    """
    signs = np.zeros((n_systems, len(pairs)))
    for index, (first, second) in enumerate(pairs):
        signs[first, index], signs[second, index] = 1.0, -1.0
    n_pairs = np.abs(signs).sum(1)
    if (n_pairs == 0).any():
        raise JudgeBayesError(
            f"System {int(np.argmin(n_pairs))} is in no pair, so it has no win rate."
        )
    return signs / n_pairs[:, None]


ERROR = 0.05
"""The probability outside either end of a 90 % interval."""
FEW = 5
"""A normal interval of a share needs this many labels of either class."""


def has_youden_index(counts: PrecisionCounts) -> bool:
    """Return whether the labels show that the judges' mean Youden index is at least .05.

    Rogan and Gladen's correction divides by it. It is not identified where the 90 % interval of the
    divisor (`panel_youden`) has values below .05, or where no judge voted on items of both labels.
    """
    return bool(panel_youden(counts).below(LEAST) < ERROR)


def stable_power(scores: ItemFloats, labels: ItemInts) -> tuple[float, bool]:
    """Return the tuned weight of prediction-powered inference within [0, 1], and if it was there.

    0 without labelled or unlabelled items, or if all scores are equal.

    A weight outside means that the labelled scores say otherwise than their variance allows: chance, or
    scores that fall with validity (Angelopoulos et al., PPI++, 2023, also clip it).
    """
    known = labels >= 0
    power = tuned_power(scores, labels) if known.any() and not known.all() else 0.0
    return float(np.clip(power, 0.0, 1.0)), 0.0 <= power <= 1.0


def enough_of_both(labels: ItemInts) -> bool:
    """Return whether at least 5 items are labelled valid and 5 invalid, as normal intervals need.

    With fewer, the estimated variance is near 0 by chance: with labels of one class it is 0.
    """
    return bool(min((np.asarray(labels) == 1).sum(), (np.asarray(labels) == 0).sum()) >= FEW)
