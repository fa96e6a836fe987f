"""The one way to grade a claim: evidence over items and splits, and the outcome that it gives.

Random splits share their items, so an interval over splits alone is never evidence. Evidence is a
bootstrap of both: items, or the groups that items share, and splits. A claim states its kind, its
direction and its margin before its number is seen.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from judgebayes.errors import JudgeBayesError
from judgebayes.measures.significance import Interval

Kind = Literal["paper", "audit", "proxy"]
"""Who claims it: the paper; this project; or the paper, of which an input is a stand-in here."""

Source = Literal["own", "other", "twin"]
"""The paper's own data, other real data, or data simulated from what the paper publishes."""

Outcome = Literal[
    "reproduced", "replicated", "contradicted", "consistent", "inconsistent", "uninformative"
]

_HOLDS: dict[Source, tuple[Outcome, Outcome]] = {
    "own": ("reproduced", "contradicted"),
    "other": ("replicated", "contradicted"),
    "twin": ("consistent", "inconsistent"),
}

LEVEL = 0.95
RESAMPLES = 2000


@dataclass(frozen=True, eq=False)
class Evidence:
    """An estimate with its bootstrap distribution over items, or groups of items, and splits."""

    estimate: float
    draws: Float[np.ndarray, " draw"] = field(repr=False)
    """The estimate on resampled items and splits."""
    units: int
    """Independent units: items, or groups of items."""

    @property
    def error(self) -> float:
        r"""The standard error, :math:`\sqrt{G / (G - 1)}` times the draws' spread, of G units."""
        return float(np.std(self.draws) * np.sqrt(self.units / (self.units - 1)))

    def interval(self, level: float = LEVEL) -> Interval:
        """Return the estimate with its interval, by Student's t with G - 1 degrees of freedom."""
        from scipy.stats import t as student

        half = float(student.ppf((1 + level) / 2, self.units - 1)) * self.error
        return Interval(self.estimate, self.estimate - half, self.estimate + half)

    def plus(self, constant: float) -> "Evidence":
        """Return evidence on the number plus a constant."""
        return Evidence(self.estimate + constant, self.draws + constant, self.units)

    def less(self, other: "Evidence") -> "Evidence":
        """Return the difference to evidence from the same resampled items and splits."""
        return Evidence(
            self.estimate - other.estimate,
            self.draws - other.draws,
            min(self.units, other.units),
        )


@dataclass(frozen=True)
class Claim:
    """A claim with its outcome."""

    kind: Kind
    margin: float
    interval: Interval
    outcome: Outcome


def evidence(
    values: Float[np.ndarray, "split item"],
    items: Int[np.ndarray, "split item"],
    n_items: int,
    groups: Int[np.ndarray, " all_items"] | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Evidence:
    r"""Return evidence on the mean of outcomes over splits and items.

    .. math:: \hat\theta^* = \frac{\sum_s v_s \sum_i w_{g(i)} x_{si}}{\sum_s v_s \sum_i w_{g(i)}}

    with w the counts of a bootstrap of the groups and v those of a bootstrap of the splits, both
    drawn anew for every draw (the pigeonhole bootstrap of Owen 2007, which errs on the wide side).

    Parameters
    ----------
    values
        Outcomes, such as the difference of two methods' losses; NaN counts for nothing.
    items
        Which item each outcome is on, -1 for filling.
    n_items
        How many items there are.
    groups
        What items share (a question, a program), by item; every item is its own group by default.
    resamples, seed
        Draws and their seed. Evidence of one seed on the same items is joint: see `claims`.

    Raises
    ------
    JudgeBayesError
        If there are fewer than two groups with an outcome.
    """
    use = (np.asarray(items) >= 0) & np.isfinite(values)
    names = np.arange(n_items) if groups is None else np.unique(groups, return_inverse=True)[1]
    n_groups = int(names.max(initial=-1)) + 1
    splits = len(values)
    cell = np.broadcast_to(np.arange(splits)[:, None], use.shape)[use] * n_groups
    cell = cell + names[np.asarray(items)[use]]
    shape = (splits, n_groups)
    total = np.bincount(cell, np.asarray(values)[use], minlength=splits * n_groups).reshape(shape)
    count = np.bincount(cell, minlength=splits * n_groups).reshape(shape).astype(float)

    def mean(of_splits: np.ndarray, of_groups: np.ndarray) -> np.ndarray:
        above = ((of_groups @ total.T) * of_splits).sum(1)
        below = ((of_groups @ count.T) * of_splits).sum(1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(above / below)

    units = int((count.sum(0) > 0).sum())
    _check_units(units)
    weights = _weights(splits, n_groups, resamples, seed)
    estimate = float(mean(np.ones((1, splits)), np.ones((1, n_groups)))[0])
    return Evidence(estimate, _finite(mean(*weights)), units)


def evidence_of(
    statistic: Callable[[Float[np.ndarray, " split"], Float[np.ndarray, " item"]], float],
    splits: int,
    n_items: int,
    groups: Int[np.ndarray, " item"] | None = None,
    *,
    resamples: int = 400,
    seed: int = 0,
) -> Evidence:
    """Return evidence on a number that is no mean, such as the area under an accuracy curve.

    Parameters
    ----------
    statistic
        Returns the number from a weight for each split and a weight for each item (counts of a
        bootstrap, 1 for the estimate itself).
    splits, n_items, groups
        As for `evidence`; one split where nothing is repeated.
    resamples, seed
        As for `evidence`.

    Raises
    ------
    JudgeBayesError
        If there are fewer than two groups.
    """
    (only,) = evidence_of_several(
        lambda v, w: np.array([statistic(v, w)]),
        splits,
        n_items,
        groups,
        resamples=resamples,
        seed=seed,
    )
    return only


def evidence_of_several(
    statistics: Callable[
        [Float[np.ndarray, " split"], Float[np.ndarray, " item"]], Float[np.ndarray, " number"]
    ],
    splits: int,
    n_items: int,
    groups: Int[np.ndarray, " item"] | None = None,
    *,
    resamples: int = 400,
    seed: int = 0,
) -> list[Evidence]:
    """Return joint evidence on several numbers that are computed together, as `evidence_of`.

    Raises
    ------
    JudgeBayesError
        If there are fewer than two groups.
    """
    names = np.arange(n_items) if groups is None else np.unique(groups, return_inverse=True)[1]
    n_groups = int(names.max(initial=-1)) + 1
    _check_units(n_groups)
    of_splits, of_groups = _weights(splits, n_groups, resamples, seed)
    draws = np.array(
        [statistics(v, w[names]) for v, w in zip(of_splits, of_groups, strict=True)], float
    )
    estimates = statistics(np.ones(splits), np.ones(n_items))
    return [
        Evidence(float(estimate), _finite(own), n_groups)
        for estimate, own in zip(estimates, draws.T, strict=True)
    ]


def evidence_of_units(
    values: Float[np.ndarray, " unit"],
    groups: Int[np.ndarray, " unit"] | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Evidence:
    """Return evidence on the mean over units that are independent: items, data sets, generators.

    Raises
    ------
    JudgeBayesError
        If there are fewer than two groups of units.
    """
    values = np.asarray(values, float)
    places = np.arange(len(values))[None]
    return evidence(values[None], places, len(values), groups, resamples=resamples, seed=seed)


def claim(
    of: Evidence,
    *,
    kind: Kind,
    source: Source,
    margin: float,
    value: float | None = None,
    within: bool = False,
    level: float = LEVEL,
) -> Claim:
    """Grade one claim.

    By default the claim is that an advantage is above 0. It holds where the whole interval is above 0,
    fails where the whole interval is below the margin (the smallest advantage that would matter), and
    is uninformative otherwise: the interval is then wider than the margin.

    With a `value` the claim is that the number is this one. It holds where the interval contains the
    value and is at most twice the margin wide, fails where the interval excludes the value and the
    estimate is further from it than the margin, and is uninformative otherwise.

    With `within` the claim is that a difference is too small to matter. It holds where the whole
    interval lies between minus and plus the margin, fails where the whole interval lies outside, and is
    uninformative otherwise.

    Parameters
    ----------
    of
        The evidence on the advantage, or on the number.
    kind, source
        Who claims it, and which data these are.
    margin
        Stated before the number, in units of the metric.

    Raises
    ------
    JudgeBayesError
        If the margin is not above 0.
    """
    return _graded(of.interval(level), kind, source, margin, value, within)


def claim_equal(ours: float, theirs: float, *, kind: Kind, source: Source, margin: float) -> Claim:
    """Grade the claim that a number without sampling error is a printed one.

    For formulas and for released data, which give the same number in every run: it holds where the two
    differ by no more than the margin (rounding), and fails otherwise.

    Raises
    ------
    JudgeBayesError
        If the margin is not above 0.
    """
    _check_margin(margin)
    holds, fails = _HOLDS[source]
    outcome = holds if abs(ours - theirs) <= margin else fails
    return Claim(kind, margin, Interval(ours, ours, ours), outcome)


def claim_range(
    low: float,
    high: float,
    *,
    kind: Kind,
    source: Source,
    margin: float,
    value: float | None = None,
) -> Claim:
    """Grade a claim by a prediction that is a range, such as that over a set of simulators.

    The range includes the sampling error of what it predicts; a number without any error has low equal
    to high. By default the claim is that an advantage is above 0: it holds where the whole range is
    above 0, fails where the whole range is below the margin, and is uninformative otherwise. With a
    `value`, such as a printed number, it holds where the range contains the value and is at most twice
    the margin wide, fails where the value lies outside, and is uninformative otherwise.

    Raises
    ------
    JudgeBayesError
        If the margin is not above 0, or low is above high.
    """
    if not low <= high:
        raise JudgeBayesError(f"low={low} and high={high}; low must be at most high.")
    interval = Interval((low + high) / 2, low, high)
    if value is None:
        return _graded(interval, kind, source, margin, None, within=False)
    _check_margin(margin)
    holds, fails = _HOLDS[source]
    outcome: Outcome = "uninformative"
    if not low <= value <= high:
        outcome = fails
    elif high - low <= 2 * margin:
        outcome = holds
    return Claim(kind, margin, interval, outcome)


def claims(
    of: Sequence[Evidence],
    *,
    kind: Kind,
    source: Source,
    margin: float,
    values: Sequence[float | None] | None = None,
    within: bool = False,
    level: float = LEVEL,
) -> list[Claim]:
    r"""Grade the claims of a table together, by intervals that hold at once (`simultaneous`).

    Evidence of one seed on the same items is joint, draw by draw. Other parameters: `claim`.

    Raises
    ------
    JudgeBayesError
        As `claim`, and if the numbers of draws differ.
    """
    if not of:
        return []
    if len({len(each.draws) for each in of}) > 1:
        raise JudgeBayesError("Claims that are graded together must have the same number of draws.")
    reach = simultaneous(of, level=level)
    graded = []
    for each, critical, value in zip(of, reach, values or [None] * len(of), strict=True):
        half = float(critical) * each.error
        interval = Interval(each.estimate, each.estimate - half, each.estimate + half)
        graded.append(_graded(interval, kind, source, margin, value, within))
    return graded


def simultaneous(of: Sequence[Evidence], *, level: float = LEVEL) -> Float[np.ndarray, " cell"]:
    r"""Return how many standard errors each interval of a table reaches, so that all hold at once.

    .. math:: c_j = F^{-1}_{G_j - 1}(\Phi(c)), \qquad
        c = \text{quantile of } \max_j |\theta^*_j - \hat\theta_j| / \mathrm{SD}(\theta^*_j)

    over the draws (max-t; Romano & Wolf 2005), with F Student's distribution: a cell of few units
    :math:`G_j` does not know its own error well.
    """
    from scipy.special import ndtr
    from scipy.stats import t as student

    spread = np.array([np.std(each.draws) for each in of])
    with np.errstate(invalid="ignore", divide="ignore"):
        t = np.abs([each.draws - each.draws.mean() for each in of]) / spread[:, None]
    largest = np.nan_to_num(t).max(0)
    normal = float(np.quantile(largest, level))
    return np.asarray(student.ppf(ndtr(normal), [each.units - 1 for each in of]))


def _graded(
    interval: Interval,
    kind: Kind,
    source: Source,
    margin: float,
    value: float | None,
    within: bool,
) -> Claim:
    _check_margin(margin)
    holds, fails = _HOLDS[source]
    _, low, high = interval
    if within:
        is_true, is_false = -margin < low and high < margin, low > margin or high < -margin
    elif value is None:
        is_true, is_false = low > 0, high < margin
    else:
        inside = low <= value <= high
        is_true = inside and high - low <= 2 * margin
        is_false = not inside and abs(interval.mean - value) > margin
    outcome: Outcome = holds if is_true else fails if is_false else "uninformative"
    return Claim(kind, margin, interval, outcome)


def _check_margin(margin: float) -> None:
    if not (margin > 0 and np.isfinite(margin)):
        raise JudgeBayesError(f"margin={margin}; it must be a number above 0.")


@lru_cache(maxsize=10)  # those of the nine twins of a cell, and those of their comparisons
def _weights(
    splits: int, groups: int, resamples: int, seed: int
) -> tuple[Float[np.ndarray, "draw split"], Float[np.ndarray, "draw group"]]:
    """Return how often each draw takes each split and each group."""
    rng = np.random.default_rng(seed)
    of_groups = rng.multinomial(groups, np.full(groups, 1 / groups), resamples).astype(float)
    of_splits = rng.multinomial(splits, np.full(splits, 1 / splits), resamples).astype(float)
    return of_splits, of_groups


def _finite(draws: np.ndarray) -> np.ndarray:
    """Return the draws; the few without any outcome, or without a class, take the others' mean."""
    good = np.isfinite(draws)
    if good.mean() < 0.9:
        raise JudgeBayesError(
            "The number is undefined in most bootstrap draws, so it is not evidence."
        )
    return np.where(good, draws, draws[good].mean())


def _check_units(units: int) -> None:
    if units < 2:
        raise JudgeBayesError(f"Evidence needs at least two items or groups; there is {units}.")
