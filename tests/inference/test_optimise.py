import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.minimising import minimise
from judgebayes.inference.optimise import differentiated, minimise_each, projected_gradient
from judgebayes.inference.status import Status

INF = jnp.inf


def rosenbrock(x: jax.Array) -> jax.Array:
    return jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


@pytest.mark.parametrize("d", [2, 6])
@in_float64
def test_rosenbrock_is_minimised(d: int) -> None:
    solution = minimise(rosenbrock, jnp.full(d, -1.0), jnp.full(d, -INF), jnp.full(d, INF))
    assert int(solution.status) == Status.CONVERGED
    np.testing.assert_allclose(solution.x, 1.0, atol=1e-7)


@in_float64
def test_random_boxed_quadratics_equal_scipy() -> None:
    rng = np.random.default_rng(0)

    def solve(a: jax.Array, b: jax.Array, low: jax.Array, high: jax.Array) -> tuple[jax.Array, ...]:
        solution = minimise(lambda x: 0.5 * x @ a @ x - b @ x, jnp.zeros(4), low, high)
        return solution.x, solution.status, solution.projected_gradient, solution.steps

    roots = rng.normal(size=(50, 4, 4))
    a = roots @ roots.transpose(0, 2, 1) + 0.1 * np.eye(4)
    b = 3 * rng.normal(size=(50, 4))
    low, high = -rng.uniform(0, 1, (50, 4)), rng.uniform(0, 1, (50, 4))
    x, status, gap, steps = jax.jit(jax.vmap(solve))(*map(jnp.asarray, (a, b, low, high)))
    assert (np.asarray(status) == Status.CONVERGED).all()
    assert float(gap.max()) <= 1e-9
    # Parameters stop at bounds within a step, so no step on a quadratic is wasted.
    assert int(steps.max()) <= 8
    for i in range(50):
        reference = optimize.minimize(
            lambda v, i=i: 0.5 * v @ a[i] @ v - b[i] @ v,
            np.zeros(4),
            jac=lambda v, i=i: a[i] @ v - b[i],
            bounds=list(zip(low[i], high[i], strict=True)),
            options={"ftol": 1e-15, "gtol": 1e-10},
        )
        np.testing.assert_allclose(x[i], reference.x, atol=1e-5)
        # Active bounds are hit exactly, where SciPy's are.
        np.testing.assert_array_equal(x[i] == high[i], reference.x == high[i])
        np.testing.assert_array_equal(x[i] == low[i], reference.x == low[i])


@in_float64
def test_an_indefinite_start_leads_downhill() -> None:
    # At the origin the Hessian is negative definite; the minima are at +-1 and 0.5 is the bound.
    solution = minimise(
        lambda x: jnp.sum(0.25 * x**4 - 0.5 * x**2),
        jnp.array([0.1, -0.1]),
        jnp.array([-INF, -INF]),
        jnp.array([INF, 0.5]),
    )
    np.testing.assert_allclose(solution.x, [1.0, -1.0], atol=1e-8)


@in_float64
def test_vmap_equals_a_loop_and_lanes_stop_on_their_own() -> None:
    starts = jnp.asarray(np.random.default_rng(1).normal(size=(6, 3)))
    low, high = jnp.full(3, -2.0), jnp.full(3, 2.0)

    def solve(start: jax.Array) -> tuple[jax.Array, jax.Array]:
        solution = minimise(rosenbrock, start, low, high)
        return solution.x, solution.steps

    x, steps = jax.vmap(solve)(starts)
    for i, start in enumerate(starts):
        x_alone, own = solve(start)
        np.testing.assert_allclose(x[i], x_alone, atol=1e-9)
        assert abs(int(steps[i]) - int(own)) <= 1
    assert len(set(np.asarray(steps).tolist())) > 1


@in_float64
def test_several_starts_equal_separate_runs() -> None:
    starts = jnp.asarray(np.random.default_rng(2).normal(size=(4, 3)))
    low, high = jnp.full(3, -2.0), jnp.full(3, 2.0)
    together = minimise_each(differentiated(rosenbrock), starts, low, high)
    for i, start in enumerate(starts):
        separate = minimise(rosenbrock, start, low, high)
        np.testing.assert_allclose(together.x[i], separate.x, atol=1e-12)
        assert int(together.steps[i]) == int(separate.steps)
        assert int(together.status[i]) == int(separate.status) == Status.CONVERGED
        np.testing.assert_allclose(together.value[i], separate.value, atol=1e-20)
    assert len(set(np.asarray(together.steps).tolist())) > 1


@in_float64
def test_a_start_that_fails_does_not_spoil_the_next() -> None:
    starts = jnp.array([[-1.0], [3.0], [jnp.nan], [2.0]])
    solutions = minimise_each(
        differentiated(lambda x: jnp.sum(x - jnp.log(x))), starts, -jnp.ones(1), jnp.full(1, 9.0)
    )
    expected = [Status.NONFINITE, Status.CONVERGED, Status.NONFINITE, Status.CONVERGED]
    assert [Status(int(s)) for s in solutions.status] == expected
    np.testing.assert_allclose(solutions.x[1::2, 0], 1.0)


@in_float64
def test_converged_means_converged() -> None:
    low, high = jnp.full(2, -INF), jnp.full(2, INF)
    short = minimise(rosenbrock, jnp.array([-1.0, 1.5]), low, high, max_steps=3)
    assert int(short.status) == Status.MAX_STEPS
    assert float(short.projected_gradient) > 1e-9
    broken = minimise(lambda x: jnp.sum(jnp.log(x)), -jnp.ones(2), low, high)
    assert int(broken.status) == Status.NONFINITE
    no_hessian = minimise_each(
        lambda x: (jnp.sum(x), jnp.ones(2), jnp.full((2, 2), jnp.nan)),
        jnp.ones((1, 2)),
        low,
        high,
    )
    assert (
        int(no_hessian.status[0]) == Status.STALLED
    )  # without a curvature there is no step, and the loop stops soon
    assert int(no_hessian.steps[0]) < 20
    kinked = minimise(lambda x: jnp.sum(jnp.abs(x - 0.3)), jnp.ones(2), low, high)
    assert int(kinked.status) in (Status.STALLED, Status.MAX_STEPS)


@in_float64
def test_a_start_outside_the_box_is_projected() -> None:
    solution = minimise(
        lambda x: jnp.sum(x**2), jnp.array([9.0]), jnp.array([1.0]), jnp.array([4.0])
    )
    assert solution.x.tolist() == [1.0]
    assert int(solution.status) == Status.CONVERGED


def test_projected_gradient_is_zero_at_a_bound_that_holds() -> None:
    gap = projected_gradient(jnp.array([0.0]), jnp.array([3.0]), jnp.array([0.0]), jnp.array([1.0]))
    assert float(gap) == 0.0


def test_every_status_has_a_sentence() -> None:
    for status in Status:
        assert status.sentence.endswith(".")


@pytest.mark.parametrize("size", [2, 3, 6])
@in_float64
def test_the_best_of_five_starts_is_scipys(size: int) -> None:
    """Many minima, some of them at bounds: the lowest objective to 1e-12."""
    rng = np.random.default_rng(size)
    root = rng.normal(size=(size, size))
    a, b = jnp.asarray(0.3 * root @ root.T), jnp.asarray(rng.normal(size=size))
    low, high = -rng.uniform(0.5, 2, size), rng.uniform(0.5, 2, size)
    starts = rng.uniform(low, high, (5, size))

    @jax.jit
    def objective(x: jax.Array) -> jax.Array:
        return 0.5 * x @ a @ x - b @ x + jnp.sum(jnp.cos(3 * x))

    gradient = jax.jit(jax.grad(objective))
    ends = minimise_each(
        differentiated(objective), jnp.asarray(starts), jnp.asarray(low), jnp.asarray(high)
    )
    assert (np.asarray(ends.status) == Status.CONVERGED).all()
    assert ((low <= ends.x) & (ends.x <= high)).all()
    theirs = min(
        optimize.minimize(
            lambda x: float(objective(x)),
            start,
            jac=lambda x: np.asarray(gradient(x)),
            bounds=list(zip(low, high, strict=True)),
            options={"ftol": 1e-16, "gtol": 1e-12},
        ).fun
        for start in starts
    )
    assert float(ends.value.min()) <= theirs + 1e-12
