r"""One Newton loop for all hand-written fits, and the linear systems of its steps.

From x with objective f, gradient g and curvature B the loop tries

.. math:: x' = P\bigl(x - (B + \lambda I)^{-1} g\bigr)

where P keeps to what x may be, a box say (Levenberg, 1944; Marquardt, 1963; projected: Bertsekas,
1982). It takes x' if f falls, or if f stays to rounding and the optimality gap falls. Then the
damping :math:`\lambda` falls to a tenth, or doubles if f fell by less than a quarter of what its
parabola promised; otherwise it is multiplied by ten or more. The step itself is its problem's
business (`propose`): damped in B's own metric, d / :math:`\lambda` with a damping that a success
sets back to 1 and a failure doubles, it is step halving; with B = 0 and a proximal map for P it is
the proximal gradient method.

**Stopping rule.** The gap, zero exactly at a first-order optimum, is at most the tolerance
(`CONVERGED`).

**Failure modes.** Value or gradient is not finite at the start (`NONFINITE`; later, such a step is
refused); the damping exceeds `STALL_DAMPING`, so that steps move nothing: at a kink, where the
derivatives given are not those of the objective, or where rounding hides what is left to gain
(`STALLED`); steps ran out, refused ones counted (`MAX_STEPS`). A minimum is a local one.

One problem in the function, `jax.vmap` outside: lanes accept, refuse and stop on their own.

Apart stay the sparse 2PL's steps, never written out as a matrix (conjugate gradients over slabs of
votes); `Impression` and the strata's logits, which take so many steps of a form of their own on a
whole grid; and the Platt maps of `diagnose`, which run in NumPy, outside compiled code.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from judgebayes.arrays import Scalar
from judgebayes.inference.status import Status

__all__ = ["Absolute", "Arrow", "Newton", "Point", "Positive", "State", "Trial", "trial"]

STALL_DAMPING = 1e12
"""A step this damped moves nothing: give up."""
LEVEL = 32
"""Values so many roundings apart are the same."""
TINY = 1e-300
WRITTEN_OUT = 4
"""So many parameters have their steps written out."""

Vector = Float[Array, " parameter"]
Matrix = Float[Array, "parameter parameter"]


class Point(NamedTuple):
    """A point that has been visited, and what its problem's next step needs to know of it."""

    x: Any
    value: Float[Array, ""]
    gap: Float[Array, ""]
    """A measure of first-order optimality; NaN where the gradient is not finite."""
    gradient: Any
    hessian: Any = ()


class Trial(NamedTuple):
    """Where to try next."""

    x: Any
    promised: Scalar = -np.inf
    """How far the parabola falls to there."""
    least: Scalar = 0.0
    """The damping, at least, if this fails."""


class State(NamedTuple):
    """Where the loop is."""

    at: Point
    damping: Float[Array, ""]
    failed: Bool[Array, ""]
    """Whether the last step was refused: a problem of two curvatures takes the safer one then."""
    visits: Int[Array, ""]


class Newton(NamedTuple):
    """A problem, and when to stop: the module says how."""

    visit: Callable[[Any], Point]
    propose: Callable[[State], Trial]
    tolerance: float
    max_steps: int
    first: float = 1e-3
    """The damping of the first step."""
    fall: float = 0.1
    """The factor of the damping after a step as good as promised."""
    rise: float = 10.0
    """The least factor of the damping after a refused step."""
    floor: float = 1e-14
    """The least damping."""

    def begin(self, x: Any, hessian: Any) -> State:
        """Return the state before any visit: the first round visits x, so that f is compiled once.

        `hessian` has the form of a visited point's, and is one that steps can be taken with.
        """
        infinite = jnp.asarray(jnp.inf)
        blank = Point(x, infinite, infinite, jax.tree.map(jnp.zeros_like, x), hessian)
        return self.resume(blank)._replace(visits=jnp.asarray(0))

    def resume(self, at: Point) -> State:
        """Return the state at a point that has been visited."""
        return State(at, jnp.asarray(self.first), jnp.asarray(False), jnp.asarray(1))

    def running(self, state: State) -> Bool[Array, ""]:
        """Return whether there is more to do."""
        rough = jnp.isfinite(state.at.value) & (state.at.gap > self.tolerance)
        able = (state.visits <= self.max_steps) & (state.damping <= STALL_DAMPING)
        return (state.visits == 0) | (rough & able)

    def advance(self, state: State) -> State:
        """Try one step."""
        at = state.at
        x, promised, least = self.propose(state)
        new = self.visit(x)
        gained = at.value - new.value
        # At the minimum the values agree to rounding: the gap then says which is better.
        level = jnp.abs(gained) <= LEVEL * np.finfo(new.value.dtype).eps * jnp.abs(at.value)
        accept = ((gained > 0) | (level & (new.gap < at.gap))) & jnp.isfinite(new.gap)
        good = jnp.where(gained > 0.25 * promised, self.fall, 2.0) * state.damping
        more = jnp.fmax(self.rise * state.damping, least)  # NaN where the step was
        damping = jnp.where(state.visits == 0, state.damping, jnp.where(accept, good, more))
        return State(
            jax.tree.map(lambda a, b: jnp.where(accept, a, b), new, at),
            jnp.maximum(damping, self.floor),
            ~accept,
            state.visits + 1,
        )

    def status(self, state: State) -> Int[Array, ""]:
        """Return how it ended."""
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
        """Go on until there is no more to do; return the last point, and how it ended."""
        end = jax.lax.while_loop(self.running, self.advance, state)
        return end.at, self.status(end)


def trial(at: Point, x: Vector) -> Trial:
    """Return a trial at x of a point whose Hessian is a matrix."""
    moved = x - at.x
    downhill = -(at.gradient @ moved)
    promised = downhill - 0.5 * moved @ at.hessian @ moved
    # A failed step was far too long: damp by more than the curvature along it.
    return Trial(x, promised, 3 * downhill / jnp.maximum(moved @ moved, TINY))


class Positive(NamedTuple):
    """A positive definite curvature; steps are NaN where it is not."""

    matrix: Matrix

    def step(self, gradient: Vector, damping: Scalar) -> Vector:
        """Return the damped Newton step."""
        factor = jnp.linalg.cholesky(self.matrix + damping * jnp.eye(len(gradient)))
        return -jax.scipy.linalg.cho_solve((factor, True), gradient)


class Absolute(NamedTuple):
    r"""A curvature of any sign, of the parameters that are free to move; the others stay.

    .. math:: d = -V (|\Lambda| + \lambda I)^{-1} V^T g, \qquad B = V \Lambda V^T

    is a way down also where B is indefinite. Of at most four parameters the pivots of
    :math:`B + \lambda I = L D L^T` are taken absolute instead, which is the same where that is
    positive.
    """

    matrix: Matrix
    free: Bool[Array, " parameter"]

    def step(self, gradient: Vector, damping: Scalar) -> Vector:
        """Return the damped Newton step."""
        size, free = len(gradient), self.free
        both = free[:, None] & free[None, :]
        curvature = jnp.where(both, self.matrix, 0.0) + jnp.diag(jnp.where(free, 0.0, 1.0))
        downhill = jnp.where(free, -gradient, 0.0)
        if size <= WRITTEN_OUT:
            step = _solved(curvature + damping * jnp.eye(size), downhill)
        else:
            values, vectors = jnp.linalg.eigh(curvature)
            step = vectors @ ((vectors.T @ downhill) / (jnp.abs(values) + damping))
        return jnp.where(free, step, 0.0)


class Arrow(NamedTuple):
    r"""A curvature whose inner blocks touch one another through the outer parameters only.

    .. math:: B = \begin{pmatrix} \mathrm{diag}(o) & C^T \\ C & \mathrm{blocks} \end{pmatrix}

    The 2 x 2 blocks are eliminated (Schur's complement), which leaves a system of the outer
    parameters, solved by Cholesky's factors. NaN where it is not positive definite.
    """

    outer: Float[Array, " outer"]
    cross: Float[Array, "block two outer"]
    block: Float[Array, "block two two"]

    def inverse(self, damping: Scalar) -> Float[Array, "block two two"]:
        """Return the damped blocks' inverses."""
        (a, b), (_, c) = jnp.moveaxis(self.block + damping * jnp.eye(2), 0, 2)
        return jnp.moveaxis(jnp.array([[c, -b], [-b, a]]) / (a * c - b**2), 2, 0)

    def step(
        self, outer: Float[Array, " outer"], inner: Float[Array, "block two"], damping: Scalar
    ) -> tuple[Float[Array, " outer"], Float[Array, "block two"]]:
        """Return the damped Newton step, from the gradient's two parts."""
        inverse = self.inverse(damping)
        solved, pulled = inverse @ self.cross, inverse @ inner[..., None]
        flat = self.cross.reshape(-1, len(outer))
        left = Positive(jnp.diag(self.outer) - flat.T @ solved.reshape(flat.shape))
        moved = left.step(outer - flat.T @ pulled.reshape(-1), damping)
        return moved, -(pulled[..., 0] + solved @ moved)


def _solved(matrix: Matrix, right: Vector) -> Vector:
    """Return the inverse of L |D| L^T times a vector, the matrix being L D L^T.

    Written out number by number: over many lanes that takes a small part of LAPACK's time.
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
    found = [x / jnp.abs(pivot) for x, pivot in zip(forward, pivots, strict=True)]
    for i in reversed(range(size)):
        found[i] = found[i] - sum(lower[k][i] * found[k] for k in range(i + 1, size))
    return jnp.stack(found)
