"""Deviations summed out of the votes of cells: against integration, sums over all data, and draws."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special, stats

from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.beyond_consensus import cell_votes as cv

FORMS = {"one for all": cv.normal_deviations(), "heavy tails": cv.student_deviations(4.0)}
SATURATED = [([12, 0, 350], [12, 9, 400]), ([900, 1000, 0], [1000, 1000, 0])]
ORDINARY = [([30, 4, 15], [40, 10, 20]), ([0, 0, 800], [0, 0, 1000])]


def integral(count: np.ndarray, n: np.ndarray, b: np.ndarray, deviations: cv.Deviations) -> float:
    """Return the likelihood without binomial coefficients, by adaptive integration."""
    if deviations.each:
        one = deviations._replace(each=False)
        parts = [integral(count[[k]], n[[k]], b[[k]], one) for k in range(3)]
        return float(np.sum(parts))
    x = np.linspace(-30, 30, 2001)

    def log_likelihood(e: np.ndarray) -> np.ndarray:
        at = b + np.asarray(e)[..., None]
        return -(count * np.logaddexp(0, -at) + (n - count) * np.logaddexp(0, at)).sum(-1)

    scale, weight = np.asarray(deviations.scale) * SIGMA, deviations.weight

    def log_density(e: np.ndarray) -> np.ndarray:
        each = stats.norm.logpdf(np.asarray(e)[..., None], 0, scale) + np.log(weight)
        return np.logaddexp.reduce(each, axis=-1)

    log_values = log_likelihood(x) + log_density(x)
    top, inside = log_values.max(), x[log_values > log_values.max() - 80]

    def integrand(e: float) -> float:
        return float(np.exp(log_likelihood(e) + log_density(e) - top))

    ends = inside.min() - 0.03, inside.max() + 0.03
    near = sorted({x[log_values.argmax()], 0.0})
    points = [p for p in near if ends[0] < p < ends[1]]
    total = integrate.quad(integrand, *ends, points=points, limit=500, epsabs=0, epsrel=1e-11)[0]
    return float(np.log(total) + top)


SIGMA = 0.4


@pytest.mark.parametrize("form", FORMS)
@in_float64
def test_the_likelihood_is_that_of_integration(form: str) -> None:
    deviations, logits = FORMS[form], np.array([1.5, -0.5, 0.8])

    @jax.jit
    def log_prob(count: jax.Array, n: jax.Array) -> jax.Array:
        b, sigma = jnp.asarray(logits)[None, None], jnp.asarray(SIGMA)
        votes = cv.CellVotes(n[None, None], b, sigma, deviations)
        return votes.log_prob(count[None, None])[0, 0]

    coarse = 2e-6 if form == "one for all" else 5e-4  # a wide normal, cut off by saturation
    for (count, n), tolerance in [(x, 1e-7) for x in ORDINARY] + [(x, coarse) for x in SATURATED]:
        pair = np.array(count, float), np.array(n, float)
        wanted = integral(*pair, logits, deviations) + np.log(special.binom(*pair[::-1])).sum()
        assert float(log_prob(*pair)) == pytest.approx(wanted, abs=tolerance)


@pytest.mark.parametrize("form", FORMS)
@in_float64
def test_probabilities_of_all_counts_sum_to_one_and_are_those_of_draws(form: str) -> None:
    total, log_odds = jnp.array([[[2.0, 1.0, 3.0]]]), jnp.array([-0.5])
    logits = jnp.array([[[1.5, -0.5, 0.8]]])
    votes = cv.CellVotes(total, logits, jnp.asarray(1.2), FORMS[form], log_odds)
    every = np.array(list(itertools.product(range(3), range(2), range(4))))
    log_prob = jax.jit(jax.vmap(votes.log_prob))(jnp.asarray(every)[:, None, None, :])
    probability = np.exp(np.asarray(log_prob).ravel())
    np.testing.assert_allclose(probability.sum(), 1, atol=1e-5)
    draws = 40_000
    drawn = np.asarray(votes.sample(jax.random.key(0), (draws,))).reshape(draws, 3)
    place = np.ravel_multi_index(tuple(drawn.T), (3, 2, 4))
    counts = np.bincount(place, minlength=len(every))
    expected = draws * probability / probability.sum()
    assert stats.chisquare(counts, expected).pvalue > 1e-3


def test_heavy_tails_are_those_of_students_t() -> None:
    scale, weight, *_ = cv.student_deviations(4.0)
    x = np.linspace(0, 8, 33)
    mixture = stats.norm.pdf(x[:, None], 0, scale) @ weight
    np.testing.assert_allclose(mixture, stats.t.pdf(x, 4), rtol=0.015)
