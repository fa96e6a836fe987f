"""Fits of the distribution of correct votes: SciPy, laws, edge cases, calibration."""

import numpy as np
import pytest
from scipy import optimize, stats

from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.betaconform.binomial import Binomial
from judgebayes.experiments.betaconform.paper_em import Distribution, PaperEM
from judgebayes.inference import MAP, NUTS, Status
from judgebayes.majority import BetaBinomial, Counts, Thinning, counts_of

METHODS: dict[str, Distribution] = {
    "binomial": Binomial(),
    "beta-binomial": BetaBinomial(1, MAP(starts=1)),
    "mixture": BetaBinomial(2, MAP(starts=3)),
    "em": PaperEM(),
    "em-printed": PaperEM("printed"),
}
SIZES = (1, 5, 7, 11)
methods = pytest.mark.parametrize("name", list(METHODS))


def errors(name: str, counts: Counts, weight: np.ndarray | None = None) -> np.ndarray:
    return np.asarray(METHODS[name].fit(counts, weight=weight).estimate(SIZES))


@methods
@pytest.mark.parametrize("correct", [0, 7])
def test_counts_at_the_edge_give_finite_fits(name: str, correct: int) -> None:
    """S = 0 on every item, and S = k on every item."""
    fit = METHODS[name].fit(counts_of(np.full(12, correct), 7))
    curve = np.asarray(fit.estimate(SIZES))
    assert np.isfinite(curve).all()
    assert (curve > 0.5).all() if correct == 0 else (curve < 0.5).all()
    assert all(np.isfinite(np.asarray(x)).all() for x in fit.theta)


@methods
def test_no_label_is_degenerate(name: str) -> None:
    fit = METHODS[name].fit(counts_of(np.full(5, -1), 7))
    assert int(fit.status) == Status.DEGENERATE
    assert np.isfinite(np.asarray(fit.estimate(SIZES))).all()


def test_the_binomial_matches_its_formula(easy_and_hard: Counts) -> None:
    labelled = np.asarray(easy_and_hard.correct) >= 0
    p = (
        np.asarray(easy_and_hard.correct)[labelled].sum()
        / np.asarray(easy_and_hard.given)[labelled].sum()
    )
    curve = errors("binomial", easy_and_hard)
    expected = [stats.binom.cdf((k - 1) // 2, k, p) for k in SIZES]
    np.testing.assert_allclose(curve, expected, rtol=1e-9)


@pytest.mark.parametrize("components", [1, 2])
def test_the_mode_is_the_best_of_many_scipy_starts(components: int, easy_and_hard: Counts) -> None:
    """The objective written with SciPy's Beta-Binomial, and minimised by SciPy."""
    fit = BetaBinomial(components).fit(easy_and_hard)
    assert int(fit.status) == Status.CONVERGED
    labelled = np.asarray(easy_and_hard.correct) >= 0
    s, k = (np.asarray(x)[labelled] for x in (easy_and_hard.correct, easy_and_hard.given))

    def objective(x: np.ndarray) -> float:
        if components == 1:
            logits, share = np.array([x[0]]), np.ones(1)
            prior = stats.norm.logpdf(x[0], 1, 1.5)
        else:
            logits = x[0] + x[1] * np.array([-0.5, 0.5])
            share = np.array([x[2], 1 - x[2]])
            prior = (
                stats.norm.logpdf(x[0], 1, 1.5 / np.sqrt(2))
                + stats.halfnorm.logpdf(x[1], scale=1.5 * np.sqrt(2))
                + stats.beta.logpdf(x[2], 2, 2)
            )
        spread = x[-components:]
        prior += stats.norm.logpdf(spread, -1, 1.25).sum()
        mean, size = 1 / (1 + np.exp(-logits)), np.exp(-spread)
        each = [
            w * stats.betabinom.pmf(s, k, m * c, (1 - m) * c)
            for w, m, c in zip(share, mean, size, strict=True)
        ]
        return -(np.log(np.sum(each, axis=0)).sum() + prior) / labelled.sum()

    rng = np.random.default_rng(0)
    bounds = [(-8, 8), (-8, 8)] if components == 1 else [(-8, 8), (0, 12), (1e-6, 1 - 1e-6)]
    bounds += [(-8, 6)] * (components if components == 2 else 0)
    low, high = np.clip(np.array(bounds).T, -2, 3)
    starts = rng.uniform(low, high, (12, len(bounds)))
    best = min(
        optimize.minimize(objective, x, bounds=bounds, method="L-BFGS-B").fun for x in starts
    )
    assert float(fit.details["objective"]) <= best + 1e-7
    assert float(fit.details["objective"]) == pytest.approx(best, abs=1e-5)


@in_float64
def test_the_papers_iteration_matches_a_loop(easy_and_hard: Counts) -> None:
    """Eqs 6 and 7 written out item by item, with gamma_j."""
    labelled = np.asarray(easy_and_hard.correct) >= 0
    s, k = (np.asarray(x, float)[labelled] for x in (easy_and_hard.correct, easy_and_hard.given))
    p = np.clip(s / k, 0.5 / k, 1 - 0.5 / k)
    gamma = (2 * s < k).astype(float)
    for _ in range(300):
        w = gamma.mean()
        both = [gamma, 1 - gamma]
        alpha, beta = ([(g * x).sum() for g in both] for x in (s, k - s))
        log = [stats.beta.logpdf(p, a, b) for a, b in zip(alpha, beta, strict=True)]
        gap = np.clip(log[1] - log[0], -700, 700)
        gamma = w / (w + (1 - w) * np.exp(gap))
    theta = PaperEM().fit(easy_and_hard).theta
    order = np.argsort([a / (a + b) for a, b in zip(alpha, beta, strict=True)])
    ours = theta.mean[0] / theta.dispersion[0], (1 - theta.mean[0]) / theta.dispersion[0]
    np.testing.assert_allclose(ours, np.array([alpha, beta])[:, order], rtol=1e-5)
    assert float(theta.dispersion.max()) < 0.02  # both components are Binomials in effect


@pytest.fixture(scope="module")
def sampled(easy_and_hard: Counts) -> object:
    return BetaBinomial(2, NUTS(draws=400, warmup=400, chains=2)).fit(easy_and_hard)


def test_nuts_has_intervals_and_marks_extrapolation(sampled, easy_and_hard: Counts) -> None:
    curve = sampled.curve((1, 7, 21))
    assert curve.extrapolated.tolist() == [False, False, True]
    assert ((curve.low < curve.error) & (curve.error < curve.high)).all()
    free = Thinning().fit(easy_and_hard).curve((1, 7))
    assert (np.abs(curve.error[:2] - free.error) < free.high - free.low).all()
    correct = np.append(easy_and_hard.correct, [-1] * 10)
    every = counts_of(correct, np.append(easy_and_hard.given, [7] * 10))
    narrow = sampled.curve((7, 21), of=every)
    assert narrow.high[0] - narrow.low[0] < 0.7 * (curve.high[1] - curve.low[1])
    np.testing.assert_allclose(narrow.high[1], curve.high[2], atol=1e-12)
