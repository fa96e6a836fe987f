import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit

from judgebayes.compiled.float64 import in_float64
from judgebayes.generators.labelling import (
    POINTS,
    SPAN,
    Strata,
    Stratified,
    StratumCounts,
    StratumPosterior,
    StratumPrior,
    _prior,
    count_strata,
    labels_by_cell,
)
from judgebayes.generators.panel import spread_grid

GENERATORS, STRATA = 3, 3
POSITION = np.array([-1.2, 0.0, 1.0])


def counted(valid: object, invalid: object, unlabelled: object) -> StratumCounts:
    return StratumCounts(*(jnp.asarray(a, float) for a in (valid, invalid, unlabelled, POSITION)))


@pytest.fixture(scope="module")
def partly() -> StratumCounts:
    with jax.enable_x64(True):
        return counted(
            [[3, 10, 40], [0, 2, 5], [0, 0, 0]],
            [[6, 4, 2], [3, 1, 0], [0, 0, 0]],
            [[0, 0, 0], [20, 30, 60], [25, 25, 90]],
        )


@pytest.fixture(scope="module")
def fitted(partly: StratumCounts) -> StratumPosterior:
    return Stratified().fit(partly)


def next_labels(fit: StratumPosterior, n: int, **options: object) -> np.ndarray:
    design = fit.design(**options)  # type: ignore[arg-type]
    return labels_by_cell(design, jnp.asarray(n)).reshape(fit.counts.valid.shape)


def test_counts_match_a_loop() -> None:
    rng = np.random.default_rng(0)
    strata = Strata(rng.integers(0, 3, 50), POSITION)
    label, generator = rng.integers(-1, 2, 50), rng.integers(0, 3, 50)
    result = count_strata(strata, label, generator, 3)
    for g in range(3):
        for h in range(3):
            own = label[(generator == g) & (strata.of_item == h)]
            for y, counts in ((1, result.valid), (0, result.invalid), (-1, result.unlabelled)):
                assert counts[g, h] == sum(own == y)


@in_float64
def test_the_posterior_matches_importance_sampling(
    partly: StratumCounts, fitted: StratumPosterior
) -> None:
    """Cells drawn from the prior and weighted by the likelihood, over the same grid of spreads."""
    rng = np.random.default_rng(0)
    prior = StratumPrior()
    valid, invalid = (np.asarray(a).ravel() for a in (partly.valid, partly.invalid))
    rest = np.asarray(partly.unlabelled)
    total = np.asarray(partly.valid + partly.invalid + partly.unlabelled).sum(1)
    mean, weight = np.zeros(GENERATORS), 0.0
    square = np.zeros(GENERATORS)
    spreads, log_density = spread_grid((prior.log_shift, prior.log_cell), POINTS, SPAN)
    for shift, cell, density in zip(*spreads, log_density, strict=True):
        centre, covariance = _prior(prior, partly, shift, cell)
        p = expit(rng.multivariate_normal(centre, covariance, 20_000))
        likelihood = (valid * np.log(p) + invalid * np.log1p(-p)).sum(1)
        w = np.exp(likelihood + 30 + float(density))
        q = p.reshape(-1, GENERATORS, STRATA)
        g = (np.asarray(partly.valid).sum(1) + (rest * q).sum(2)) / total
        chance = (rest * q * (1 - q)).sum(2) / total**2
        mean, weight = mean + w @ g, weight + w.sum()
        square = square + w @ (g**2 + chance)
    mean /= weight
    deviation = np.sqrt(np.maximum(square / weight - mean**2, 0))
    drawn = np.asarray(fitted.sample(8000))
    np.testing.assert_allclose(drawn.mean(0), mean, atol=0.01)
    np.testing.assert_allclose(drawn.std(0), deviation, atol=0.01, rtol=0.08)


def greedy_by_inversion(fitted: StratumPosterior, n: int) -> np.ndarray:
    """Greedy choice by matrix inversion: the largest decrease of the variances' sum, label by label."""
    counts = fitted.counts
    total = np.asarray(counts.valid + counts.invalid + counts.unlabelled).sum(1)
    remaining = np.asarray(counts.unlabelled).ravel().copy()
    weights, means, spreads = (np.array(a) for a in (fitted.weight, fitted.mean, fitted.covariance))
    information = expit(means) * (1 - expit(means))
    chosen = np.zeros(len(remaining))

    def variance(spread: np.ndarray, q: np.ndarray) -> float:
        total_variance = 0.0
        for g in range(GENERATORS):
            own = slice(STRATA * g, STRATA * (g + 1))
            gradient = np.zeros(len(q))
            gradient[own] = (remaining * q)[own] / total[g]
            total_variance += gradient @ spread @ gradient
        return total_variance

    def updated(spread: np.ndarray, q: np.ndarray, k: int) -> np.ndarray:
        unit = np.eye(len(q))[k]
        return np.linalg.inv(np.linalg.inv(spread) + q[k] * np.outer(unit, unit))

    for _ in range(n):
        gain = np.full(len(remaining), -1.0)
        for k in np.flatnonzero(remaining):
            # The gradient stays; the output's own uncertainty vanishes.
            decreases = [
                variance(s, q) - variance(updated(s, q, k), q) + q[k] / total[k // STRATA] ** 2
                for s, q in zip(spreads, information, strict=True)
            ]
            gain[k] = weights @ decreases
        best = int(gain.argmax())
        spreads = np.array([updated(s, q, best) for s, q in zip(spreads, information, strict=True)])
        remaining[best] -= 1
        chosen[best] += 1
    return chosen.reshape(GENERATORS, STRATA)


@pytest.mark.parametrize("n", [1, 25])
@in_float64
def test_the_next_labels_match_a_greedy_choice_by_refitting(
    fitted: StratumPosterior, n: int
) -> None:
    n_labels = np.asarray(next_labels(fitted, n))
    np.testing.assert_array_equal(n_labels, greedy_by_inversion(fitted, n))
    assert n == 1 or (n_labels > 0).sum() > 3  # and not all in one cell


@in_float64
def test_intervals_cover_when_labels_are_chosen_by_the_design() -> None:
    """Data sets from the prior, with twice 40 labels by the design."""
    prior, rest = StratumPrior(), np.array([[60, 60, 120]] * GENERATORS)

    def simulate(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        one, two, three = jax.random.split(key, 3)
        spreads = [
            jnp.exp(m + s * c)
            for (m, s), c in zip(
                (prior.log_shift, prior.log_cell), jax.random.normal(one, (2,)), strict=True
            )
        ]
        centre, covariance = _prior(prior, counted(0 * rest, 0 * rest, rest), *spreads)
        p = jax.nn.sigmoid(jax.random.multivariate_normal(two, centre, covariance))
        outputs = jax.random.uniform(three, (GENERATORS * STRATA, 120)) < p[:, None]
        size, place = rest.ravel()[:, None], np.arange(120)
        truth = (outputs & (place < size)).sum(1).reshape(GENERATORS, STRATA).sum(1) / rest.sum(1)

        def counts(n: jax.Array) -> StratumCounts:
            v = (outputs & (place < n[:, None])).sum(1)
            shape = GENERATORS, STRATA
            return counted(v.reshape(shape), (n - v).reshape(shape), rest - n.reshape(shape))

        n = jnp.zeros(GENERATORS * STRATA)
        for _ in range(2):
            n = n + next_labels(Stratified().fit(counts(n)), 40).ravel()
        low, high = Stratified().fit(counts(n)).interval(0.9)
        return (low <= truth + 1e-12) & (truth <= high + 1e-12), high - low

    covered, width = jax.jit(jax.vmap(simulate))(jax.random.split(jax.random.key(0), 200))
    # 600 intervals, three per data set: 0.9 within three standard errors of 200 independent data sets.
    assert float(covered.mean()) == pytest.approx(0.9, abs=0.05)
    assert float(width.mean()) < 0.25
