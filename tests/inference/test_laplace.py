import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from judgebayes.compiled.float64 import in_float64
from judgebayes.inference import Status
from judgebayes.inference.laplace import (
    _SoftmaxProblem,
    approximate,
    leave_one_out_predictors,
    log_likelihood,
)
from judgebayes.models.base import noise_matrix

READ_OUT = np.array([[-0.5, 0.0], [0.0, 1.0], [0.5, 0.0]])


def make(noise: float, items: int = 40) -> _SoftmaxProblem:
    rng = np.random.default_rng(0)
    design = jnp.asarray(rng.normal(size=(items, 2, 5)))
    labels = jnp.asarray(rng.integers(0, 3, items))
    weight = jnp.asarray(rng.uniform(0, 2, items))
    return _SoftmaxProblem(design, jnp.asarray(READ_OUT), noise_matrix(noise, 3), labels, weight)


def objective(problem: _SoftmaxProblem, x: jax.Array) -> jax.Array:
    p = jax.nn.softmax((problem.design @ x) @ problem.read_out.T) @ problem.error
    at_label = jnp.take_along_axis(p, problem.labels[:, None], 1)[:, 0]
    return -(problem.weight * jnp.log(at_label)).sum() + 0.5 * x @ x


@pytest.mark.parametrize("noise", [0.0, 0.15])
@in_float64
def test_the_mode_is_scipys(noise: float) -> None:
    problem = make(noise)
    fit = approximate(problem, jnp.eye(5), jnp.zeros(5))
    assert int(fit.status) == Status.CONVERGED
    gradient = jax.jit(jax.grad(lambda x: objective(problem, x)))
    reference = optimize.minimize(
        lambda x: float(objective(problem, jnp.asarray(x))),
        np.zeros(5),
        jac=lambda x: np.asarray(gradient(jnp.asarray(x))),
        tol=1e-12,
    )
    np.testing.assert_allclose(fit.mode, reference.x, atol=1e-6)


@in_float64
def test_without_noise_the_precision_is_the_hessian() -> None:
    problem = make(0.0)
    fit = approximate(problem, jnp.eye(5), jnp.zeros(5))
    hessian = jax.jit(jax.hessian(lambda x: objective(problem, x)))(fit.mode)
    np.testing.assert_allclose(fit.precision, hessian, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(("noise", "off"), [(0.0, 0.05), (0.15, 0.1)])
@in_float64
def test_leaving_one_out_is_refitting_without_it(noise: float, off: float) -> None:
    """Up to a share of what leaving out changes: with noise, the information is the expected one."""
    problem = make(noise)._replace(weight=jnp.ones(40).at[3].set(0.0))

    def without(i: jax.Array) -> jax.Array:
        rest = problem._replace(weight=problem.weight.at[i].set(0.0))
        x = approximate(rest, jnp.eye(5), jnp.zeros(5)).mode
        p = jax.nn.softmax((problem.design[i] @ x) @ problem.read_out.T) @ problem.error
        return jnp.log(p[problem.labels[i]])

    brute = jnp.where(problem.weight > 0, jax.jit(jax.vmap(without))(jnp.arange(40)), 0.0).sum()
    fit = approximate(problem, jnp.eye(5), jnp.zeros(5))
    inside = -objective(problem, fit.mode) + 0.5 * fit.mode @ fit.mode
    near = log_likelihood(problem, leave_one_out_predictors(problem, fit))
    assert abs(near - brute) < off * (inside - brute)


@in_float64
def test_an_item_of_weight_2_is_left_out_one_copy_at_a_time() -> None:
    problem = make(0.0)._replace(weight=jnp.ones(40).at[:5].set(2.0))
    twice = jnp.concatenate([jnp.arange(40), jnp.arange(5)])
    repeated = problem._replace(
        design=problem.design[twice],
        labels=problem.labels[twice],
        weight=jnp.ones(45),
    )
    one, other = (
        log_likelihood(
            p,
            leave_one_out_predictors(p, approximate(p, jnp.eye(5), jnp.zeros(5))),
        )
        for p in (problem, repeated)
    )
    assert float(one) == pytest.approx(float(other))


@in_float64
def test_a_far_start_comes_back() -> None:
    problem = make(0.0)
    near, far = (
        approximate(problem, jnp.eye(5), start) for start in (jnp.zeros(5), jnp.full(5, 40.0))
    )
    assert int(far.status) == Status.CONVERGED
    np.testing.assert_allclose(near.mode, far.mode, atol=1e-7)


@in_float64
def test_running_out_of_steps_is_a_status() -> None:
    fit = approximate(make(0.0), jnp.eye(5), jnp.full(5, 3.0), max_steps=1)
    assert int(fit.status) == Status.MAX_STEPS
