import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.infer.util import log_density
from scipy import stats

from judgebayes.compiled.float64 import in_float64
from judgebayes.inference.laplace import join, prior_precision
from judgebayes.models import stacking
from judgebayes.models.stacking import Form, StackingData, StackingModel, StackingPrior


def naive(index: np.ndarray, named: dict[str, np.ndarray], form: Form) -> list[float]:
    """The story in plain Python, for one item of three classes."""
    u, eta = float(named.get("offset", 0.0)), float(named["level"][0])
    for j, votes in enumerate(index):
        cast = [v for v in votes if v >= 0]
        if cast:
            u += named["weight"][j] * sum(v - 1 for v in cast) / len(cast)
            eta += named["level_weight"][0, j] * cast.count(1) / len(cast)
        elif not form.symmetric:
            u += named["absent"][j]
    w = [math.exp(-u / 2), math.exp(eta), math.exp(u / 2)]
    return [x / sum(w) for x in w]


@pytest.mark.parametrize("symmetric", [True, False])
@in_float64
def test_the_ternary_link_is_the_story_in_plain_python(symmetric: bool) -> None:
    rng = np.random.default_rng(0)
    form = Form(3, 3, symmetric)
    index = rng.integers(-1, 3, (12, 3, 2))
    index[0] = -1
    named = {name: rng.normal(size=shape) for name, shape in form.blocks().items()}
    sites = {f"z_{name}": jnp.asarray(x) for name, x in named.items()}
    sites |= {"offset": sites.get("z_offset", 0.0), "eta0": sites["z_level"]}
    sites |= {"tau": jnp.ones(()), "common": jnp.zeros(())}
    data = StackingData(jnp.asarray(index), jnp.zeros(3), jnp.zeros(12, int))
    log_probs = StackingModel(form).predict(sites, data)
    for row, item in zip(jnp.exp(log_probs), index, strict=True):
        np.testing.assert_allclose(row, naive(item, named, form), rtol=1e-12)


@in_float64
def test_the_centre_is_the_unit_vector_of_one_coin_log_odds() -> None:
    index = jnp.array([[2, 0], [0, 1], [2, -1], [0, 2]])[:, :, None]
    labels = jnp.array([2, 0, 2, 1])
    centre = stacking.centre(index, labels, jnp.array([1.0, 2.0, 1.0, 1.0]), Form(2, 3, True))
    # A label or a vote in the middle carries no information: 4 right : 0, and 0 : 1.
    log_odds = np.array([math.log(5), -math.log(2)])
    np.testing.assert_allclose(centre, log_odds / np.linalg.norm(log_odds), rtol=1e-12)
    nothing = stacking.centre(index, jnp.full(4, -1), jnp.ones(4), Form(2, 3, True))
    np.testing.assert_array_equal(nothing, 0.0)


@in_float64
def test_the_precision_is_that_of_the_models_prior() -> None:
    """Weights sampled from the sites have the covariance whose inverse is implemented."""
    form, prior, tau = Form(3, 3, False), StackingPrior(kappa=2.0), 0.4
    direction = jnp.array([0.6, 0.0, 0.8])
    precision = prior_precision(tau, direction, prior, form)
    names = list(form.blocks())
    standard = {"tau": jnp.asarray(tau), "common": jnp.zeros(())}
    for name, shape in form.blocks().items():
        own = name in ("weight", "absent", "level_weight")
        site = f"z_{name}" if own else {"level": "eta0"}.get(name, name)
        standard[site] = jnp.zeros(shape)

    def flat(sites: dict[str, jax.Array]) -> jax.Array:
        return join(stacking.parameters({**standard, **sites}, direction, prior, form), form)

    varied = {name: x for name, x in standard.items() if name != "tau"}
    scale = {"offset": prior.offset, "eta0": prior.level}
    slopes = jax.jacobian(flat)(varied)
    covariance = sum(
        (scale.get(name, 1.0) * d.reshape(precision.shape[0], -1))
        @ (scale.get(name, 1.0) * d.reshape(precision.shape[0], -1)).T
        for name, d in slopes.items()
    )
    assert names[0] == "weight"
    np.testing.assert_allclose(precision @ covariance, np.eye(len(precision)), atol=1e-10)


@in_float64
def test_log_density_is_prior_plus_weighted_log_likelihood() -> None:
    form = Form(2, 2, True)
    index = jnp.array([[1, 0], [1, 1], [0, 0]])[:, :, None]
    direction = jnp.array([0.6, 0.8])
    sites = {"tau": jnp.array(0.5), "common": jnp.array(0.3), "z_weight": jnp.array([1.0, -0.5])}
    data = StackingData(index, direction, jnp.array([1, 0, -1]), jnp.array([1.0, 2.0, 1.0]))
    density, _ = log_density(StackingModel(form, noise=0.1), (data,), {}, sites)
    w = 0.5 * (np.array([1.0, -0.5]) + 0.3 * np.array([0.6, 0.8]))
    p = [1 / (1 + math.exp(-(w[0] - w[1]))), 1 / (1 + math.exp(w[0] + w[1]))]
    noisy_probs = [0.9 * x + 0.1 * (1 - x) for x in p]
    expected = math.log(noisy_probs[0]) + 2 * math.log(noisy_probs[1])
    expected += stats.lognorm.logpdf(0.5, 1.0, scale=0.3)
    expected += stats.norm.logpdf([0.3, 1.0, -0.5]).sum()
    assert float(density) == pytest.approx(expected)
