r"""Answers about systems: success rates, who wins, and their order, from judges and labels.

Beside the posterior of `Impression`, three answers that use one panel score per item (the mean of
its judges' votes, or any other) and labels of some items drawn at random:

- labels only, the mean of the labels;
- Rogan and Gladen's correction of the mean score,
  :math:`\hat\theta = (\bar f - \bar f_0) / (\bar f_1 - \bar f_0)` with :math:`\bar f_1` and
  :math:`\bar f_0` the mean scores of the labelled valid and invalid items;
- prediction-powered inference (Angelopoulos et al. 2023; the power tuning of PPI++, 2023),

.. math:: \hat\theta = \bar y_n + \hat\lambda (\bar f_N - \bar f_n), \qquad
          \hat\lambda = \frac{\mathrm{Cov}(y, f)}{(1 + n/N) \mathrm{Var}(f)}

with f the scores, n labelled and N unlabelled items. Every answer comes with its *influence*, by
how much each item moves it, to first order; everything else follows from that. The covariance of
two answers is

.. math:: \mathrm{Cov}(\hat\theta_a, \hat\theta_b) = \sum_g \psi_{ag} \psi_{bg}, \qquad
          \psi_{ag} = \sum_{i \in g} \psi_{ai}

over the groups that items share (a program, a question), whose items err together in one system
and in all. A win rate of A over B is the success rate of their pairs, whose label is "A is better".

Labels may be wrong: with a known rate of errors :math:`\epsilon`, the same for both labels, y is
replaced by :math:`(y - \epsilon) / (1 - 2 \epsilon)`, whose mean is that of the true label.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from judgebayes.errors import JudgeBayesError
from judgebayes.generators.impression import FittedImpression
from judgebayes.measures.significance import Interval

__all__ = [
    "Answer",
    "Method",
    "covariance",
    "difference",
    "interval",
    "labels_only",
    "mean_win_rates",
    "order_probabilities",
    "prediction_powered",
    "rogan_gladen_interval",
    "success_rate",
]

Method = Literal["labels", "rogan-gladen", "prediction-powered"]


class Answer(NamedTuple):
    """A success rate, by how much each item moved it, and the part an item belongs to."""

    value: float
    influence: Float[np.ndarray, " item"]
    labelled: Int[np.ndarray, " item"]
    """1 for labelled items, 0 for the others: each part's sums are corrected for its own mean."""


def success_rate(
    method: Method,
    scores: Float[np.ndarray, " item"],
    labels: Int[np.ndarray, " item"],
    *,
    noise: float = 0.0,
    power: float | None = None,
) -> Answer:
    """Return a system's success rate with the influence of every item.

    Parameters
    ----------
    method
        Which of the three answers.
    scores
        The panel's score of every item; labels alone need none, and ignore them.
    labels
        1 valid, 0 invalid, -1 unknown.
    noise
        The share of labels that are wrong.
    power
        Lambda of prediction-powered inference, tuned if not given.

    Raises
    ------
    JudgeBayesError
        If no item is labelled, a score is missing, `noise` is not in [0, 1/2), or a method lacks
        the items it needs.
    """
    labels = np.asarray(labels)
    known = labels >= 0
    if not known.any():
        raise JudgeBayesError("No item is labelled; a success rate needs some labels.")
    if not 0 <= noise < 0.5:
        raise JudgeBayesError(
            f"A share of {noise} of the labels being wrong leaves nothing to learn from; right "
            "would be at least 0 and less than 0.5."
        )
    truth = (labels[known] - noise) / (1 - 2 * noise)
    if method == "labels":
        value, own, other = _labels(truth)
    else:
        if not np.isfinite(scores).all():
            raise JudgeBayesError(
                f"Item {int(np.argmax(~np.isfinite(scores)))} has no score: leave out items that "
                "no judge voted on."
            )
        if known.all():
            raise JudgeBayesError("Every item is labelled; the labels are the answer.")
        f, rest = np.asarray(scores, float)[known], np.asarray(scores, float)[~known]
        if method == "rogan-gladen":
            _need_both(labels)
            value, own, other = _rogan_gladen(truth, f, rest)
        else:
            value, own, other = _prediction_powered(truth, f, rest, power)
    influence = np.zeros(len(labels))
    influence[known] = own
    if other is not None:
        influence[~known] = other
    return Answer(float(value), influence, known.astype(int))


_Parts = tuple[float, Float[np.ndarray, " labelled"], Float[np.ndarray, " rest"] | None]


def _labels(y: np.ndarray) -> _Parts:
    return float(y.mean()), (y - y.mean()) / len(y), None


def _prediction_powered(
    y: np.ndarray, f: np.ndarray, rest: np.ndarray, power: float | None
) -> _Parts:
    if power is None:
        spread = float(np.var(np.concatenate([f, rest]), ddof=0))
        joint = float(((f - f.mean()) * (y - y.mean())).mean())
        power = joint / ((1 + len(f) / len(rest)) * spread) if spread > 0 else 0.0
    residual = y - power * f
    value = power * rest.mean() + residual.mean()
    return (
        float(value),
        (residual - residual.mean()) / len(y),
        power * (rest - rest.mean()) / len(rest),
    )


def _need_both(labels: np.ndarray) -> None:
    for name, label in (("valid", 1), ("invalid", 0)):
        if not (labels == label).any():
            raise JudgeBayesError(f"No item is {name}; Rogan and Gladen's correction needs some.")


def _rogan_gladen(y: np.ndarray, f: np.ndarray, rest: np.ndarray) -> _Parts:
    total, one, zero = rest.mean(), y @ f / y.sum(), (1 - y) @ f / (1 - y).sum()
    reach = one - zero
    g = (total - zero) / reach
    on_valid = -g / reach * y * (f - one) / y.sum()
    on_invalid = (g - 1) / reach * (1 - y) * (f - zero) / (1 - y).sum()
    return float(g), on_valid + on_invalid, (rest - total) / (reach * len(rest))


def covariance(
    answers: Sequence[Answer], groups: Sequence[Int[np.ndarray, " _"] | None] | None = None
) -> Float[np.ndarray, "system system"]:
    """Return the covariance of answers; `groups` tell, for each, what its items share.

    Groups of the same number in two answers are the same group. Without groups every item is its
    own, and answers are independent.

    Raises
    ------
    JudgeBayesError
        If a part of an answer's items has a single group.
    """
    given = [None] * len(answers) if groups is None else list(groups)
    n_items = [len(a.influence) for a in answers]
    start = np.concatenate([[0], np.cumsum(n_items)])
    alone = [
        np.arange(n) + first if own is None else np.asarray(own)
        for n, first, own in zip(n_items, start, given, strict=False)
    ]
    where = np.unique(np.concatenate(alone), return_inverse=True)[1]
    sums = np.zeros((len(answers), where.max() + 1))
    for place, answer in enumerate(answers):
        own = where[start[place] : start[place + 1]]
        for part in (0, 1):
            inside = (answer.labelled == part) & (answer.influence != 0)
            if not inside.any():
                continue
            count = len(np.unique(own[answer.labelled == part]))
            if count < 2:
                raise JudgeBayesError("An interval needs labelled items of at least two groups.")
            scale = np.sqrt(count / (count - 1))
            sums[place] += scale * np.bincount(
                own[inside], weights=answer.influence[inside], minlength=sums.shape[1]
            )
    return np.asarray(sums @ sums.T)


def interval(
    answer: Answer, groups: Int[np.ndarray, " item"] | None = None, *, level: float = 0.9
) -> Interval:
    """Return a success rate with its interval, 90 % unless told otherwise.

    The interval is not clipped: beyond [0, 1] it says that judges and labels know too little.
    """
    return Interval.around(answer.value, _error(covariance([answer], [groups])[0, 0]), level=level)


def difference(
    a: Answer,
    b: Answer,
    groups: tuple[Int[np.ndarray, " item"], Int[np.ndarray, " other"]] | None = None,
    *,
    level: float = 0.9,
) -> Interval:
    """Return by how much a succeeds more often than b; what their items share cancels."""
    both = covariance([a, b], groups)
    variance = both[0, 0] + both[1, 1] - 2 * both[0, 1]
    return Interval.around(a.value - b.value, _error(variance), level=level)


def _error(variance: float) -> float:
    return float(np.sqrt(max(variance, 0.0)))


def labels_only(
    labels: Int[np.ndarray, " item"],
    groups: Int[np.ndarray, " item"] | None = None,
    *,
    noise: float = 0.0,
    level: float = 0.9,
) -> Interval:
    """Return the share of valid items among the labelled ones, with its interval.

    Examples
    --------
    >>> import numpy as np
    >>> found = labels_only(np.array([1, 1, 0, 1, -1, 1]))
    >>> print(f"{found.mean:.2f} [{found.low:.2f}, {found.high:.2f}]")
    0.80 [0.47, 1.13]
    """
    labels = np.asarray(labels)
    return interval(
        success_rate("labels", np.zeros(len(labels)), labels, noise=noise), groups, level=level
    )


def prediction_powered(
    scores: Float[np.ndarray, " item"],
    labels: Int[np.ndarray, " item"],
    groups: Int[np.ndarray, " item"] | None = None,
    *,
    power: float | None = None,
    noise: float = 0.0,
    level: float = 0.9,
) -> Interval:
    """Return the prediction-powered success rate, as `success_rate` and `interval` do.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.array([0.9, 0.8, 0.3, 0.7, 0.9, 0.8, 0.2, 0.9])
    >>> labels = np.array([1, 1, 0, 1, -1, -1, -1, -1])
    >>> found = prediction_powered(scores, labels)
    >>> print(f"{found.mean:.2f} [{found.low:.2f}, {found.high:.2f}]")
    0.77 [0.43, 1.10]
    """
    found = success_rate("prediction-powered", scores, labels, noise=noise, power=power)
    return interval(found, groups, level=level)


def rogan_gladen_interval(
    scores: Float[np.ndarray, " item"],
    labels: Int[np.ndarray, " item"],
    groups: Int[np.ndarray, " item"] | None = None,
    *,
    noise: float = 0.0,
    level: float = 0.9,
) -> Interval:
    """Return Rogan and Gladen's success rate, as `success_rate` and `interval` do."""
    return interval(success_rate("rogan-gladen", scores, labels, noise=noise), groups, level=level)


def mean_win_rates(
    pairs: Sequence[tuple[int, int]], n_systems: int
) -> Float[np.ndarray, "system pair"]:
    """Return the map M from win rates, first over second, to each system's mean win rate.

    A system's mean win rate is `M @ rates + 1/2`, for rates less 1/2; draws or a covariance of the
    win rates go through M likewise. It puts systems in order: a ranking.

    Raises
    ------
    JudgeBayesError
        If a system is in no pair.
    """
    found = np.zeros((n_systems, len(pairs)))
    for place, (first, second) in enumerate(pairs):
        found[first, place], found[second, place] = 1.0, -1.0
    met = np.abs(found).sum(1)
    if (met == 0).any():
        raise JudgeBayesError(f"System {int(np.argmin(met))} is in no pair; it has no win rate.")
    return found / met[:, None]


def order_probabilities(
    fit: FittedImpression, draws: int = 4000
) -> Float[np.ndarray, "generator generator"]:
    """Return the probability that each generator (row) is better than each other (column).

    From joint draws, in which what two generators share, the judges, cancels. The diagonal is 1/2.
    """
    drawn = np.asarray(fit.draws(draws))
    above = (drawn[:, :, None] > drawn[:, None, :]).mean(0)
    return above + 0.5 * (drawn[:, :, None] == drawn[:, None, :]).mean(0)
