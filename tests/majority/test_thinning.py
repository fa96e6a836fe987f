from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from judgebayes.experiments.betaconform.audit_intervals import bootstrapped
from judgebayes.majority import Counts, Thinning, counts_of
from judgebayes.majority.thinning import mean_loss, thin


@pytest.mark.parametrize("size", [1, 3, 5, 7])
def test_thinning_is_the_mean_over_all_panels(size: int) -> None:
    counts = counts_of(np.arange(8), 7)
    for correct, probability in enumerate(thin(counts, size)):
        votes = [1] * correct + [0] * (7 - correct)
        wrong = [sum(panel) < size / 2 for panel in combinations(votes, size)]
        assert probability == pytest.approx(np.mean(wrong), abs=1e-12)


def test_at_the_largest_k_the_interval_is_jeffreys() -> None:
    counts = counts_of(np.array([11] * 40 + [2] * 10), 11)
    curve = Thinning().fit(counts).curve((11,))
    posterior = stats.beta(10.5, 40.5)
    assert (curve.low[0], curve.high[0]) == pytest.approx(posterior.ppf([0.05, 0.95]), abs=1e-9)


def test_moments_match_dirichlet_draws() -> None:
    rng = np.random.default_rng(0)
    correct = rng.binomial(7, rng.beta(3, 1, 30))
    fit = Thinning().fit(counts_of(correct, 7))
    _, mean, variance = fit.posterior((1, 5))
    shares = rng.dirichlet(np.bincount(correct, minlength=8) + 1 / 8, 200_000)
    h = np.stack([thin(counts_of(np.arange(8), 7), k) for k in (1, 5)])
    draws = shares @ h.T
    np.testing.assert_allclose(mean, draws.mean(0), atol=5e-4)
    np.testing.assert_allclose(variance, draws.var(0), rtol=0.02)
    finite = fit.posterior((1, 5), population=90)[1:]
    rest = np.stack([rng.multinomial(60, p) @ h.T for p in shares[:40_000]])
    total = (30 * h[:, correct].mean(1) + rest) / 90
    np.testing.assert_allclose(finite[0], total.mean(0), atol=5e-4)
    np.testing.assert_allclose(finite[1], total.var(0), rtol=0.04)


def test_the_bootstrap_resamples_items() -> None:
    rng = np.random.default_rng(1)
    correct = rng.binomial(7, rng.beta(3, 1, 80))
    fit = Thinning().fit(counts_of(correct, 7))
    free, corrected = (bootstrapped(fit, (7,), n) for n in (None, 160))
    share = (correct < 4).mean()
    spread = np.sqrt(share * (1 - share) / 80)
    assert free.high[0] - free.low[0] == pytest.approx(2 * 1.645 * spread, rel=0.15)
    shrunk = (corrected.high[0] - corrected.low[0]) / (free.high[0] - free.low[0])
    assert shrunk == pytest.approx(np.sqrt(0.5), rel=1e-9)


def test_errors_beyond_the_observed_votes_are_nan(easy_and_hard: Counts) -> None:
    curve = Thinning().fit(easy_and_hard).curve((7, 9))
    assert curve.extrapolated.tolist() == [False, True]
    assert np.isfinite([curve.error[0], curve.low[0], curve.high[0]]).all()
    assert np.isnan([curve.error[1], curve.low[1], curve.high[1]]).all()


def test_the_number_of_items_may_differ_by_size() -> None:
    # All items are labelled; the last two have fewer than 5 votes, and do not count at 5.
    correct, given = np.array([5, 4, 2, 3, 1]), np.array([5, 5, 5, 3, 3])
    fit = Thinning().fit(counts_of(correct, given))
    one, by_size = (
        fit.curve((3, 5), population=population) for population in (5, np.array([5.0, 3.0]))
    )
    assert one.high[1] > one.low[1]
    np.testing.assert_allclose(by_size.high - by_size.low, 0, atol=1e-9)
    known = np.array([[0.0, 1.0, 0.0, 1.0, 1.0], [0.0, 1.0, 0.0, np.nan, np.nan]])
    mean = mean_loss((3, 5), known, population=np.array([5.0, 3.0]))
    np.testing.assert_allclose(mean.high - mean.low, 0, atol=1e-9)
    np.testing.assert_allclose(mean.error, [0.6, 1 / 3])


@pytest.mark.parametrize("right", [0, 1, 19, 20])
@pytest.mark.parametrize("population", [None, 20.0, 60.0])
def test_an_estimate_is_never_outside_its_interval(right: int, population: float | None) -> None:
    """Also with no error, or errors only, where a Jeffreys interval excludes the estimate."""
    losses = np.r_[np.zeros(right), np.ones(20 - right)][None]
    counts = counts_of(np.r_[np.ones(right, int), np.zeros(20 - right, int)], 1)
    for curve in (
        mean_loss((1,), losses, population=population),
        Thinning().fit(counts).curve((1,), population=population),
    ):
        assert curve.low[0] <= curve.error[0] <= curve.high[0]
        assert curve.error[0] == pytest.approx(1 - right / 20)
        if population != 20:
            assert curve.high[0] - curve.low[0] > 0.02
