"""Intervals of held-out means: against the binomial, brute force, and worlds with a known variance."""

import numpy as np
import pytest
from scipy import stats

from judgebayes.errors import JudgeBayesError
from judgebayes.evaluate.splits import Splits, random_splits
from judgebayes.experiments.significance import clustered_interval
from judgebayes.measures.significance import Spread, bounded_interval, held_out_spread

Z = 1.959963984540054


@pytest.mark.parametrize(("hits", "trials"), [(0, 60), (1, 60), (7, 20), (19, 20), (20, 20)])
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_independent_outcomes_have_the_mid_p_interval_of_the_binomial(
    hits: int, trials: int, level: float
) -> None:
    share = hits / trials
    spread = Spread(share * (1 - share) / trials, trials, None)
    interval = bounded_interval(share, spread, level=level)
    assert interval.low <= interval.mean == share <= interval.high

    def more_extreme(p: float, *, upwards: bool) -> float:
        at = stats.binom.pmf(hits, trials, p)
        beyond = (
            stats.binom.sf(hits, trials, p) if upwards else stats.binom.cdf(hits - 1, trials, p)
        )
        return float(at / 2 + beyond)

    if hits > 0:
        assert more_extreme(interval.low, upwards=True) == pytest.approx((1 - level) / 2)
    else:
        assert interval.low == 0
    if hits < trials:
        assert more_extreme(interval.high, upwards=False) == pytest.approx((1 - level) / 2)
    else:
        assert interval.high == 1


@pytest.mark.parametrize("trials", [20, 60, 400])
def test_mid_p_intervals_cover_about_their_level_in_every_world(trials: int) -> None:
    ends = [
        bounded_interval(x / trials, Spread(x * (trials - x) / trials**3, trials, None), level=0.9)
        for x in range(trials + 1)
    ]
    low, high = (np.array([getattr(one, end) for one in ends]) for end in ("low", "high"))
    worlds = np.linspace(0.001, 0.999, 999)[:, None]
    inside = (low <= worlds) & (worlds <= high)
    covered = (inside * stats.binom.pmf(np.arange(trials + 1), trials, worlds)).sum(1)
    assert covered.min() > 0.84  # as for every mid-p interval of a few outcomes
    usual = covered[(worlds[:, 0] * trials > 5) & ((1 - worlds[:, 0]) * trials > 5)]
    assert usual.mean() == pytest.approx(0.9, abs=0.012)


def test_with_nothing_seen_the_groups_or_the_decisions_that_are_left_count() -> None:
    for spread, counted, number in (
        (Spread(0.0, 300, 30), 1.0, 30),
        (Spread(0.0, 300, 30), 0.05, 15),
        (Spread(0.0, 60, None), 0.5, 30),
    ):
        high = bounded_interval(0.0, spread, counted=counted, level=0.9).high
        assert high == pytest.approx(1 - 0.1 ** (1 / number))
    independent, grouped = Spread(0.002, 300, None), Spread(0.002, 300, 30)
    widths = [
        one.high - one.low for one in (bounded_interval(0.3, s) for s in (independent, grouped))
    ]
    assert widths[1] / widths[0] == pytest.approx(stats.t.ppf(0.975, 29) / Z, abs=0.01)


def world(
    rng: np.random.Generator, parts: Splits, together: float, size: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """An outcome is an effect of its own item and the mean effect of the labels that were fitted."""
    own = rng.normal(size=parts.calibration.shape[1] + parts.evaluation.shape[1])
    own = np.repeat(own[: len(own) // size], size)
    of_label = together * own
    fitted = of_label[parts.calibration].mean(1)
    noise = 0.3 * rng.normal(size=parts.evaluation.shape)
    return own[parts.evaluation] + fitted[:, None] + noise, parts.evaluation


@pytest.mark.parametrize(("together", "size"), [(1.0, 1), (0.0, 1), (-0.2, 1), (1.0, 5)])
def test_the_variance_is_that_over_data_sets(together: float, size: int) -> None:
    rng = np.random.default_rng(1)
    n, sets = 60 if size == 1 else 150, 150
    groups = np.repeat(np.arange(n // size), size) if size > 1 else None
    fitted = 0.8 * n
    means, variances, plain = np.empty((3, sets))
    for one in range(sets):
        parts = random_splits(n, splits=60, calibration=0.8, groups=groups, seed=one)
        values, items = world(rng, parts, together, size)
        spread = held_out_spread(values, items, n, groups, fitted=fitted)
        means[one], variances[one] = values.mean(), spread.variance
        of_item = np.bincount(items.ravel(), values.ravel()) / np.bincount(items.ravel())
        interval = clustered_interval(of_item, groups)
        plain[one] = ((interval.high - interval.low) / 2 / Z) ** 2
    exact = (1 + together) ** 2 / (n // size)
    assert means.var() == pytest.approx(exact, rel=0.35)
    if together > 0:
        assert variances.mean() == pytest.approx(exact, rel=0.1)
    else:  # not below that of the items, plus noise of 60 splits
        assert exact < variances.mean() < 1.35 * plain.mean()
    if together == 1:
        assert plain.mean() < 0.4 * exact


def test_the_part_of_the_fits_is_that_of_its_definition() -> None:
    rng = np.random.default_rng(2)
    parts = random_splits(12, splits=7, calibration=0.6, seed=3)
    items = parts.evaluation
    values = rng.normal(size=items.shape) + 3 * rng.normal(size=(7, 1))
    values[0, 0] = np.nan
    groups = np.arange(12) // 2
    fitted = float(parts.calibration.shape[1])

    seen = [(s, i, x) for s in range(7) for i, x in zip(items[s], values[s], strict=True)]
    seen = [(s, i, x) for s, i, x in seen if np.isfinite(x)]
    mean = {i: np.mean([x for _, j, x in seen if j == i]) for i in {j for _, j, _ in seen}}
    overall = np.mean(list(mean.values()))
    change = [
        (s, i, x - np.mean([y for t, j, y in seen if j == i and t != s]))
        for s, i, x in seen
        if sum(j == i for _, j, _ in seen) > 1
    ]
    products = [
        a * b for s, i, a in change for t, j, b in change if s == t and groups[i] != groups[j]
    ]
    covariance = np.mean(
        [
            -sum(mean[i] - overall for t, i, _ in seen if t == s)
            / fitted
            * np.mean([a for t, _, a in change if t == s] or [0.0])
            for s in range(7)
        ]
    )
    n = len({(s, groups[i]) for s, i, _ in change}) / 7
    of_fits = np.mean(products) * n / (n - 2) + 2 * covariance * n / (n - 1)
    of_fits *= fitted / (len(seen) / 7)
    assert of_fits > 0.1
    interval = clustered_interval(np.array([mean[i] for i in sorted(mean)]), groups[sorted(mean)])
    of_items = ((interval.high - interval.low) / 2 / Z) ** 2
    spread = held_out_spread(values, items, 12, groups, fitted=fitted)
    assert spread.variance == pytest.approx(of_items + of_fits)
    assert spread[1:] == (len(mean), len({groups[i] for i in mean}))


def test_without_a_second_look_the_variance_is_that_of_the_items() -> None:
    items = np.array([[0, 1, 2], [3, 4, -1]])
    values = np.array([[0.0, 1.0, 0.0], [1.0, 1.0, np.nan]])
    spread = held_out_spread(values, items, 9, fitted=4)
    of_items = np.array([0.0, 1.0, 0.0, 1.0, 1.0])
    assert spread == (pytest.approx(of_items.var(ddof=1) / 5), 5, None)
    with pytest.raises(JudgeBayesError, match="at least two of them; there is 1"):
        held_out_spread(values, items, 9, np.zeros(9, int), fitted=4)
