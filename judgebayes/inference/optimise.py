r"""A bounded minimiser for many small problems at once.

Projected, damped Newton steps on the parameters that are free to move; those whose bound is active
stay exactly on it. `judgebayes.inference.optimise` has the loop, its stopping rule and its failure
modes. On a CPU, under `vmap`, each lane runs the starts of its problem one after the other: a lane that
ends early continues with its next start instead of waiting for the slowest lane. On an accelerator the
starts are lanes too, and a trip of the loop makes several steps (`compiled.backend`).

One Newton loop for all analytic fits, and the linear systems of its steps.

From x with objective f, gradient g and curvature B the loop tries

.. math:: x' = P\bigl(x - (B + \lambda I)^{-1} g\bigr)

where P projects onto the feasible set, for example a box (Levenberg, 1944; Marquardt, 1963;
projected: Bertsekas, 1982). It accepts x' if f falls, or if f is equal to rounding and the optimality
gap falls. Then the damping :math:`\lambda` falls to a tenth, or doubles if f fell by less than a
quarter of the decrease that its quadratic model predicts; after a rejected step it is multiplied by
ten or more. The problem defines the step (`propose`): with a step d / :math:`\lambda` and a damping
that a success resets to 1 and a failure doubles, the loop is step halving; with B = 0 and a proximal
map for P it is the proximal gradient method.

**Stopping rule.** The gap, zero exactly at a first-order optimum, is at most the tolerance
(`CONVERGED`).

**Failure modes.** Value or gradient is not finite at the start (`NONFINITE`; later, such a step is
rejected); the damping exceeds `STALL_DAMPING`, so that steps change nothing: at a kink, where the
derivatives are not those of the objective, or where rounding hides any further decrease
(`STALLED`); the steps ran out, rejected ones included (`MAX_STEPS`). A minimum is a local one.

The loop handles one problem; batch it with `jax.vmap`: lanes accept, reject and stop independently.

These do not use the loop: `Panel` and the logits of strata, which take a fixed number of special
steps on a whole grid; and the Platt maps of `diagnose`, which run in NumPy, outside compiled code.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from optax.projections import projection_box

from judgebayes.arrays import Scalar
from judgebayes.compiled.backend import on_accelerator
from judgebayes.inference.status import Status

Vector = Float[Array, " parameter"]
Matrix = Float[Array, "parameter parameter"]

STALL_DAMPING = 1e12
"""A step with this damping changes nothing, so the loop stops."""
STEPS_A_TRIP = 4
"""The steps in a trip of the loop on an accelerator, whose host waits for every trip."""
LEVEL = 32
"""Values that differ by at most this many units of rounding count as equal."""


class Point(NamedTuple):
    """An evaluated point, with what the next step needs."""

    x: Any
    value: Float[Array, ""]
    gap: Float[Array, ""]
    """A measure of first-order optimality; NaN where the gradient is not finite."""
    gradient: Any
    hessian: Any = ()


Trial = tuple[Any, Scalar, Scalar]
"""The next point to evaluate, the decrease that a quadratic model predicts there (minus infinity without
a model), and the least damping after a rejection."""


class State(NamedTuple):
    """The state of the loop."""

    at: Point
    damping: Float[Array, ""]
    failed: Bool[Array, ""]
    """Whether the last step was rejected: a problem with two curvatures then uses the safer one."""
    visits: Int[Array, ""]


class Newton(NamedTuple):
    """A problem and its stopping rule, as described in the module."""

    visit: Callable[[Any], Point]
    propose: Callable[[State], Trial]
    tolerance: float
    max_steps: int
    first: float = 1e-3
    """The damping of the first step."""
    fall: float = 0.1
    """The factor of the damping after a step with at least a quarter of the predicted decrease."""
    rise: float = 10.0
    """The least factor of the damping after a rejected step."""
    floor: float = 1e-14
    """The least damping."""

    def begin(self, x: Any, hessian: Any) -> State:
        """Return the state before any evaluation: the first round evaluates x, so f is compiled once.

        `hessian` has the structure of an evaluated point's Hessian and must allow a step.
        """
        infinite = jnp.asarray(jnp.inf)
        blank = Point(x, infinite, infinite, jax.tree.map(jnp.zeros_like, x), hessian)
        return self.resume(blank)._replace(visits=jnp.asarray(0))

    def resume(self, at: Point) -> State:
        """Return the state at an evaluated point."""
        return State(at, jnp.asarray(self.first), jnp.asarray(False), jnp.asarray(1))

    def running(self, state: State) -> Bool[Array, ""]:
        """Return whether the loop should continue."""
        rough = jnp.isfinite(state.at.value) & (state.at.gap > self.tolerance)
        able = (state.visits <= self.max_steps) & (state.damping <= STALL_DAMPING)
        return (state.visits == 0) | (rough & able)

    def advance(self, state: State) -> State:
        """Try one step."""
        at = state.at
        x, promised, least = self.propose(state)
        new = self.visit(x)
        gained = at.value - new.value
        # At the minimum the values agree to rounding: the gap then decides.
        level = jnp.abs(gained) <= LEVEL * np.finfo(new.value.dtype).eps * jnp.abs(at.value)
        accept = ((gained > 0) | (level & (new.gap < at.gap))) & jnp.isfinite(new.gap)
        good = jnp.where(gained > 0.25 * promised, self.fall, 2.0) * state.damping
        more = jnp.fmax(self.rise * state.damping, least)  # `least` is NaN where the step was
        damping = jnp.where(state.visits == 0, state.damping, jnp.where(accept, good, more))
        return State(
            jax.tree.map(lambda a, b: jnp.where(accept, a, b), new, at),
            jnp.maximum(damping, self.floor),
            ~accept,
            state.visits + 1,
        )

    def status(self, state: State) -> Int[Array, ""]:
        """Return the status of the loop, a `Status`."""
        at = state.at
        return jnp.select(
            [
                ~jnp.isfinite(at.value) | jnp.isnan(at.gap),
                at.gap <= self.tolerance,
                state.damping > STALL_DAMPING,
            ],
            [int(Status.NONFINITE), int(Status.CONVERGED), int(Status.STALLED)],
            int(Status.MAX_STEPS),
        )

    def run(self, state: State) -> tuple[Point, Int[Array, ""]]:
        """Run the loop to its end; return the last point and its status."""
        end = self.last(state)
        return end.at, self.status(end)

    def last(self, state: State) -> State:
        """Run the loop to its end, on an accelerator with several steps a trip."""

        def step_if_running(state: State) -> State:
            running = self.running(state)
            return jax.tree.map(
                lambda new, old: jnp.where(running, new, old), self.advance(state), state
            )

        def trip(state: State) -> State:
            for _ in range(STEPS_A_TRIP):
                state = step_if_running(state)
            return state

        return jax.lax.while_loop(self.running, trip if on_accelerator() else self.advance, state)


def positive_step(matrix: Matrix, gradient: Vector, damping: Scalar) -> Vector:
    """Return the damped Newton step, NaN where the damped curvature is not positive definite."""
    factor = jnp.linalg.cholesky(matrix + damping * jnp.eye(len(gradient)))
    return -jax.scipy.linalg.cho_solve((factor, True), gradient)


TINY = 1e-300
WRITTEN_OUT = 4
"""Up to this many parameters, steps are written out without LAPACK."""


Derivatives = tuple[Float[Array, ""], Vector, Matrix]
"""A function's value, gradient and Hessian at a point."""
Differentiated = Callable[[Vector], Derivatives]
"""A function with its first and second derivatives."""


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


class _Lane(NamedTuple):
    which: Int[Array, ""]
    state: State
    solutions: Solution
    """With a leading axis of starts; blank where a start has not been run yet."""


def projected_gradient(
    x: Vector, gradient: Vector, lower: Vector, upper: Vector
) -> Float[Array, ""]:
    """Return max |x - project(x - gradient)|, the first-order optimality measure of a box."""
    return jnp.max(jnp.abs(x - projection_box(x - gradient, lower, upper)), initial=0.0)


def differentiated(objective: Callable[[Vector], Float[Array, ""]]) -> Differentiated:
    """Return a function with its derivatives by automatic differentiation."""

    def slope(x: Vector) -> tuple[Vector, tuple[Scalar, Vector]]:
        value, gradient = jax.value_and_grad(objective)(x)
        return gradient, (value, gradient)

    def at(x: Vector) -> Derivatives:
        # Forward over reverse, as `jax.hessian`, which would trace the objective a second time.
        hessian, (value, gradient) = jax.jacfwd(slope, has_aux=True)(x)
        return value, gradient, hessian

    return at


def minimise_each(
    objective: Differentiated,
    starts: Float[Array, "start parameter"],
    lower: Vector | None = None,
    upper: Vector | None = None,
    *,
    max_steps: int = 200,
    tolerance: float = 1e-9,
) -> Solution:
    r"""Minimise a smooth function in a box, with exact active bounds, from each of several starts.

    At x with gradient g and Hessian H, the parameters on a bound whose descent direction points outwards
    are fixed; the others take the damped step of `absolute_step`, projected onto the box. Alternatively,
    parameters that this step would carry over a bound stop there, and the step of the rest is solved
    again given that. Of the two, the one with the larger predicted decrease is tried.

    Parameters
    ----------
    objective
        The function and its derivatives, from `differentiated` or written out.
    starts
        The starting points, projected onto the box.
    lower, upper
        Bounds, infinite for parameters without a bound; None if no parameter has one.
    max_steps
        The most steps from each start, accepted and rejected together.
    tolerance
        The projected gradient below which a point counts as a minimum.

    Returns
    -------
    The solution of each start, with a leading axis of starts.
    """
    n_starts, size = starts.shape
    bounded = lower is not None or upper is not None
    lower = jnp.full(size, -jnp.inf) if lower is None else lower
    upper = jnp.full(size, jnp.inf) if upper is None else upper
    begins = projection_box(starts, lower, upper)

    def visit(x: Vector) -> Point:
        value, gradient, hessian = objective(x)
        # The projection onto a bound may hide an infinite gradient.
        finite = jnp.all(jnp.isfinite(gradient))
        gap = jnp.where(finite, projected_gradient(x, gradient, lower, upper), jnp.nan)
        return Point(x, value, gap, gradient, hessian)

    def propose(state: State) -> Trial:
        at, damping = state.at, state.damping
        fixed = ((at.x <= lower) & (at.gradient > 0)) | ((at.x >= upper) & (at.gradient < 0))
        target = at.x + absolute_step(at.hessian, ~fixed, at.gradient, damping)
        if not bounded:
            return trial(at, target)
        stopped = (target < lower) | (target > upper)
        clipped = projection_box(target, lower, upper)
        to_bound = jnp.where(stopped, clipped - at.x, 0.0)
        gradient = at.gradient + at.hessian @ to_bound
        rest = absolute_step(at.hessian, ~(fixed | stopped), gradient, damping)
        clipped_trial, solved_trial = (
            trial(at, clipped),
            trial(at, projection_box(at.x + to_bound + rest, lower, upper)),
        )
        better = solved_trial[1] > clipped_trial[1]
        return jax.tree.map(lambda a, b: jnp.where(better, a, b), solved_trial, clipped_trial)

    newton = Newton(visit, propose, tolerance, max_steps)
    if on_accelerator():

        def solution(begin: Vector) -> Solution:
            end = newton.last(newton.begin(begin, jnp.eye(size)))
            at = end.at
            return Solution(at.x, at.value, at.gap, end.visits - 1, newton.status(end))

        return jax.vmap(solution)(begins)
    first_state = newton.begin(begins[0], jnp.eye(size))

    def next_start(lane: _Lane) -> _Lane:
        """Store the solution of a start that is done, and begin the next one."""
        at, state = lane.state.at, lane.state
        done = ~newton.running(state)
        end = Solution(at.x, at.value, at.gap, state.visits - 1, newton.status(state))
        finished = done & (jnp.arange(n_starts) == lane.which)

        def store(new: Array, old: Array) -> Array:
            return jnp.where(finished.reshape(-1, *[1] * new.ndim), new, old)

        which = lane.which + done
        state = jax.tree.map(
            lambda new, old: jnp.where(done, new, old), state_of_start(which), state
        )
        return _Lane(which, state, jax.tree.map(store, end, lane.solutions))

    def state_of_start(which: Int[Array, ""]) -> State:
        # No indexing: under `vmap` that would be a gather, which costs more than the sum.
        x = jnp.where((jnp.arange(n_starts) == which)[:, None], begins, 0.0).sum(0)
        return first_state._replace(at=first_state.at._replace(x=x))

    zero, none = jnp.zeros(n_starts, begins.dtype), jnp.zeros(n_starts, int)
    first = jnp.asarray(0)
    return jax.lax.while_loop(
        lambda lane: lane.which < n_starts,
        lambda lane: next_start(lane._replace(state=newton.advance(lane.state))),
        _Lane(first, state_of_start(first), Solution(begins, zero, zero, none, none)),
    ).solutions


def absolute_step(
    matrix: Matrix, free: Bool[Array, " parameter"], gradient: Vector, damping: Scalar
) -> Vector:
    r"""Return the damped step over the free parameters, from a curvature B of any sign.

    .. math:: d = -V (|\Lambda| + \lambda I)^{-1} V^T g, \qquad B = V \Lambda V^T

    is a descent direction also where B is indefinite. For at most four parameters, absolute values of
    the pivots of :math:`B + \lambda I = L D L^T` are taken instead, which is the same where that matrix
    is positive definite.
    """
    size = len(gradient)
    both = free[:, None] & free[None, :]
    curvature = jnp.where(both, matrix, 0.0) + jnp.diag(jnp.where(free, 0.0, 1.0))
    downhill = jnp.where(free, -gradient, 0.0)
    if size <= WRITTEN_OUT:
        step = _solve(curvature + damping * jnp.eye(size), downhill)
    else:
        values, vectors = jnp.linalg.eigh(curvature)
        step = vectors @ ((vectors.T @ downhill) / (jnp.abs(values) + damping))
    return jnp.where(free, step, 0.0)


def trial(at: Point, x: Vector) -> Trial:
    """Return the trial of x from a point whose Hessian is a matrix."""
    step = x - at.x
    downhill = -(at.gradient @ step)
    promised = downhill - 0.5 * step @ at.hessian @ step
    # A rejected step was far too long: damp by more than the curvature along it.
    return x, promised, 3 * downhill / jnp.maximum(step @ step, TINY)


def _solve(matrix: Matrix, right: Vector) -> Vector:
    """Return the solution x of L |D| L^T x = right, for a matrix L D L^T.

    Written out element by element: under `vmap` that takes a small part of LAPACK's time.
    """
    size = len(right)
    small = 1e-14 * jnp.abs(jnp.diagonal(matrix)).max() + TINY
    pivots: list[Array] = []
    lower: list[list[Array]] = []
    for i in range(size):
        row: list[Array] = []
        for j in range(i):
            inner = sum(row[k] * lower[j][k] * pivots[k] for k in range(j))
            row.append((matrix[i, j] - inner) / pivots[j])
        pivot = matrix[i, i] - sum(row[k] ** 2 * pivots[k] for k in range(i))
        pivots.append(jnp.where(jnp.abs(pivot) < small, small, pivot))
        lower.append(row)
    forward: list[Array] = []
    for i in range(size):
        forward.append(right[i] - sum(lower[i][k] * forward[k] for k in range(i)))
    solution = [x / jnp.abs(pivot) for x, pivot in zip(forward, pivots, strict=True)]
    for i in reversed(range(size)):
        solution[i] = solution[i] - sum(lower[k][i] * solution[k] for k in range(i + 1, size))
    return jnp.stack(solution)
