import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from densities import density_at
from numpyro.infer.util import log_density
from scipy import integrate, stats

from judgebayes.compiled.float64 import in_float64
from judgebayes.inference.fast import one_coin_counts
from judgebayes.inference.fast.one_coin_counts import agreement
from judgebayes.models.base import PanelData
from judgebayes.models.one_coin import OneCoinModel, OneCoinPrior
from judgebayes.votes import Votes

LABELS = np.array([0, 2, 1, -1, 2])
WEIGHT = np.array([1.0, 2.0, 1.0, 1.0, 0.0])


@pytest.fixture(scope="module")
def index() -> np.ndarray:
    """Five items, three judges, two samples, three classes; some missing."""
    return np.random.default_rng(0).integers(-1, 3, (5, 3, 2))


def tally_by_hand(index: np.ndarray) -> tuple[list[float], list[float]]:
    correct, wrong = [0.0] * 3, [0.0] * 3
    for i, j, s in itertools.product(range(5), range(3), range(2)):
        if LABELS[i] >= 0 and index[i, j, s] >= 0:
            right = index[i, j, s] == LABELS[i]
            (correct if right else wrong)[j] += WEIGHT[i]
    return correct, wrong


@in_float64
def test_agreement_is_that_of_a_plain_loop(index: np.ndarray) -> None:
    counts = agreement(Votes(index, None, None, None, 3), jnp.asarray(LABELS), jnp.asarray(WEIGHT))
    np.testing.assert_allclose(counts, tally_by_hand(index))


@in_float64
def test_the_density_of_the_model_is_the_conjugate_one(index: np.ndarray) -> None:
    correct, wrong = tally_by_hand(index)
    alpha, beta = one_coin_counts.posterior(
        jnp.asarray(correct), jnp.asarray(wrong), (2.0, 1.5), n_classes=3
    )

    def density(r: np.ndarray) -> float:
        data = PanelData(*map(jnp.asarray, (index, LABELS, WEIGHT)))
        program = OneCoinModel(3, OneCoinPrior((2.0, 1.5)))
        return density_at(program, data, {"accuracy": jnp.asarray(r)})

    one, two = np.array([0.3, 0.6, 0.9]), np.array([0.5, 0.2, 0.7])
    closed = [stats.beta.logpdf(r, alpha, beta).sum() for r in (one, two)]
    assert density(one) - density(two) == pytest.approx(closed[0] - closed[1])


@pytest.mark.parametrize("samples", [1, 2])
@in_float64
def test_the_integrated_likelihood_is_the_integral(samples: int) -> None:
    index = np.random.default_rng(1).integers(-1, 3, (6, 2, samples))
    alpha, beta = np.array([3.0, 1.2]), np.array([1.5, 2.0])
    log_likelihood = jnp.stack(
        one_coin_counts.log_likelihood_by_class(
            *map(jnp.asarray, (index, alpha, beta)), n_classes=3
        ),
        1,
    )

    def integral(given: np.ndarray, k: int, j: int) -> float:
        cast = given[given >= 0]
        c, w = (cast == k).sum(), (cast != k).sum()
        return integrate.quad(
            lambda r: r**c * ((1 - r) / 2) ** w * stats.beta.pdf(r, alpha[j], beta[j]), 0, 1
        )[0]

    for i in range(6):
        integrals = np.array(
            [math.prod(integral(index[i, j], k, j) for j in range(2)) for k in range(3)]
        )
        np.testing.assert_allclose(
            jax.nn.softmax(log_likelihood[i]), integrals / integrals.sum(), rtol=1e-6, atol=1e-9
        )


@pytest.mark.parametrize(
    "counts", [(8.0, 2.0), (950.0, 50.0), (0.0, 0.0), (3.0, 40.0), (90000.0, 1e4)]
)
@in_float64
def test_noisy_labels_have_the_moments_of_the_numerical_posterior(
    counts: tuple[float, float],
) -> None:
    noise, n_classes = 0.1, 3
    correct, wrong = counts
    alpha, beta = one_coin_counts.posterior(
        jnp.array([correct]), jnp.array([wrong]), (1.0, 1.0), noise, n_classes=n_classes
    )
    r = (np.arange(400_000) + 0.5) / 400_000
    s = r * (1 - noise) + (1 - r) * noise / (n_classes - 1)
    log_density = correct * np.log(s) + wrong * np.log1p(-s)
    p = np.exp(log_density - log_density.max())
    p /= p.sum()
    mean = (p * r).sum()
    deviation = np.sqrt((p * (r - mean) ** 2).sum())
    posterior = stats.beta(float(alpha[0]), float(beta[0]))
    assert posterior.mean() == pytest.approx(mean, rel=1e-5)
    assert posterior.std() == pytest.approx(deviation, rel=1e-3)


@pytest.mark.parametrize(
    ("items", "right", "by_program", "by_method"), [(20, 13, 0.949, 0.713), (1, 1, 0.6, 0.6)]
)
@in_float64
def test_the_method_with_noise_ignores_that_judges_share_wrong_labels(
    items: int, right: int, by_program: float, by_method: float
) -> None:
    """Two judges who always agree: the program by a grid, and each judge's own posterior."""
    vote = (jnp.arange(items) >= right).astype(int)
    data = PanelData(jnp.stack([vote, vote], 1)[..., None], jnp.zeros(items, int))
    grid = (jnp.arange(80) + 0.5) / 80
    first, second = (x.ravel() for x in jnp.meshgrid(grid, grid))
    model = OneCoinModel(2, noise=0.2)

    def density(r: jax.Array) -> jax.Array:
        return log_density(model, (data,), {}, {"accuracy": r})[0]

    p = jax.nn.softmax(jax.jit(jax.vmap(density))(jnp.stack([first, second], 1)))
    assert float(p @ first) == pytest.approx(by_program, abs=1e-3)
    counts = jnp.array([float(right)]), jnp.array([float(items - right)])
    alpha, beta = one_coin_counts.posterior(*counts, (1.0, 1.0), 0.2)
    assert float(alpha[0] / (alpha[0] + beta[0])) == pytest.approx(by_method, abs=1e-3)
