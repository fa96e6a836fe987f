r"""One Newton loop for all analytic fits, and the linear systems of its steps.

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

These do not use the loop: `Impression` and the logits of strata, which take a fixed number of special
steps on a whole grid; and the Platt maps of `diagnose`, which run in NumPy, outside compiled code.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from judgebayes.arrays import Scalar
from judgebayes.inference.status import Status

STALL_DAMPING = 1e12
"""A step with this damping changes nothing, so the loop stops."""
LEVEL = 32
"""Values that differ by at most this many units of rounding count as equal."""

Vector = Float[Array, " parameter"]
Matrix = Float[Array, "parameter parameter"]


class Point(NamedTuple):
    """An evaluated point, with what the next step needs."""

    x: Any
    value: Float[Array, ""]
    gap: Float[Array, ""]
    """A measure of first-order optimality; NaN where the gradient is not finite."""
    gradient: Any
    hessian: Any = ()


class Trial(NamedTuple):
    """The next point to evaluate."""

    x: Any
    promised: Scalar = -np.inf
    """The decrease that the quadratic model predicts."""
    least: Scalar = 0.0
    """The least damping after a rejection of this point."""


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

    def end(self, state: State) -> tuple[Bool[Array, ""], Int[Array, ""]]:
        """Return whether the loop should stop, and its status then."""
        return ~self.running(state), self.status(state)

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
        end = jax.lax.while_loop(self.running, self.advance, state)
        return end.at, self.status(end)


class Positive(NamedTuple):
    """A positive definite curvature; steps are NaN where it is not."""

    matrix: Matrix

    def step(self, gradient: Vector, damping: Scalar) -> Vector:
        """Return the damped Newton step."""
        factor = jnp.linalg.cholesky(self.matrix + damping * jnp.eye(len(gradient)))
        return -jax.scipy.linalg.cho_solve((factor, True), gradient)


class Arrow(NamedTuple):
    r"""A curvature whose inner blocks are coupled through the outer parameters only (arrowhead form).

    .. math:: B = \begin{pmatrix} \mathrm{diag}(o) & C^T \\ C & \mathrm{blocks} \end{pmatrix}

    The 2 x 2 blocks are eliminated (Schur complement), which leaves a system in the outer parameters,
    solved by a Cholesky factorisation. Steps are NaN where it is not positive definite.
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
        solved, scaled_gradient = inverse @ self.cross, inverse @ inner[..., None]
        flat = self.cross.reshape(-1, len(outer))
        reduced = Positive(jnp.diag(self.outer) - flat.T @ solved.reshape(flat.shape))
        step = reduced.step(outer - flat.T @ scaled_gradient.reshape(-1), damping)
        return step, -(scaled_gradient[..., 0] + solved @ step)
