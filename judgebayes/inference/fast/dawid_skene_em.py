"""EM for Dawid and Skene's model from two starts, and how far its decisions depart from others."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from judgebayes.inference.fast import dawid_skene
from judgebayes.inference.fast.dawid_skene import (
    SAME_MODE,
    Counts,
    Mode,
    from_columns,
    in_columns,
    responsibilities,
    updated,
)
from judgebayes.inference.fast.sparse_dawid_skene import Limits
from judgebayes.inference.status import Status
from judgebayes.models.dawid_skene import Prior

__all__ = ["Departures", "departures", "higher", "maximise"]

Scalar = float | Float[Array, ""]


class _State(NamedTuple):
    """The state of EM, for each start."""

    log_pi: Float[Array, "start class"]
    log_confusion: Float[Array, "start judge class vote"]
    value: Float[Array, " start"]
    gain: Float[Array, " start"]
    step: Int[Array, " start"]


def maximise(
    limits: Limits,
    count: Counts,
    labels: Int[Array, " item"],
    weight: Float[Array, " item"],
    prior: Prior,
    noise: Scalar,
    n_classes: int,
) -> tuple[Mode, "Departures"]:
    """Run EM from both starts and return the higher mode; every step raises the log posterior.

    Both starts are columns of the same products, so that the votes are read once.
    """
    total, classes = jnp.maximum(weight.sum(), 1.0), range(n_classes)
    clamped = dawid_skene.clamp(labels, noise, n_classes)

    def expect(
        log_pi: Float[Array, "start class"], log_confusion: Float[Array, "start judge class vote"]
    ) -> tuple[Float[Array, " start"], Float[Array, "column item"]]:
        evidence = count @ in_columns(log_confusion)
        values, expected = [], []
        for start, prior_share in enumerate(log_pi):
            first = start * n_classes
            joint = [prior_share[k] + clamped[:, k] + evidence[:, first + k] for k in classes]
            each, own = responsibilities(joint)
            values.append(jnp.where(weight > 0, weight * each, 0.0).sum())
            expected += [weight * x for x in own]
        log_prior = jax.vmap(dawid_skene.log_prior, (0, 0, None))(log_pi, log_confusion, prior)
        return jnp.stack(values) + log_prior, jnp.stack(expected)

    def tally(expected: Float[Array, "column item"]) -> Float[Array, "start judge class vote"]:
        return from_columns((expected @ count).T, len(expected) // n_classes, n_classes)

    def running(state: _State) -> Bool[Array, " start"]:
        return (state.step < limits.max_steps) & (state.gain > limits.tolerance * total)

    def advance(state: _State) -> _State:
        value, expected = expect(state.log_pi, state.log_confusion)
        next_state = _State(
            *jax.vmap(updated, (0, 0, None))(
                expected.sum(1).reshape(-1, n_classes), tally(expected), prior
            ),
            value,
            jnp.where(state.step < 1, jnp.inf, value - state.value),
            state.step + 1,
        )
        active = running(state)
        return jax.tree.map(
            lambda new, old: jnp.where(active.reshape(-1, *[1] * (new.ndim - 1)), new, old),
            next_state,
            state,
        )

    starts = [
        begin(count, labels, weight, n_classes)
        for begin in (dawid_skene.start, dawid_skene.majority_start)
    ]
    log_pi, log_confusion = (jnp.stack(x) for x in zip(*starts, strict=True))
    unknown = jnp.full(len(starts), -jnp.inf)
    initial = _State(log_pi, log_confusion, unknown, -unknown, jnp.zeros(len(starts), int))
    end = jax.lax.while_loop(lambda state: running(state).any(), advance, initial)
    value, expected = expect(end.log_pi, end.log_confusion)
    status = jnp.select(
        [~jnp.isfinite(value), end.gain <= limits.tolerance * total],
        [int(Status.NONFINITE), int(Status.CONVERGED)],
        int(Status.MAX_STEPS),
    )
    best = higher(value)
    modes = Mode(end.log_pi, end.log_confusion, tally(expected).sum(-1), value, end.step, status)
    return jax.tree.map(lambda x: x[best], modes), departures(expected, best, count, weight)


def higher(value: Float[Array, " start"]) -> Int[Array, ""]:
    """Return the start with the higher value; the first, if they are the same."""
    return jnp.where(value[1] > value[0] + SAME_MODE * jnp.abs(value[0]), 1, 0)


class Departures(NamedTuple):
    """The share of items on which decisions differ from those of the majority and of the other start."""

    majority: Float[Array, ""]
    other_start: Float[Array, ""]


def departures(
    expected: Float[Array, "column item"],
    best: Int[Array, ""],
    count: Counts,
    weight: Float[Array, " item"],
) -> Departures:
    """Return the departures of the start with index `best`, from the expected classes of both starts."""
    n_classes = len(expected) // 2
    by_start = expected.reshape(2, n_classes, -1).argmax(1)
    own, other = by_start[best], by_start[1 - best]
    n_judges = count.shape[1] // n_classes
    for_class = count @ jnp.tile(jnp.eye(n_classes), (n_judges, 1))
    most = for_class == for_class.max(1, keepdims=True)
    decided = (weight > 0) & (most.sum(1) == 1)

    def share(where: Array, among: Array) -> Float[Array, ""]:
        return (where & among).sum() / jnp.maximum(among.sum(), 1)

    return Departures(share(own != most.argmax(1), decided), share(own != other, weight > 0))
