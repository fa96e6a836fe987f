"""Variational EM for pooled judges from two starts, with an extrapolation after every two steps."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from judgebayes.inference.fast import dawid_skene, pooled_dawid_skene
from judgebayes.inference.fast.dawid_skene import (
    Counts,
    Mode,
    from_columns,
    in_columns,
    responsibilities,
)
from judgebayes.inference.fast.dawid_skene_em import Departures, departures, higher
from judgebayes.inference.fast.pooled_dawid_skene import Crowd
from judgebayes.inference.fast.sparse_dawid_skene import Limits
from judgebayes.inference.status import Status
from judgebayes.models.pooled_dawid_skene import PooledPrior

__all__ = ["maximise_pooled"]

Scalar = float | Float[Array, ""]

ROUNDING = 1e-13
"""The relative rounding error of a bound."""


class _PooledState(NamedTuple):
    """The state of variational EM, for each start. A point is a crowd and the expected votes."""

    at: "_Point"
    """The point of the next step."""
    last: "_Point"
    """The point of the last step; after an extrapolation, the point without it."""
    own: Float[Array, " start"]
    """The bound at the point of the last step."""
    value: Float[Array, " start"]
    """The bound after the last three steps."""
    gain: Float[Array, " start"]
    moved: Float[Array, " start"]
    """The largest change of the crowd in the last step that was no extrapolation."""
    step: Int[Array, " start"]


_Point = tuple[Crowd, Float[Array, "start judge class vote"]]


def maximise_pooled(
    limits: Limits,
    count: Counts,
    labels: Int[Array, " item"],
    weight: Float[Array, " item"],
    prior: PooledPrior,
    noise: Scalar,
    n_classes: int,
) -> tuple[Crowd, Mode, Departures]:
    """Run variational EM from both starts; every step raises the lower bound."""
    total = jnp.maximum(weight.sum(), 1.0)
    clamped = dawid_skene.clamp(labels, noise, n_classes)
    bound = jax.vmap(pooled_dawid_skene.bound, (0, 0, 0, None))
    given_votes = jax.vmap(pooled_dawid_skene.given_votes)
    improved = jax.vmap(pooled_dawid_skene.improved, (0, 0, 0, None))
    moved = jax.vmap(pooled_dawid_skene.moved)

    def expect(
        log_pi: Float[Array, "start class"], expected_log: Float[Array, "start judge class vote"]
    ) -> tuple[Float[Array, " start"], Float[Array, "column item"]]:
        evidence = count @ in_columns(expected_log)
        values, expected = [], []
        for start, prior_share in enumerate(log_pi):
            first = start * n_classes
            joint = [
                prior_share[k] + clamped[:, k] + evidence[:, first + k] for k in range(n_classes)
            ]
            each, own = responsibilities(joint)
            values.append(jnp.where(weight > 0, weight * each, 0.0).sum())
            expected += [weight * x for x in own]
        return jnp.stack(values), jnp.stack(expected)

    def tally(expected: Float[Array, "column item"]) -> Float[Array, "start judge class vote"]:
        return from_columns((expected @ count).T, len(expected) // n_classes, n_classes)

    def step(crowd: Crowd, expected: Float[Array, "column item"]) -> _Point:
        votes = tally(expected)
        share = expected.sum(1).reshape(-1, n_classes)
        return improved(crowd, given_votes(crowd, votes), share, prior), votes

    def chosen(where: Bool[Array, "*start"], new: Any, old: Any) -> Any:
        return jax.tree.map(
            lambda a, b: jnp.where(where.reshape(-1, *[1] * (a.ndim - 1)), a, b), new, old
        )

    def converged(state: _PooledState) -> Bool[Array, " start"]:
        return (state.gain <= limits.tolerance * total) & (
            state.moved <= limits.tolerance**0.5 / 100
        )

    def running(state: _PooledState) -> Bool[Array, " start"]:
        return (state.step < limits.max_steps) & ~converged(state)

    def advance(state: _PooledState) -> _PooledState:
        """Make one of three steps: two, and one from their extrapolation."""
        judges = given_votes(*state.at)
        likelihood, expected = expect(state.at[0].log_pi, judges.expected_log)
        own = bound(state.at[0], judges, likelihood, prior)
        following = step(state.at[0], expected)
        phase = state.step % 3
        far = jax.vmap(pooled_dawid_skene.extrapolated)(state.last, state.at, following)
        slack = ROUNDING * jnp.abs(own)
        kept = (phase == 2) & ~(own >= state.own - slack)  # the extrapolation did not help
        value = jnp.where(kept, state.own, own)
        at = chosen(phase == 1, far, chosen(kept, state.last, following))
        last = chosen(phase == 1, following, state.at)
        ends = phase == 2
        next_state = _PooledState(
            at,
            last,
            own,
            jnp.where(ends, value, state.value),
            jnp.where(ends, value - state.value, state.gain),
            jnp.where(phase == 0, moved(state.at[0], following[0]), state.moved),
            state.step + 1,
        )
        return chosen(running(state), next_state, state)

    starts = [
        begin(count, labels, weight, n_classes)
        for begin in (dawid_skene.start, dawid_skene.majority_start)
    ]
    log_pi, log_confusion = (jnp.stack(x) for x in zip(*starts, strict=True))
    unknown = jnp.full(len(starts), -jnp.inf)
    _, expected = expect(log_pi, log_confusion)
    crowd = jax.vmap(lambda x: pooled_dawid_skene.begin(x, prior))(log_pi)
    at = step(crowd, expected)
    none = jnp.zeros(len(starts), int)
    initial = _PooledState(at, at, unknown, unknown, -unknown, -unknown, none)
    end = jax.lax.while_loop(lambda state: running(state).any(), advance, initial)
    crowds, votes = end.at
    judges = given_votes(crowds, votes)
    likelihood, expected = expect(crowds.log_pi, judges.expected_log)
    value = bound(crowds, judges, likelihood, prior)
    status = jnp.select(
        [~jnp.isfinite(value), converged(end)],
        [int(Status.NONFINITE), int(Status.CONVERGED)],
        int(Status.MAX_STEPS),
    )
    best = higher(value)
    cast = tally(expected).sum(-1)
    log_confusion = jnp.log(judges.confusion)
    modes = Mode(crowds.log_pi, log_confusion, cast, value, end.step, status)
    crowd, mode = jax.tree.map(lambda x: x[best], (crowds, modes))
    return crowd, mode, departures(expected, best, count, weight)
