"""Importance sampling from the prior, where the posterior is known exactly."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from jaxtyping import Array
from scipy import special, stats

from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.betaconform.importance import PriorImportance
from judgebayes.inference import Status
from judgebayes.inference.laplace import systematic
from judgebayes.inference.problem import Problem, Result
from judgebayes.models.base import Traits, observe


class Tosses(NamedTuple):
    labels: Array
    weight: Array


class Coin:
    traits = Traits(("label",), "labelled items")

    def __call__(self, data: Tosses) -> None:
        p = numpyro.sample("p", dist.Beta(2.0, 2.0))
        heads = jnp.maximum(data.labels, 0)
        each = dist.Bernoulli(p).expand(heads.shape)
        observe("label", each, heads, data.labels >= 0, data.weight)


@jax.jit
def coins(weight: jax.Array) -> Result:
    """Ten tosses with a Beta(2, 2) prior, eight of them heads; one more is unknown."""
    tosses = Tosses(jnp.array([1] * 8 + [0, 0, -1]), weight)
    return PriorImportance(2**14, kept=4000).solve(Problem(Coin(), tosses), jax.random.key(0))


@in_float64
def test_the_draws_are_the_posterior_and_the_objective_the_evidence() -> None:
    fit = coins(jnp.ones(11))
    assert int(fit.status) == Status.CONVERGED
    exact = stats.beta(10, 4)
    level = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    # 2**14 weighted draws have an ESS of about 7,000: a quantile's error is below 0.005 of probability.
    assert np.abs(exact.cdf(np.quantile(fit.draws["p"], level)) - level).max() < 0.02
    evidence = special.betaln(10, 4) - special.betaln(2, 2)
    assert float(fit.details["objective"]) == pytest.approx(-evidence, abs=0.03)


@in_float64
def test_weights_count_items_and_vmap_is_a_loop() -> None:
    weight = jnp.stack([jnp.ones(11), jnp.array([0.0] * 8 + [1.0, 2.0, 1.0])])
    both = jax.jit(jax.vmap(coins))(weight)
    for place in range(2):
        np.testing.assert_allclose(both.draws["p"][place], coins(weight[place]).draws["p"])
    assert float(both.draws["p"][1].mean()) == pytest.approx(2 / 7, abs=0.01)


@in_float64
def test_a_small_effective_sample_size_is_unmixed() -> None:
    assert int(coins(jnp.full(11, 3e5)).status) == Status.UNMIXED


def test_resampling_is_in_proportion() -> None:
    chosen = systematic(jnp.array([0.1, 0.0, 0.65, 0.25]), 20)
    np.testing.assert_array_equal(np.bincount(chosen, minlength=4), [2, 0, 13, 5])
