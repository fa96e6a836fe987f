import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.infer import Predictive

from judgebayes.compiled.float64 import in_float64
from judgebayes.models import davidson, hierarchical_davidson
from judgebayes.models.base import unobserved
from judgebayes.models.hierarchical_davidson import (
    SCALES,
    HierarchicalDavidsonModel,
    HierarchicalPrior,
)


@in_float64
def sites() -> dict[str, jax.Array]:
    return {
        "log_beta": jnp.array(0.2),
        "log_beta_by_task": jnp.array([0.1, -0.3]),
        "tie": jnp.array([0.5]),
        "tie_by_task": jnp.array([[0.2, 0.0]]),
        "gamma": jnp.array([1.0]),
        "gamma_by_task": jnp.array([[-0.5, 0.4]]),
    }


@in_float64
def test_task_parameters_are_centre_plus_deviation() -> None:
    parameters = hierarchical_davidson.task_parameters(sites(), jnp.array([1, 0, -1]))
    np.testing.assert_allclose(parameters.beta, np.exp([0.2 - 0.3, 0.2 + 0.1, 0.2]))
    np.testing.assert_allclose(parameters.gamma[:, 0], [1.4, 0.5, 1.0])
    # eta0 is such that the tie logit at t = -1 is tie + deviation.
    np.testing.assert_allclose((parameters.eta0 - parameters.gamma)[:, 0], [0.5, 0.7, 0.5])


@in_float64
def test_one_task_is_the_flat_link() -> None:
    counts = jnp.array([[1, 0, 3], [2, 2, 0]])
    evidence = davidson.features(counts)
    task = jnp.array([0, 0])
    per_item = hierarchical_davidson.task_parameters(sites(), task)
    flat = davidson.Parameters(
        per_item.beta[0], per_item.eta0[0], per_item.gamma[0], jnp.asarray(0.0)
    )
    np.testing.assert_allclose(
        davidson.link(per_item, evidence, n_classes=3), davidson.link(flat, evidence, n_classes=3)
    )


@in_float64
def test_deviations_have_the_stated_spread_and_share_it() -> None:
    """Student t with 4 degrees of freedom: variance scale^2 * 4 / 2, with dependent magnitudes."""
    evidence = davidson.features(jnp.zeros((1, 3), int))
    program = HierarchicalDavidsonModel(3, 3, prior=HierarchicalPrior(df=12.0))
    data = davidson.DavidsonData(evidence, jnp.array([-1]), task=jnp.array([0]))
    samples = Predictive(program, num_samples=20_000)(jax.random.key(0), unobserved(program, data))
    for name, scale in SCALES.items():
        if f"{name}_by_task" in samples:
            x = np.asarray(samples[f"{name}_by_task"]).reshape(20_000, 3)
            assert x.std() == pytest.approx(scale * np.sqrt(12 / 10), rel=0.05)
            sizes = np.abs(x)
            assert abs(np.corrcoef(x[:, 0], x[:, 1])[0, 1]) < 0.05
            assert np.corrcoef(sizes[:, 0], sizes[:, 1])[0, 1] > 0.03


def test_the_spread_is_that_of_a_normal_with_its_variance_integrated_out() -> None:
    rng = np.random.default_rng(0)
    df, scale = 4.0, 0.1
    variance = 1 / rng.gamma(df / 2, 2 / (df * scale**2), 200_000)
    mixed = rng.normal(size=(200_000, 2)) * np.sqrt(variance)[:, None]
    student = scale * rng.standard_t(df, 200_000)
    quantiles = [0.05, 0.25, 0.5, 0.75, 0.95]
    np.testing.assert_allclose(
        np.quantile(mixed[:, 0], quantiles), np.quantile(student, quantiles), atol=0.003
    )
