"""Posteriors of calibration maps: densities against point fits, intervals against draws."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.infer.util import log_density
from scipy.special import log_softmax
from scipy.stats import norm

from judgebayes import MAP, BayesianMap, Beta, Platt, Status, Temperature
from judgebayes.calibrators.maps import clipped
from judgebayes.compiled.float64 import in_float64
from judgebayes.models.base import ProbsData, with_label_noise
from judgebayes.models.calibration_maps import CalibrationMapModel, CalibrationMapPrior

MAPS = {
    "temperature": Temperature(),
    "platt": Platt(),
    "platt-symmetric": Platt(symmetric=True),
    "beta": Beta(penalty=None),
    "beta-symmetric": Beta(penalty=None, symmetric=True),
    "beta-free": Beta(penalty=None, free_slopes=True),
}
FLAT = CalibrationMapPrior(1e6, 1e6)
each = pytest.mark.parametrize("name", MAPS)
classes = pytest.mark.parametrize("n_classes", [2, pytest.param(3, marks=pytest.mark.slow)])


def drawn(n: int, n_classes: int, seed: int = 0) -> tuple[Any, Any]:
    """Overconfident log-probabilities (slope 2) and labels."""
    rng = np.random.default_rng(seed)
    log_probs = log_softmax(2 * rng.normal(size=(n, n_classes)), axis=1)
    logits = 0.5 * log_probs + 0.3 * np.arange(n_classes)
    return log_probs, (logits + rng.gumbel(size=logits.shape)).argmax(1)


@pytest.mark.parametrize(
    "name",
    # That the density is the point fit's objective is tested for every form below.
    [pytest.param(name, marks=[pytest.mark.slow] if "symm" in name else []) for name in MAPS],
)
@classes
@in_float64
def test_the_mode_under_a_flat_prior_is_the_point_fit(name: str, n_classes: int) -> None:
    log_probs, labels = drawn(300, n_classes)
    weight = np.where(np.arange(300) % 3 == 0, 2.0, 1.0)
    point = MAPS[name].fit(log_probs, labels, weight=weight)
    mode = BayesianMap(MAPS[name], MAP(starts=1), FLAT).fit(log_probs, labels, weight=weight)
    assert Status(int(mode.status)) is Status.CONVERGED
    np.testing.assert_allclose(np.exp(mode(log_probs)), np.exp(point(log_probs)), atol=2e-6)


@pytest.mark.parametrize("noise", [0.0, 0.1])
@each
@classes
@in_float64
def test_the_density_is_the_point_fits_objective_and_the_prior(
    name: str, n_classes: int, noise: float
) -> None:
    log_probs, labels = drawn(40, n_classes)
    labels = np.where(np.arange(40) % 5 == 0, -1, labels)
    weight = np.where(np.arange(40) % 3 == 0, 0.0, 1.5)
    own = type(MAPS[name])(**{**vars(MAPS[name]), "label_noise": noise})
    fit = own.fit(log_probs, labels, weight=weight)
    slopes, intercepts = (np.asarray(fit.first[n][0]) for n in ("slopes", "intercepts"))
    model = CalibrationMapModel(n_classes, own.form, CalibrationMapPrior(1.3, 1.7), noise)
    if own.form.tied:
        slopes = slopes[:1]
    elif own.form.symmetric:
        slopes = slopes[: (n_classes + 1) // 2]
    inner = slice(1, (n_classes + 1) // 2 if own.form.symmetric else None)
    at = {"slope": slopes}
    total = norm.logpdf(slopes, 1, 1.3).sum()
    if own.form.monotone:
        total -= norm.logsf(0, 1, 1.3) * len(slopes)
    if own.form.intercepts and len(intercepts[inner]):
        at["intercept"] = intercepts[inner]
        total += norm.logpdf(at["intercept"], 0, 1.7).sum()
    used = np.where(labels >= 0, weight, 0.0)
    data = ProbsData(clipped(jnp.asarray(log_probs), own.clip), *map(jnp.asarray, (labels, weight)))
    density, _ = log_density(model, (data,), {}, jax.tree.map(jnp.asarray, at))
    loss = float(fit.details["objective"]) * used.sum()
    assert float(density) == pytest.approx(total - loss, abs=1e-9)
    log_prob_of_label = np.asarray(with_label_noise(fit(log_probs), noise))[
        np.arange(40), np.maximum(labels, 0)
    ]
    assert float(density) == pytest.approx(total + used @ log_prob_of_label, abs=1e-9)


@pytest.mark.parametrize(
    "name",
    # Draws become intervals by the same code whatever the form, whose density is tested above.
    [pytest.param(name, marks=[pytest.mark.slow] if name != "beta" else []) for name in MAPS],
)
def test_intervals_hold_the_mean_and_nest(name: str) -> None:
    log_probs, labels = drawn(50, 2)
    fit = BayesianMap(MAPS[name]).fit(log_probs, labels)
    mean, draws = np.exp(fit(log_probs)), np.exp(fit.by_draw(log_probs))
    np.testing.assert_allclose(mean, draws.mean(0), atol=1e-12)
    narrow, wide = fit.interval(log_probs, level=0.5), fit.interval(log_probs)
    assert (wide.low <= narrow.low).all()
    assert (narrow.high <= wide.high).all()
    np.testing.assert_allclose(wide.low, np.quantile(draws, 0.05, axis=0), atol=1e-12)
    np.testing.assert_allclose(wide.high[:, 0], 1 - np.asarray(wide.low)[:, 1], atol=1e-12)


@pytest.mark.parametrize("name", ["temperature", "platt", "beta"])
def test_separated_certain_and_absent_labels_leave_a_posterior(name: str) -> None:
    n = 50  # as many items as above: compiled once
    certain = np.array([[0.0, -np.inf], [-np.inf, 0.0]] * (n // 2))
    method = BayesianMap(MAPS[name])
    for labels, status in (
        (np.array([0, 1] * (n // 2)), Status.CONVERGED),
        (np.ones(n, int), Status.DEGENERATE),
        (np.full(n, -1), Status.DEGENERATE),
    ):
        fit = method.fit(certain, labels)
        assert Status(int(fit.status)) is status
        low, high = map(np.asarray, fit.interval(certain))
        assert np.isfinite(fit(certain)).all()
        assert ((low >= 0) & (low <= high) & (high <= 1)).all()
