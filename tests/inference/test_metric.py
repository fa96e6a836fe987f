"""NUTS on a program with correlated parameters: exact moments, in short trajectories."""

from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from judgebayes.compiled.float64 import in_float64
from judgebayes.inference import NUTS
from judgebayes.inference.nuts import near_posterior, split_rhat
from judgebayes.inference.problem import Problem
from judgebayes.models.base import Traits

SIZE = 8
LOADING = np.linspace(0.5, 1.5, SIZE)


class Measured(NamedTuple):
    total: jax.Array
    spread: jax.Array


class Ridge:
    """Parameters whose sum is known a hundred times better than each, and a spread."""

    traits = Traits(("total", "spread"), "all cells")
    dims: ClassVar[dict[str, tuple[str, ...]]] = {}

    def __call__(self, data: Measured) -> None:
        x = numpyro.sample("x", dist.Normal(0.0, 1.0).expand((SIZE,)).to_event(1))
        log_sigma = numpyro.sample("log_sigma", dist.Normal(0.0, 0.5))
        numpyro.sample("total", dist.Normal(x @ jnp.asarray(LOADING), 0.01), obs=data.total)
        numpyro.sample("spread", dist.Normal(log_sigma, 0.5), obs=data.spread)


def exact() -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the covariance of x given its measured total of 2."""
    covariance = np.linalg.inv(np.eye(SIZE) + np.outer(LOADING, LOADING) / 0.01**2)
    return covariance @ LOADING * 2.0 / 0.01**2, covariance


def measured() -> Problem:
    data = Measured(jnp.asarray(2.0), jnp.asarray(1.0))
    return Problem(Ridge(), data, size=jnp.ones(()), spreads=("log_sigma",))


@in_float64
def test_the_normal_near_a_normal_posterior_is_exact() -> None:
    near = jax.jit(lambda: near_posterior(measured()))()
    mean, covariance = exact()
    np.testing.assert_allclose(near.mean, [0.5, *mean], atol=1e-5)  # log_sigma, then x
    whole = np.zeros((SIZE + 1, SIZE + 1))
    whole[0, 0], whole[1:, 1:] = 0.5**2 / 2, covariance
    np.testing.assert_allclose(near.factor @ near.factor.T, whole, atol=1e-5)


@in_float64
def test_correlated_parameters_have_their_exact_moments_in_short_trajectories() -> None:
    sampler = NUTS(draws=1000, warmup=200, chains=4)
    chains = jax.jit(lambda key: sampler.solve(measured(), key))(jax.random.key(0)).chains
    assert chains is not None
    x, log_sigma = (np.asarray(chains.draws[n]) for n in ("x", "log_sigma"))
    mean, covariance = exact()
    np.testing.assert_allclose(x.mean((0, 1)), mean, atol=0.08)
    np.testing.assert_allclose(np.cov(x.reshape(-1, SIZE).T), covariance, atol=0.1)
    np.testing.assert_allclose((x @ LOADING).std(), 0.01, rtol=0.1)
    np.testing.assert_allclose(log_sigma.mean(), 0.5, atol=0.05)
    np.testing.assert_allclose(log_sigma.std(), 0.5 / np.sqrt(2), rtol=0.1)
    assert float(split_rhat(chains.draws["x"]).max()) < 1.01
    assert float(chains.tree_depth.mean()) < 4
