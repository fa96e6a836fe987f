"""A bounded minimiser for many small problems at once.

Projected, damped Newton steps on the parameters that are free to move; those whose bound is active
stay exactly on it. One problem in the function, `jax.vmap` outside: every lane accepts, rejects and
stops on its own, which a line search under `vmap` does not allow.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from optax.projections import projection_box

from judgebayes.inference.status import Status

__all__ = ["Solution", "minimise", "projected_gradient"]

Vector = Float[Array, " parameter"]

FIRST_DAMPING = 1e-3
LEAST_DAMPING = 1e-14
STALL_DAMPING = 1e12  # a step this damped moves nothing: give up


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Solution:
    """A minimum and the evidence for it.

    `projected_gradient` is the largest component of x - project(x - gradient): zero exactly where
    no feasible direction descends. `status` is converged only if it is within the tolerance.
    """

    x: Float[Array, "*batch parameter"]
    value: Float[Array, "*batch"]
    projected_gradient: Float[Array, "*batch"]
    steps: Int[Array, "*batch"]
    status: Int[Array, "*batch"]


class _Point(NamedTuple):
    x: Vector
    value: Float[Array, ""]
    gradient: Vector
    hessian: Float[Array, "parameter parameter"]


class _State(NamedTuple):
    at: _Point
    damping: Float[Array, ""]
    step: Int[Array, ""]
    stalled: Bool[Array, ""]


def projected_gradient(
    x: Vector, gradient: Vector, lower: Vector, upper: Vector
) -> Float[Array, ""]:
    """Return max |x - project(x - gradient)|, the first-order optimality measure of a box."""
    return jnp.max(jnp.abs(x - projection_box(x - gradient, lower, upper)), initial=0.0)


def minimise(
    objective: Callable[[Vector], Float[Array, ""]],
    start: Vector,
    lower: Vector,
    upper: Vector,
    *,
    max_steps: int = 200,
    tolerance: float = 1e-9,
) -> Solution:
    r"""Minimise a smooth function in a box, to its exact active bounds.

    At x with gradient g and Hessian H, the parameters on a bound whose gradient points outwards
    are held; the others, F, take the step

    .. math:: d_F = -V (|\Lambda| + \lambda I)^{-1} V^T g_F, \qquad H_{FF} = V \Lambda V^T,

    projected onto the box. The absolute eigenvalues make it a descent direction where H is
    indefinite, as DRPS often is; the damping falls when a step succeeds and rises when one fails
    (Levenberg-Marquardt). A step is taken only if it does not raise the objective.

    Parameters
    ----------
    objective
        Twice differentiable function of a vector.
    start
        Where to begin; projected onto the box.
    lower, upper
        Bounds, infinite where there is none.
    max_steps
        How many steps to try at most, successes and failures together.
    tolerance
        The projected gradient below which a point counts as a minimum.
    """

    def visit(x: Vector) -> _Point:
        value, gradient = jax.value_and_grad(objective)(x)
        return _Point(x, value, gradient, jax.hessian(objective)(x))

    def optimality(at: _Point) -> Float[Array, ""]:
        return projected_gradient(at.x, at.gradient, lower, upper)

    def unfinished(state: _State) -> Bool[Array, ""]:
        running = jnp.isfinite(state.at.value) & (optimality(state.at) > tolerance)
        return (state.step == 0) | ((state.step <= max_steps) & ~state.stalled & running)

    def advance(state: _State) -> _State:
        # The first round only visits the start, so that the objective is compiled once.
        at, damping, first = state.at, state.damping, state.step == 0
        held = ((at.x <= lower) & (at.gradient > 0)) | ((at.x >= upper) & (at.gradient < 0))
        step = jnp.where(first, 0.0, _newton_step(at, ~held, damping))
        there = visit(projection_box(at.x + step, lower, upper))
        moved = there.x - at.x
        promised = -(at.gradient @ moved + 0.5 * moved @ at.hessian @ moved)
        gained = at.value - there.value
        # At the minimum the values agree to rounding: the gradient then says which is better.
        level = jnp.abs(gained) <= 4 * np.finfo(at.x.dtype).eps * jnp.abs(at.value)
        better = (gained > 0) | (level & (optimality(there) < optimality(at)))
        accept = first | (better & jnp.all(jnp.isfinite(there.gradient)))
        factor = jnp.where(accept, jnp.where(gained > 0.25 * promised, 0.1, 2.0), 10.0)
        damping = jnp.where(first, damping, damping * factor)
        return _State(
            at=jax.tree.map(lambda new, old: jnp.where(accept, new, old), there, at),
            damping=jnp.maximum(damping, LEAST_DAMPING),
            step=state.step + 1,
            stalled=damping > STALL_DAMPING,
        )

    x = projection_box(start, lower, upper)
    blank = _Point(x, jnp.asarray(jnp.inf, x.dtype), jnp.zeros_like(x), jnp.eye(x.shape[0]))
    begin = _State(blank, jnp.asarray(FIRST_DAMPING), jnp.asarray(0), jnp.asarray(False))
    end = jax.lax.while_loop(unfinished, advance, begin)
    gap = optimality(end.at)
    status = jnp.select(
        [~jnp.isfinite(end.at.value), gap <= tolerance, end.stalled],
        [int(Status.NONFINITE), int(Status.CONVERGED), int(Status.STALLED)],
        int(Status.MAX_STEPS),
    )
    return Solution(end.at.x, end.at.value, gap, end.step - 1, status)


def _newton_step(at: _Point, free: Bool[Array, " parameter"], damping: Float[Array, ""]) -> Vector:
    both = free[:, None] & free[None, :]
    curvature = jnp.where(both, at.hessian, 0.0) + jnp.diag(jnp.where(free, 0.0, 1.0))
    values, vectors = jnp.linalg.eigh(curvature)
    slope = vectors.T @ jnp.where(free, at.gradient, 0.0)
    step = -vectors @ (slope / (jnp.abs(values) + damping))
    return jnp.where(free, step, 0.0)
