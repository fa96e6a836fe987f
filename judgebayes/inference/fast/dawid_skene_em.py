"""EM for Dawid and Skene's model from two starts, and how far its decisions depart from others."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from judgebayes.inference.fast import dawid_skene
from judgebayes.inference.fast.accelerated_em import accelerated, line
from judgebayes.inference.fast.dawid_skene import (
    LEAST,
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


Point = tuple[Float[Array, "start class"], Float[Array, "start judge class vote"]]
"""The logarithms of class shares and confusion matrices."""
Single = tuple[Float[Array, " class"], Float[Array, "judge class vote"]]
"""The same for one start."""
PLAIN_STEPS = 30
"""Steps before the first extrapolation, so that it does not leave the mode of its start."""


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

    def advance(point: Point) -> tuple[Point, Float[Array, " start"]]:
        value, expected = expect(*point)
        share = expected.sum(1).reshape(-1, n_classes)
        return jax.vmap(updated, (0, 0, None))(share, tally(expected), prior), value

    starts = [
        begin(count, labels, weight, n_classes)
        for begin in (dawid_skene.start, dawid_skene.majority_start)
    ]
    log_pi, log_confusion = (jnp.stack(x) for x in zip(*starts, strict=True))
    end = accelerated(
        advance,
        jax.vmap(_extrapolated),
        (log_pi, log_confusion),
        least_gain=limits.tolerance * total,
        max_steps=limits.max_steps,
        plain_steps=PLAIN_STEPS,
    )
    log_pi, log_confusion = end.point
    value, expected = expect(log_pi, log_confusion)
    status = jnp.select(
        [~jnp.isfinite(value), end.converged],
        [int(Status.NONFINITE), int(Status.CONVERGED)],
        int(Status.MAX_STEPS),
    )
    best = higher(value)
    modes = Mode(log_pi, log_confusion, tally(expected).sum(-1), value, end.steps, status)
    return jax.tree.map(lambda x: x[best], modes), departures(expected, best, count, weight)


def _extrapolated(first: Single, second: Single, third: Single) -> Single:
    """Return class shares and confusion matrices of one start, extrapolated as probabilities."""
    points = [jax.tree.map(jnp.exp, point) for point in (first, second, third)]
    far = line(points[0], points[1], points[2], lambda point: point)

    def normalised(x: Array) -> Array:
        positive = jnp.maximum(x, LEAST)
        return jnp.log(positive / positive.sum(-1, keepdims=True))

    return normalised(far[0]), normalised(far[1])


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
