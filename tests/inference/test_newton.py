"""The loop ends with the right status, and every form of a step solves the same dense system."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from judgebayes.compiled.float64 import in_float64
from judgebayes.inference.optimise import (
    Newton,
    Point,
    State,
    Trial,
    absolute_step,
    positive_step,
    trial,
)
from judgebayes.inference.status import Status
from judgebayes.item_response import arrow_step, block_inverses

Arrow = tuple[jax.Array, jax.Array, jax.Array]
"""The outer diagonal, the cross terms, and the blocks."""


def dense(arrow: Arrow) -> np.ndarray:
    """Return the matrix of an arrow, the blocks' parameters after the outer ones."""
    diagonal, cross, block = arrow
    n_blocks, _, n_outer = cross.shape
    size = n_outer + 2 * n_blocks
    whole = np.zeros((size, size))
    whole[:n_outer, :n_outer] = np.diag(diagonal)
    for i in range(n_blocks):
        rows = slice(n_outer + 2 * i, n_outer + 2 * i + 2)
        whole[rows, rows] = block[i]
        whole[rows, :n_outer] = cross[i]
        whole[:n_outer, rows] = cross[i].T
    return whole


def some_arrow(rng: np.random.Generator, n_blocks: int, n_outer: int, cross: float) -> Arrow:
    """Return an arrow that is positive definite by diagonal dominance."""
    root = rng.normal(size=(n_blocks, 2, 2))
    block = root @ root.transpose(0, 2, 1) + (0.1 + cross * n_outer) * np.eye(2)
    diagonal = rng.uniform(0.1, 3, n_outer) + 2 * cross * n_blocks
    across = cross * rng.uniform(-1, 1, (n_blocks, 2, n_outer))
    return jnp.asarray(diagonal), jnp.asarray(across), jnp.asarray(block)


@pytest.mark.parametrize("damping", [0.0, 1e-3, 10.0])
@pytest.mark.parametrize("cross", [0.0, 0.7])
@pytest.mark.parametrize(("n_blocks", "n_outer"), [(1, 1), (5, 2), (2, 7)])
@in_float64
def test_an_arrow_and_its_blocks_solve_the_dense_system(
    n_blocks: int, n_outer: int, cross: float, damping: float
) -> None:
    rng = np.random.default_rng(n_blocks)
    arrow = some_arrow(rng, n_blocks, n_outer, cross)
    gradient = rng.normal(size=n_outer + 2 * n_blocks)
    matrix = dense(arrow) + damping * np.eye(len(gradient))
    expected = -np.linalg.solve(matrix, gradient)
    inner = jnp.asarray(gradient[n_outer:]).reshape(-1, 2)
    outer_step, inner_step = arrow_step(*arrow, jnp.asarray(gradient[:n_outer]), inner, damping)
    step = np.concatenate([outer_step, np.ravel(inner_step)])
    np.testing.assert_allclose(step, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        positive_step(jnp.asarray(dense(arrow)), jnp.asarray(gradient), damping),
        expected,
        rtol=1e-9,
        atol=1e-12,
    )
    inverse = np.linalg.inv(arrow[2] + damping * np.eye(2))
    np.testing.assert_allclose(block_inverses(arrow[2], damping), inverse, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
@in_float64
def test_an_absolute_step_is_the_solution_and_goes_downhill(size: int) -> None:
    rng = np.random.default_rng(size)
    root = rng.normal(size=(50, size, size))
    gradient = rng.normal(size=(50, size))
    free = rng.random((50, size)) < 0.8

    @jax.jit
    @jax.vmap
    def step(matrix: jax.Array, free: jax.Array, gradient: jax.Array) -> jax.Array:
        return absolute_step(matrix, free, gradient, 1e-3)

    positive = root @ root.transpose(0, 2, 1) + 0.01 * np.eye(size)
    steps = np.asarray(step(*map(jnp.asarray, (positive, free, gradient))))
    for matrix, is_free, g, d in zip(positive, free, gradient, steps, strict=True):
        damped = (matrix + 1e-3 * np.eye(size))[np.ix_(is_free, is_free)]
        np.testing.assert_allclose(d[is_free], -np.linalg.solve(damped, g[is_free]), rtol=1e-8)
        assert not d[~is_free].any()
    indefinite = root + root.transpose(0, 2, 1)
    steps = np.asarray(step(*map(jnp.asarray, (indefinite, free, gradient))))
    assert (np.sum(steps * gradient, axis=1)[free.any(1)] < 0).all()


def scalar(function: Any, tolerance: float = 1e-9, max_steps: int = 100) -> Newton:
    """Return Newton's method on a function of one vector."""

    def visit(x: jax.Array) -> Point:
        value, gradient = jax.value_and_grad(function)(x)
        return Point(x, value, jnp.abs(gradient).max(), gradient, jax.hessian(function)(x))

    def propose(state: State) -> Trial:
        at = state.at
        return trial(at, at.x + positive_step(at.hessian, at.gradient, state.damping))

    return Newton(visit, propose, tolerance, max_steps)


def softplus(x: jax.Array) -> jax.Array:
    return jnp.sum(jax.nn.softplus(x) - 0.3 * x)


@pytest.mark.parametrize(
    ("newton", "start", "expected"),
    [
        (scalar(softplus), 8.0, Status.CONVERGED),
        (scalar(softplus, max_steps=2), 8.0, Status.MAX_STEPS),
        (scalar(softplus, tolerance=-1.0), 8.0, Status.STALLED),
        (scalar(lambda x: jnp.sum(x**4)), 1.0, Status.CONVERGED),
        (scalar(lambda x: jnp.sum(jnp.abs(x - 0.3))), 1.0, Status.STALLED),
        (scalar(lambda x: jnp.sum(x - jnp.log(x))), -1.0, Status.NONFINITE),
        (scalar(lambda x: jnp.sum(jnp.sqrt(x))), 0.0, Status.NONFINITE),
        (scalar(lambda x: jnp.sum(jnp.where(x < 1, -jnp.inf, x**2))), 3.0, Status.NONFINITE),
    ],
    ids=[
        "smooth",
        "short",
        "proof beyond rounding",
        "flat",
        "kink",
        "value",
        "gradient",
        "bottomless",
    ],
)
@in_float64
def test_every_end_has_its_status(newton: Newton, start: float, expected: Status) -> None:
    x, hessian = jnp.array([start]), jnp.eye(1)
    at, status = jax.jit(lambda: newton.run(newton.begin(x, hessian)))()
    assert Status(int(status)) == expected
    if expected != Status.NONFINITE:
        _, visited = jax.jit(lambda: newton.run(newton.resume(newton.visit(x))))()
        assert Status(int(visited)) == expected
    if expected == Status.CONVERGED:
        assert float(at.gap) <= newton.tolerance


@in_float64
def test_a_far_step_is_rejected_and_the_next_is_damped() -> None:
    """Without damping, Newton's method on softplus diverges from 8."""
    newton = scalar(softplus)._replace(first=0.0)
    first = newton.advance(newton.begin(jnp.array([8.0]), jnp.eye(1)))
    assert float(first.at.x[0]) == 8.0
    assert float(first.damping) < 1e-12
    second = newton.advance(first)
    assert bool(second.failed)
    assert float(second.at.x[0]) == 8.0
    assert float(second.damping) > 1e-3
    at, status = newton.run(second)
    assert int(status) == Status.CONVERGED
    np.testing.assert_allclose(at.x, np.log(0.3 / 0.7), atol=1e-8)


@in_float64
def test_a_problem_can_react_to_a_rejected_step() -> None:
    """A problem that proposes a step only after a rejection accepts every other step."""

    def propose(state: State) -> Trial:
        step = jnp.where(state.failed, 0.5, jnp.nan) * state.at.gradient
        return state.at.x - step, -np.inf, 0.0

    newton = scalar(softplus)._replace(propose=propose, rise=1.0)
    state = newton.resume(newton.visit(jnp.array([1.0])))
    failed = []
    for _ in range(4):
        state = newton.advance(state)
        failed.append(bool(state.failed))
    assert failed == [True, False, True, False]
    assert float(state.at.value) < float(softplus(jnp.array([1.0])))


@in_float64
def test_lanes_end_independently() -> None:
    newton = scalar(softplus)
    starts = jnp.array([[0.0], [8.0], [jnp.nan], [-0.8]])
    at, status = jax.jit(jax.vmap(lambda x: newton.run(newton.begin(x, jnp.eye(1)))))(starts)
    assert status.tolist() == [0, 0, Status.NONFINITE, 0]
    np.testing.assert_allclose(np.asarray(at.x)[[0, 1, 3], 0], np.log(0.3 / 0.7), atol=1e-8)
