"""The objective against loops in NumPy, the weights of odd cells, and simulated strong judges."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from strong_judges import GENERATORS, World, with_saturated, with_silent, world

from judgebayes.experiments.beyond_consensus.impression import Impression
from judgebayes.experiments.beyond_consensus.logit_shift import logit_shift
from judgebayes.generators import Panel, PrecisionCounts, mean_prediction
from judgebayes.generators.panel import (
    TYPICAL,
    PanelPosterior,
    PanelPrior,
    _Cells,
    _Spreads,
    _System,
    _weigh,
    _Weights,
)
from judgebayes.inference.status import Status

SHOWN = np.arange(GENERATORS) < 3
PLACES = jnp.asarray(0.3), jnp.asarray(0.2), jnp.asarray(0.5)
"""The slope's location, and the spreads of d and u."""


def ends(fit: PanelPosterior) -> np.ndarray:
    """Return the estimate and the ends of the interval of a fit that converged."""
    assert int(fit.status) == Status.CONVERGED
    return np.stack([np.asarray(a) for a in (fit.estimate(), *fit.interval())])


def answer(counts: PrecisionCounts) -> np.ndarray:
    return ends(Panel().fit(counts))


@pytest.fixture(scope="module")
def base() -> World:
    return with_silent(world(0))


@pytest.fixture(scope="module")
def hidden(base: World) -> PrecisionCounts:
    """Counts of six judges, and of two who never voted, with the labels of three generators."""
    with jax.enable_x64(True):
        return base.counts.reveal(SHOWN)


@pytest.fixture(scope="module")
def saturated() -> PrecisionCounts:
    """The same with two judges who call every item valid in place of the silent ones."""
    with jax.enable_x64(True):
        return with_saturated(world(0)).counts.reveal(SHOWN)


@pytest.fixture(scope="module")
def plain(hidden: PrecisionCounts) -> PanelPosterior:
    with jax.enable_x64(True):
        return Panel().fit(hidden)


@pytest.fixture(scope="module")
def trusted(saturated: PrecisionCounts) -> PanelPosterior:
    """A fit to the votes with those of saturated judges."""
    with jax.enable_x64(True):
        return Panel().fit(saturated)


# --- the objective --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def few() -> PrecisionCounts:
    """Three generators, labelled in full, in part and not at all; one judge missed one of them."""
    rng = np.random.default_rng(1)
    n = np.array([[[30, 20, 25], [9, 8, 10], [0, 0, 0]], [[12, 9, 10], [5, 6, 6], [0, 0, 0]]])
    n = np.stack([*n, [[0, 0, 0], [25, 20, 30], [0, 40, 44]]])
    count = rng.binomial(n, np.array([0.8, 0.3, 0.6])[:, None, None])
    count[0, 0, 1] = n[0, 0, 1]  # every vote of a cell is valid
    count[2, 1, 0] = 0
    cells = [count[2], n[2], count[0], n[0], count[1], n[1]]
    items = [np.array(row) for row in ([30, 10, 0], [12, 6, 0], [0, 30, 44])]
    with jax.enable_x64(True):
        return PrecisionCounts(*(jnp.asarray(a, float) for a in (*cells, *items)))


def some_weights(follow: float) -> _Weights:
    rng = np.random.default_rng(2)
    power = jnp.asarray(rng.uniform(0.2, 1.2, (3, 3, 3)))
    return _Weights(power, 0 * power, jnp.asarray(0.1), jnp.asarray(follow))


def some_point(seed: int, size: float = 1.0) -> np.ndarray:
    return size * np.random.default_rng(seed).normal(size=2 * 3 + 3 * 3 + 4)


def rates_by_the_formulas(x: np.ndarray) -> np.ndarray:
    """Return TPR, 1 - TNR and P of three generators and judges."""
    a, kappa, eta, d, u, centres = np.split(x, [3, 6, 9, 12, 15])
    rates = np.zeros((3, 3, 3))
    for i in range(3):
        g = 1 / (1 + np.exp(-eta[i]))
        for j in range(3):
            k = 1 / (1 + np.exp(-kappa[j] - u[i]))
            q = 1 / (1 + np.exp(-a[j] - centres[0] * eta[i] - d[i]))
            rates[:, i, j] = k + (1 - k) * q, (1 - k) * q, k * g + (1 - k) * q
    return rates


def deviance(count: float, n: float, p: float) -> float:
    total = 0.0
    for part, rate in ((count, p), (n - count, 1 - p)):
        if part > 0:
            total += 2 * part * np.log(part / n / rate)
    return total


def by_loops(
    x: np.ndarray, counts: PrecisionCounts, weights: _Weights, total: np.ndarray | None = None
) -> float:
    """Return minus twice the log posterior; `total` holds the rows' information fixed."""
    p, tau = rates_by_the_formulas(x), 0.1 + 0.9 * (1 - float(weights.follow))
    count = [np.asarray(c) for c in (counts.true_accepted, counts.false_accepted, counts.accepted)]
    n = [np.asarray(c) for c in (counts.valid_judged, counts.invalid_judged, counts.judged)]
    power = np.asarray(weights.power)
    value = 0.0
    for i in range(3):
        score, information = 0.0, 0.0
        for j in range(3):
            for c, share in enumerate((1.0, 1.0, tau)):
                value += share * power[c, i, j] * deviance(count[c][i, j], n[c][i, j], p[c, i, j])
            score += power[2, i, j] * (count[2][i, j] - n[2][i, j] * p[2, i, j])
            information += power[2, i, j] * n[2][i, j] * p[2, i, j] * (1 - p[2, i, j])
        information = information if total is None else total[i]
        value += (1 - tau) * score**2 / information if information > 0 else 0.0
        valid, invalid = float(counts.valid[i]), float(counts.invalid[i])
        value += deviance(valid, valid + invalid, 1 / (1 + np.exp(-x[6 + i])))
    a, kappa, eta, d, u, (slope, mean_a, mean_kappa, mean_eta) = np.split(x, [3, 6, 9, 12, 15])
    prior, (place, spread_d, spread_u) = PanelPrior(), (float(value) for value in PLACES)
    value += (((a - mean_a) / prior.judge_spread) ** 2).sum()
    value += (((kappa - mean_kappa) / prior.judge_spread) ** 2).sum()
    value += (((eta - mean_eta) / prior.quality_spread) ** 2).sum()
    value += ((d / spread_d) ** 2).sum() + ((u / spread_u) ** 2).sum()
    value += ((slope - place) / prior.slope_scale) ** 2
    for mean, (middle, scale) in (
        (mean_a, prior.impression),
        (mean_kappa, prior.knowledge),
        (mean_eta, prior.quality),
    ):
        value += ((mean - middle) / scale) ** 2
    return value


def slope_of(function: object, x: np.ndarray, width: float = 1e-5) -> np.ndarray:
    """Return the central differences of a function, by parameter."""
    steps = width * np.eye(len(x))
    each = [(function(x + h) - function(x - h)) / (2 * width) for h in steps]  # type: ignore[operator]
    return np.stack(each)


@pytest.mark.parametrize("follow", [0.0, 0.6, 1.0])
def test_the_objective_is_that_of_loops_and_its_gradient_the_slope(
    few: PrecisionCounts, follow: float
) -> None:
    system, weights = _System(few, PanelPrior()), some_weights(follow)
    for seed in range(3):
        x = some_point(seed)
        value, gradient, _ = system.evaluate(jnp.asarray(x), _Spreads(*PLACES), weights)
        assert float(value) == pytest.approx(by_loops(x, few, weights), rel=1e-10)
        # The gradient takes the information that divides a row's score as fixed.
        p = rates_by_the_formulas(x)[2]
        total = (np.asarray(weights.power)[2] * np.asarray(few.judged) * p * (1 - p)).sum(1)
        slope = slope_of(lambda at, total=total: by_loops(at, few, weights, total), x)
        np.testing.assert_allclose(gradient, -slope / 2, rtol=1e-6, atol=1e-6)


def test_the_information_is_the_curvature_where_counts_are_as_expected(
    few: PrecisionCounts,
) -> None:
    x, weights = some_point(4), some_weights(0.6)
    p, g = rates_by_the_formulas(x), 1 / (1 + np.exp(-x[6:9]))
    labelled = few.valid + few.invalid
    expected = replace(
        few,
        true_accepted=few.valid_judged * p[0],
        false_accepted=few.invalid_judged * p[1],
        accepted=few.judged * p[2],
        valid=labelled * g,
        invalid=labelled * (1 - g),
    )
    system = _System(expected, PanelPrior())
    at = jax.jit(lambda x: system.evaluate(x, _Spreads(*PLACES), weights))
    curvature = -slope_of(lambda x: np.asarray(at(x)[1]), x)
    np.testing.assert_allclose(at(x)[2], curvature, rtol=1e-6, atol=1e-6)


# --- odd cells ------------------------------------------------------------------------------------


def test_a_saturated_judge_is_odd_and_an_ordinary_one_is_not() -> None:
    rng = np.random.default_rng(6)
    p = np.broadcast_to(np.array([0.85, 0.25, 0.6])[:, None, None], (3, 10, 6))
    n = np.zeros((3, 10, 6))
    n[0, :5], n[1, :5], n[2, 5:] = 120, 60, 180
    n[:, :, 5] = 0  # never voted
    near = 1 / (1 + np.exp(-np.log(p / (1 - p)) - rng.normal(0, TYPICAL, p.shape)))
    count = rng.binomial(n.astype(int), near).astype(float)
    count[:, :, 4] = n[:, :, 4]
    cells = _Cells(jnp.asarray(count), jnp.asarray(n))
    power, odd = (np.asarray(a) for a in _weigh(cells, jnp.asarray(p), jnp.asarray(TYPICAL)))
    cast = n > 0
    ordinary = cast & (np.arange(6) < 4)
    assert (odd[ordinary] < 0.05).all()
    assert (odd[..., 4][cast[..., 4]] > 0.95).all()
    assert (odd[~cast] == 0).all()
    inflation = 1 + n * p * (1 - p) * TYPICAL**2
    twice = np.vectorize(deviance)(count, n, p) / inflation
    expected = (1 - odd) * 5 / (4 + twice) / inflation
    np.testing.assert_allclose(power[cast], expected[cast], rtol=1e-9)
    assert power[..., 4][cast[..., 4]].max() < 0.05 * power[ordinary].min()


def test_two_saturated_judges_move_nothing(
    hidden: PrecisionCounts,
    saturated: PrecisionCounts,
    plain: PanelPosterior,
    trusted: PanelPosterior,
) -> None:
    """They cast 2 of 8 votes on every item: an estimator that trusts them moves by 30 points."""
    odd, cast = np.asarray(trusted.odd), np.asarray(_System(saturated, PanelPrior()).cells.n) > 0
    assert odd[..., 6:][cast[..., 6:]].min() > 0.95
    assert odd[..., :6].max() < 0.05
    assert np.abs(ends(trusted) - ends(plain)).max() < 0.002
    theirs = [np.asarray(Impression().fit(c).estimate()) for c in (hidden, saturated)]
    assert np.abs(theirs[1] - theirs[0])[~SHOWN].max() > 0.1


# --- laws -----------------------------------------------------------------------------------------


# --- strong judges --------------------------------------------------------------------------------


def test_strong_judges_are_instruments() -> None:
    """The mean error is below half that of the row mean and the logit shift; intervals cover."""
    errors, covered = [], []
    for seed in range(3):
        drawn = with_silent(world(seed))
        counts, truth = drawn.counts.reveal(SHOWN), drawn.truth
        middle, low, high = answer(counts)
        rules = (middle, np.asarray(mean_prediction(counts)), np.asarray(logit_shift(counts)))
        errors.append([np.abs(rule - truth)[~SHOWN].mean() for rule in rules])
        covered.append(((low <= truth) & (truth <= high))[~SHOWN])
    ours, row, shift = np.array(errors).T
    assert (ours < np.minimum(row, shift)).all()
    assert ours.mean() < 0.5 * min(row.mean(), shift.mean())
    assert np.mean(covered) > 0.8
