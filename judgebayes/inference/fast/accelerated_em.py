"""EM from several starts at once, with an extrapolation after every two steps.

Steps of EM are short where the objective is flat. From the points x0, x1 = F(x0) and x2 = F(x1) of two
steps, the third one starts at the extrapolated point

    x0 + 2 a (x1 - x0) + a^2 ((x2 - x1) - (x1 - x0)),    a = |x1 - x0| / |(x2 - x1) - (x1 - x0)|

(Varadhan & Roland, "Simple and globally convergent methods for accelerating the convergence of any EM
algorithm", 2008, scheme S3), unless this lowers the objective: then it starts at x2.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

Point = Any
"""A pytree whose arrays have the starts as their first axis."""
ROUNDING = 1e-13
"""The relative rounding error of an objective."""
LONGEST = 64.0
"""The largest a."""


class _State(NamedTuple):
    at: Point
    """The point of the next step."""
    last: Point
    """The point of the last step; after an extrapolation, the point without it."""
    own: Float[Array, " start"]
    """The objective at the point of the last step."""
    value: Float[Array, " start"]
    """The objective after the last three steps."""
    gain: Float[Array, " start"]
    moved: Float[Array, " start"]
    step: Int[Array, " start"]


def accelerated(
    step: Callable[[Point], tuple[Point, Float[Array, " start"]]],
    extrapolated: Callable[[Point, Point, Point], Point],
    start: Point,
    *,
    least_gain: Float[Array, ""],
    max_steps: int,
    moved: Callable[[Point, Point], Float[Array, " start"]] | None = None,
    least_move: float | Array = 0.0,
    plain_steps: int = 0,
) -> tuple[Point, Bool[Array, " start"], Int[Array, " start"]]:
    """Repeat a step until three of them gain no more than `least_gain`.

    Returns the last point, whether it converged, and the number of steps, for each start.

    Parameters
    ----------
    step
        From a point to the next one, and the objective at the point itself.
    extrapolated
        From three points in a row to one further on.
    start, least_gain, max_steps
        The first point, and when to end.
    moved, least_move
        How far a step moved, and the most at which it may end; None: only the gain counts.
    plain_steps
        The number of steps before the first extrapolation, rounded up to a multiple of three.
    """
    unknown = jnp.full(len(jax.tree.leaves(start)[0]), -jnp.inf)

    def converged(state: _State) -> Bool[Array, " start"]:
        return (state.gain <= least_gain) & (state.moved <= least_move)

    def running(state: _State) -> Bool[Array, " start"]:
        further = (state.gain > least_gain) | (state.moved > least_move)  # false if not finite
        return (state.step < max_steps) & further

    def advance(state: _State) -> _State:
        following, own = step(state.at)
        phase, plain = state.step % 3, state.step < plain_steps
        far = extrapolated(state.last, state.at, following)
        ends, extrapolates = phase == 2, (phase == 1) & ~plain & (state.step + 1 < max_steps)
        lowered = ends & ~plain & ~(own >= state.own - ROUNDING * jnp.abs(own))
        value = jnp.where(lowered, state.own, own)
        after = jnp.zeros_like(own) if moved is None else moved(state.at, following)
        next_state = _State(
            chosen(extrapolates, far, chosen(lowered, state.last, following)),
            chosen(extrapolates, following, state.at),
            own,
            jnp.where(ends, value, state.value),
            jnp.where(ends, value - state.value, state.gain),
            jnp.where(phase == 0, after, state.moved),
            state.step + 1,
        )
        return chosen(running(state), next_state, state)

    none = jnp.zeros(len(unknown), int)
    initial = _State(start, start, unknown, unknown, -unknown, -unknown, none)
    end = jax.lax.while_loop(lambda state: running(state).any(), advance, initial)
    return end.at, converged(end), end.step


def line(first: Point, second: Point, third: Point, measured: Callable[[Point], Any]) -> Point:
    """Return the extrapolation of one start's points, where `measured` selects what gives its length."""
    step, later = (
        jax.tree.map(lambda a, b: b - a, *pair) for pair in ((first, second), (second, third))
    )
    turn = jax.tree.map(lambda a, b: b - a, step, later)
    ratio = _square(measured(step)) / jnp.maximum(_square(measured(turn)), 1e-300)
    length = jnp.clip(jnp.sqrt(ratio), 1.0, LONGEST)
    return jax.tree.map(lambda x, a, b: x + 2 * length * a + length**2 * b, first, step, turn)


def chosen(where: Bool[Array, " start"], new: Point, old: Point) -> Point:
    """Return the new arrays where true, by start, and the old ones elsewhere."""
    return jax.tree.map(
        lambda a, b: jnp.where(where.reshape(-1, *[1] * (a.ndim - 1)), a, b), new, old
    )


def _square(point: Any) -> Float[Array, ""]:
    return jnp.stack([jnp.sum(x**2) for x in jax.tree.leaves(point)]).sum()
