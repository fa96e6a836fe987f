"""NUTS on fifty labelled items of real votes, against a ten times longer run and quadrature."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro import distributions as dist
from numpyro.diagnostics import effective_sample_size

from judgebayes import Davidson
from judgebayes.compiled.float64 import in_float64
from judgebayes.evaluate.splits import random_splits
from judgebayes.experiments.core import Run
from judgebayes.experiments.data import rb2
from judgebayes.inference import NUTS, Status, posterior
from judgebayes.inference.fit import Fit
from judgebayes.models import davidson
from judgebayes.votes import Votes

pytestmark = pytest.mark.slow

NAMES = ("beta", "eta0", "gamma")
LABELLED = 50
NODES = 120


@pytest.fixture(scope="module")
def training(real: Run) -> tuple[Votes, np.ndarray]:
    """Eight votes of gpt-5.4 on fifty pairs of RewardBench 2's Factuality."""
    cell = rb2(real, "gpt-5.4", "Factuality")
    items = random_splits(cell.votes.n_items, splits=1, calibration=LABELLED).calibration[0]
    return cell.votes.take(items), cell.labels[items]


@pytest.fixture(scope="module")
def usual(training: tuple[Votes, np.ndarray]) -> Fit:
    return Davidson(NUTS()).fit(*training, key=jax.random.PRNGKey(1))


@pytest.fixture(scope="module")
def long(training: tuple[Votes, np.ndarray]) -> Fit:
    return Davidson(NUTS(draws=10_000)).fit(*training, key=jax.random.PRNGKey(2))


def moments(fit: Fit) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations of the parameters, and their Monte Carlo errors.

    The error of a standard deviation is that of the mean square, by the delta method.
    """
    assert fit.chains is not None
    draws = np.stack([np.asarray(fit.chains.draws[n]).reshape(4, -1) for n in NAMES], -1)
    mean, sd = draws.mean((0, 1)), draws.std((0, 1))
    square = (draws - mean) ** 2
    error = sd / np.sqrt(effective_sample_size(draws))
    error_of_sd = square.std((0, 1)) / np.sqrt(effective_sample_size(square)) / (2 * sd)
    return np.stack([mean, sd]), np.stack([error, error_of_sd])


@in_float64
def quadrature(votes: Votes, labels: np.ndarray) -> np.ndarray:
    """Means and standard deviations by Gauss and Legendre's rule over the whole box."""
    evidence = davidson.features(votes.pooled_counts())
    prior = davidson.DavidsonPrior()
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    box = [davidson.BOX[name] for name in NAMES]
    axes = [low + (nodes + 1) * (high - low) / 2 for low, high in box]
    grid = jnp.asarray(np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3))
    volume = jnp.asarray(np.einsum("i,j,k->ijk", weights, weights, weights).ravel())

    def density(x: jax.Array) -> jax.Array:
        theta = davidson.Parameters(x[0], x[1:2], x[2:3], jnp.zeros(()))
        log_probs = davidson.link(theta, evidence, n_classes=3)
        likelihood = log_probs[jnp.arange(LABELLED), labels].sum()
        return likelihood + sum(
            dist.Normal(*getattr(prior, name)).log_prob(x[i]) for i, name in enumerate(NAMES)
        )

    log_posterior = jax.jit(partial(jax.lax.map, density, batch_size=NODES**2))(grid)
    weight = volume * jnp.exp(log_posterior - log_posterior.max())
    weight /= weight.sum()
    mean = weight @ grid
    return np.stack([mean, np.sqrt(weight @ (grid - mean) ** 2)])


def test_the_chains_mix(usual: Fit, long: Fit) -> None:
    for fit in (usual, long):
        assert fit.chains is not None
        assert int(fit.status) == Status.CONVERGED
        assert (posterior.summary(posterior.to_arviz(fit.chains))["r_hat"] < 1.01).all()


def test_a_ten_times_longer_run_agrees(usual: Fit, long: Fit) -> None:
    (estimate, error), (long_estimate, long_error) = moments(usual), moments(long)
    distance = np.abs(estimate - long_estimate) / np.hypot(error, long_error)
    assert (distance < 3).all(), distance


def test_quadrature_agrees(usual: Fit, long: Fit, training: tuple[Votes, np.ndarray]) -> None:
    exact = quadrature(*training)
    for fit in (usual, long):
        estimate, error = moments(fit)
        distance = np.abs(estimate - exact) / error
        assert (distance < 3).all(), (estimate, exact)
