import math

import jax.numpy as jnp
import numpy as np
import pytest
from densities import density_at
from scipy import stats

from judgebayes.compiled.float64 import in_float64
from judgebayes.inference.fast import dawid_skene_em
from judgebayes.inference.sampled import log_likelihoods
from judgebayes.models.base import PanelData
from judgebayes.models.dawid_skene import DawidSkeneModel, DawidSkenePrior

K, J = 3, 2
PI = np.array([0.5, 0.3, 0.2])
CONFUSION = np.random.default_rng(0).dirichlet(np.ones(K), (J, K))


@pytest.fixture(scope="module")
def index() -> np.ndarray:
    return np.random.default_rng(1).integers(-1, K, (5, J, 2))


def likelihood_by_loops(index: np.ndarray, labels: np.ndarray, noise: float) -> list[float]:
    """p(votes, observed label) of every item, by plain loops over everything."""
    likelihoods = []
    for i in range(len(index)):
        total = 0.0
        for k in range(K):
            p = PI[k]
            for j in range(J):
                for vote in index[i, j]:
                    if vote >= 0:
                        p *= CONFUSION[j, k, vote]
            if labels[i] >= 0:
                p *= 1 - noise if labels[i] == k else noise / (K - 1)
            total += p
        likelihoods.append(total)
    return likelihoods


@pytest.mark.parametrize("noise", [0.0, 0.2])
@in_float64
def test_the_model_sums_over_labels_as_plain_loops_do(index: np.ndarray, noise: float) -> None:
    labels, weight = np.array([0, -1, 2, 1, -1]), np.array([1.0, 2.0, 0.5, 0.0, 1.0])
    prior = DawidSkenePrior(2.0, 1.0, 0.5)
    data = PanelData(*map(jnp.asarray, (index, labels, weight)))
    sites = {"pi": jnp.asarray(PI), "confusion": jnp.asarray(CONFUSION)}
    density = density_at(DawidSkeneModel(K, prior, noise), data, sites)
    expected = sum(
        w * math.log(p)
        for w, p in zip(weight, likelihood_by_loops(index, labels, noise), strict=True)
    )
    expected += stats.dirichlet.logpdf(PI, np.full(K, 1.5))
    for j in range(J):
        for k in range(K):
            alpha = np.full(K, 1.5)
            alpha[k] = 3.0
            expected += stats.dirichlet.logpdf(CONFUSION[j, k], alpha)
    assert density == pytest.approx(expected, rel=1e-10)


@in_float64
def test_the_stated_log_prior_is_the_models_up_to_a_constant() -> None:
    prior = DawidSkenePrior(2.0, 1.0, 0.5)
    nothing = PanelData(jnp.full((1, J, 1), -1), jnp.array([-1]), jnp.array([0.0]))
    other = np.random.default_rng(5).dirichlet(np.ones(K), (J, K))
    full, stated = [], []
    for pi, confusion in ((PI, CONFUSION), (PI[::-1], other)):
        sites = {"pi": jnp.asarray(pi), "confusion": jnp.asarray(confusion)}
        full.append(density_at(DawidSkeneModel(K, prior), nothing, sites))
        logs = jnp.log(sites["pi"]), jnp.log(sites["confusion"])
        stated.append(float(dawid_skene_em.log_prior(*logs, prior)))
    assert full[1] - full[0] == pytest.approx(stated[1] - stated[0])


@in_float64
def test_a_label_of_an_impossible_class_has_probability_0_and_not_nan() -> None:
    data = PanelData(jnp.zeros((3, J, 1), int), jnp.array([0, 1, -1]))
    sites = {"pi": jnp.array([0.6, 0.0, 0.4]), "confusion": jnp.asarray(CONFUSION)}
    each = log_likelihoods(DawidSkeneModel(K), data, sites)
    np.testing.assert_array_equal(each["label"] < -1e29, [False, True, False])
    assert np.isfinite(each["votes"]).all()
    assert density_at(DawidSkeneModel(K), data, sites) < -1e29
