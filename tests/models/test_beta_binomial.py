"""The Beta-Binomial mixture against SciPy, enumeration and NumPyro."""

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from densities import density_at
from scipy import special, stats

from judgebayes.compiled.float64 import in_float64
from judgebayes.models import beta_binomial
from judgebayes.models.beta_binomial import BetaBinomialModel, CountData, Parameters

THETA = Parameters(np.array([0.3, 0.7]), np.array([0.25, 0.9]), np.array([0.5, 0.1]))


def theta() -> Parameters:
    return Parameters(*(jnp.asarray(x) for x in THETA))


@pytest.mark.parametrize("votes", [1, 5, 11, 40])
@in_float64
def test_the_pmf_is_scipys(votes: int) -> None:
    pmf = np.exp(beta_binomial.log_pmf(theta(), votes))
    alpha, beta = THETA.mean / THETA.dispersion, (1 - THETA.mean) / THETA.dispersion
    each = [
        stats.betabinom.pmf(np.arange(votes + 1), votes, a, b)
        for a, b in zip(alpha, beta, strict=True)
    ]
    np.testing.assert_allclose(pmf, THETA.share @ np.array(each), rtol=1e-11)
    np.testing.assert_allclose(pmf.sum(), 1, atol=1e-12)


@in_float64
def test_without_dispersion_it_is_the_binomial() -> None:
    one = Parameters(jnp.ones(1), jnp.array([0.7]), jnp.zeros(1))
    pmf = np.exp(beta_binomial.log_pmf(one, 11))
    np.testing.assert_allclose(pmf, stats.binom.pmf(np.arange(12), 11, 0.7), rtol=1e-11)


@in_float64
def test_the_error_of_a_majority_is_that_of_enumeration() -> None:
    """Eq 5 at k = 5, from the probabilities of all 32 sequences of votes."""
    wrong = 0.0
    for code in range(32):
        right = bin(code).count("1")
        if right < 3:
            for w, m, d in zip(*THETA, strict=True):
                a, b = m / d, (1 - m) / d
                wrong += w * special.beta(a + right, b + 5 - right) / special.beta(a, b)
    assert float(beta_binomial.majority_error(theta(), 5)) == pytest.approx(wrong, abs=1e-12)


@in_float64
def test_items_may_have_different_numbers_of_votes() -> None:
    correct, given = jnp.array([2, 0, 7, 3]), jnp.array([3, 5, 7, 3])
    log_pmf = beta_binomial.mixture_log_pmf(theta(), correct, given, 7)
    for place in range(4):
        single = beta_binomial.log_pmf(theta(), int(given[place]))[int(correct[place])]
        assert float(log_pmf[place]) == pytest.approx(float(single), abs=1e-12)


@in_float64
def test_the_order_of_the_components_is_that_of_two_independent_logits() -> None:
    """centre and gap of the prior are the ordered pair's: the stated densities agree."""
    rng = np.random.default_rng(0)
    pair = np.sort(rng.normal(1.0, 1.5, (200_000, 2)), axis=1)
    gap, centre = pair[:, 1] - pair[:, 0], pair.mean(1)
    assert stats.kstest(gap, stats.halfnorm(scale=1.5 * np.sqrt(2)).cdf).pvalue > 1e-3
    assert stats.kstest(centre, stats.norm(1.0, 1.5 / np.sqrt(2)).cdf).pvalue > 1e-3
    assert abs(np.corrcoef(gap, centre)[0, 1]) < 0.01


SITES = {
    "centre": 0.4,
    "gap": 2.0,
    "share": 0.3,
    "log_dispersion": np.array([-0.5, -2.0]),
}


@in_float64
def test_the_models_density_is_prior_times_mixture() -> None:
    correct, given = jnp.array([3, 0, 5, -1]), jnp.array([5, 5, 5, 5])
    weight = jnp.array([1.0, 2.0, 0.0, 1.0])
    sites = {k: jnp.asarray(v) for k, v in SITES.items()}
    data = CountData(correct, given, weight)
    density = density_at(BetaBinomialModel(5), data, sites)
    one = beta_binomial.parameters(sites)
    pmf = beta_binomial.log_pmf(one, 5)
    prior = (
        dist.Normal(1.0, 1.5 / np.sqrt(2)).log_prob(0.4)
        + dist.HalfNormal(1.5 * np.sqrt(2)).log_prob(2.0)
        + dist.Beta(2, 2).log_prob(0.3)
        + dist.Normal(-1, 1.25).log_prob(sites["log_dispersion"]).sum()
    )
    assert density == pytest.approx(float(prior + pmf[3] + 2 * pmf[0]), abs=1e-9)
    assert float(one.mean[0]) < float(one.mean[1])


@in_float64
def test_unordered_components_are_the_same_posterior_twice() -> None:
    """A negative gap swaps the components; the density is half of the ordered one."""
    data = CountData(jnp.array([3, 0, 5]), jnp.full(3, 5), jnp.ones(3))
    program = BetaBinomialModel(5)
    unordered, in_order = program.for_sampler(data)
    sites = {k: jnp.asarray(v) for k, v in SITES.items()}
    permuted = {
        "centre": sites["centre"],
        "gap": -sites["gap"],
        "share": 1 - sites["share"],
        "log_dispersion": sites["log_dispersion"][::-1],
    }
    for sites_of in (sites, permuted):
        back = in_order(sites_of)
        for name, value in sites.items():
            np.testing.assert_allclose(back[name], value, atol=1e-15)
        assert density_at(unordered, data, sites_of) == pytest.approx(
            density_at(program, data, sites) - np.log(2), abs=1e-9
        )


@in_float64
def test_one_component_is_in_order() -> None:
    sites = {"centre": jnp.asarray(0.4), "log_dispersion": jnp.array([-0.5])}
    data = CountData(jnp.array([3]), jnp.full(1, 5))
    assert BetaBinomialModel(5, 1).for_sampler(data)[1](sites) == sites
