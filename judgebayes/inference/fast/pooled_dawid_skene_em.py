"""Variational EM for pooled judges from two starts, with an extrapolation after every two steps."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from judgebayes.inference.fast import dawid_skene, pooled_dawid_skene
from judgebayes.inference.fast.accelerated_em import accelerated
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

Point = tuple[Crowd, Float[Array, "start judge class vote"]]
"""A crowd and the expected votes."""


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

    def step(crowd: Crowd, expected: Float[Array, "column item"]) -> Point:
        votes = tally(expected)
        share = expected.sum(1).reshape(-1, n_classes)
        return improved(crowd, given_votes(crowd, votes), share, prior), votes

    def advance(point: Point) -> tuple[Point, Float[Array, " start"]]:
        judges = given_votes(*point)
        likelihood, expected = expect(point[0].log_pi, judges.expected_log)
        return step(point[0], expected), bound(point[0], judges, likelihood, prior)

    starts = [
        begin(count, labels, weight, n_classes)
        for begin in (dawid_skene.start, dawid_skene.majority_start)
    ]
    log_pi, log_confusion = (jnp.stack(x) for x in zip(*starts, strict=True))
    _, expected = expect(log_pi, log_confusion)
    crowd = jax.vmap(lambda x: pooled_dawid_skene.begin(x, prior))(log_pi)
    end = accelerated(
        advance,
        jax.vmap(pooled_dawid_skene.extrapolated),
        step(crowd, expected),
        least_gain=limits.tolerance * total,
        max_steps=limits.max_steps,
        moved=lambda before, after: moved(before[0], after[0]),
        least_move=limits.tolerance**0.5 / 100,
    )
    crowds, votes = end.point
    judges = given_votes(crowds, votes)
    likelihood, expected = expect(crowds.log_pi, judges.expected_log)
    value = bound(crowds, judges, likelihood, prior)
    status = jnp.select(
        [~jnp.isfinite(value), end.converged],
        [int(Status.NONFINITE), int(Status.CONVERGED)],
        int(Status.MAX_STEPS),
    )
    best = higher(value)
    cast = tally(expected).sum(-1)
    log_confusion = jnp.log(judges.confusion)
    modes = Mode(crowds.log_pi, log_confusion, cast, value, end.steps, status)
    crowd, mode = jax.tree.map(lambda x: x[best], (crowds, modes))
    return crowd, mode, departures(expected, best, count, weight)
