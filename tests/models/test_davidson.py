import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from numpyro.infer.util import log_density

from judgebayes.aggregators.davidson import columns
from judgebayes.compiled.float64 import in_float64
from judgebayes.models import davidson
from judgebayes.models.davidson import DavidsonData, DavidsonModel, Features, Parameters


def naive(counts: tuple[int, int, int], theta: tuple[float, float, float]) -> list[float]:
    """Eqs 2 to 5 in plain Python, for one item."""
    minus, tie, plus = counts
    beta, eta0, gamma = theta
    s = 0.5 * math.log((plus + 1) / (minus + 1))
    t = math.log((tie + 1) / (minus + tie + plus + 1))
    weights = [math.exp(-beta * s), math.exp(eta0 + gamma * t), math.exp(beta * s)]
    return [w / sum(weights) for w in weights]


def parameters(
    beta: float, eta0: list[float], gamma: list[float], delta: float = 0.0
) -> Parameters:
    return Parameters(*map(jnp.asarray, (beta, eta0, gamma, delta)))


@pytest.mark.parametrize("theta", [(1.0, 0.0, 1.0), (3.2, 4.5, 2.1), (0.001, -9.0, -3.0)])
@in_float64
def test_ternary_link_equals_the_paper_in_plain_python(theta: tuple[float, float, float]) -> None:
    counts = np.array([(a, 6 - a - b, b) for a in range(7) for b in range(7 - a)])
    evidence = davidson.features(jnp.asarray(counts))
    log_probs = davidson.link(parameters(theta[0], [theta[1]], [theta[2]]), evidence, n_classes=3)
    for row, item in zip(jnp.exp(log_probs), counts, strict=True):
        np.testing.assert_allclose(row, naive(tuple(item), theta), rtol=1e-12)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3, 4, 5])
@in_float64
def test_logits_are_the_columns_times_the_sites_in_one_vector(
    n_classes: int, symmetric: bool
) -> None:
    rng = np.random.default_rng(n_classes)
    evidence = davidson.features(
        jnp.asarray(rng.integers(0, 5, (20, n_classes))), symmetric=symmetric
    )
    n_levels = davidson.n_levels(n_classes, symmetric)
    sites = {"beta": jnp.asarray(1.3)}
    if n_levels:
        sites |= {name: jnp.asarray(rng.normal(size=n_levels)) for name in ("eta0", "gamma")}
    if not symmetric:
        sites["delta"] = jnp.asarray(0.4)
    vector, _ = ravel_pytree(sites)
    by_parameter = columns(evidence, n_classes=n_classes, symmetric=symmetric)
    assert len(by_parameter) == len(vector)
    logits = np.zeros((20, n_classes))
    for value, column in zip(vector, by_parameter, strict=True):
        for k, x in column.items():
            logits[:, k] += float(value) * np.asarray(x)
    theta = Parameters(
        sites["beta"],
        sites.get("eta0", jnp.zeros(0)),
        sites.get("gamma", jnp.zeros(0)),
        sites.get("delta", jnp.zeros(())),
    )
    wanted = davidson.link(theta, evidence, n_classes=n_classes, symmetric=symmetric)
    np.testing.assert_allclose(jax.nn.log_softmax(logits), wanted, atol=1e-12)


@in_float64
def test_binary_free_form_is_logistic_regression_on_smoothed_log_odds() -> None:
    counts = jnp.array([[3, 1], [0, 4], [2, 2]])
    theta = parameters(0.8, [], [], -0.4)
    evidence = davidson.features(counts, symmetric=False)
    log_probs = davidson.link(theta, evidence, n_classes=2, symmetric=False)
    logit = 2 * (-0.4 + 0.8 * 0.5 * np.log((counts[:, 1] + 1) / (counts[:, 0] + 1)))
    np.testing.assert_allclose(jnp.exp(log_probs[:, 1]), jax.nn.sigmoid(logit), rtol=1e-12)


@in_float64
def test_log_density_is_prior_plus_weighted_log_likelihood() -> None:
    evidence = Features(jnp.array([0.3, -0.5, 0.0]), jnp.array([[-1.0], [-0.2], [-2.0]]))
    labels, weight = jnp.array([2, 0, -1]), jnp.array([1.0, 2.5, 1.0])
    sites = {"beta": jnp.array(1.2), "eta0": jnp.array([0.4]), "gamma": jnp.array([0.9])}

    def density(labels: jax.Array, weight: jax.Array) -> float:
        data = DavidsonData(evidence, labels, weight)
        density, _ = log_density(DavidsonModel(3), (data,), {}, sites)
        return float(density)

    theta = parameters(1.2, [0.4], [0.9])
    log_probs = davidson.link(theta, evidence, n_classes=3)
    nothing = density(jnp.full(3, -1), weight)
    expected = float(log_probs[0, 2] + 2.5 * log_probs[1, 0])
    assert density(labels, weight) - nothing == pytest.approx(expected)
    prior = sum(
        float(davidson._boxed(name, *getattr(davidson.DavidsonPrior(), name)).log_prob(value))
        for name, value in (("beta", 1.2), ("eta0", 0.4), ("gamma", 0.9))
    )
    assert nothing == pytest.approx(prior)


@in_float64
def test_weight_0_is_a_dropped_row() -> None:
    evidence = Features(jnp.array([0.3, -0.5]), jnp.array([[-1.0], [-0.2]]))
    sites = {"beta": jnp.array(1.2), "eta0": jnp.array([0.4]), "gamma": jnp.array([0.9])}

    def density(evidence: Features, labels: jax.Array, weight: jax.Array) -> float:
        data = DavidsonData(evidence, labels, weight)
        return float(log_density(DavidsonModel(3), (data,), {}, sites)[0])

    one = jax.tree.map(lambda x: x[:1], evidence)
    assert density(evidence, jnp.array([2, 0]), jnp.array([1.0, 0.0])) == pytest.approx(
        density(one, jnp.array([2]), jnp.array([1.0]))
    )


def test_levels_of_classes() -> None:
    assert davidson.level_of_class(2, symmetric=True) == (-1, -1)
    assert davidson.level_of_class(5, symmetric=True) == (-1, 0, 1, 0, -1)
    assert davidson.level_of_class(4, symmetric=False) == (-1, 0, 1, -1)
