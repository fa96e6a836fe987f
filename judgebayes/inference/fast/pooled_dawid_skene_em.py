"""Variational EM for pooled judges from two starts, with an extrapolation after every two steps."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from judgebayes.arrays import ItemCodes, ItemValues
from judgebayes.inference.fast import pooled_dawid_skene
from judgebayes.inference.fast.accelerated_em import accelerated
from judgebayes.inference.fast.dawid_skene import Counts, Mode
from judgebayes.inference.fast.pooled_dawid_skene import Crowd
from judgebayes.inference.fast.two_starts import (
    Departures,
    Limits,
    TwoStarts,
    departures,
    ended,
    higher,
)
from judgebayes.models.pooled_dawid_skene import PooledPrior

Scalar = float | Float[Array, ""]

Point = tuple[Crowd, Float[Array, "start judge class vote"]]
"""A crowd and the expected votes."""


def maximise_pooled(
    limits: Limits,
    count: Counts,
    labels: ItemCodes,
    weight: ItemValues,
    prior: PooledPrior,
    noise: Scalar,
    n_classes: int,
) -> tuple[Crowd, Mode, Departures]:
    """Run variational EM from both starts; every step raises the lower bound."""
    em = TwoStarts(count, labels, weight, noise, n_classes)
    bound = jax.vmap(pooled_dawid_skene.bound, (0, 0, 0, None))
    given_votes = jax.vmap(pooled_dawid_skene.given_votes)
    improved = jax.vmap(pooled_dawid_skene.improved, (0, 0, 0, None))
    moved = jax.vmap(pooled_dawid_skene.moved)

    def step(crowd: Crowd, expected: Float[Array, "column item"]) -> Point:
        votes = em.tally(expected)
        judges = given_votes(crowd, votes)
        return improved(crowd, judges, em.share(expected), prior), votes

    def advance(point: Point) -> tuple[Point, Float[Array, " start"]]:
        judges = given_votes(*point)
        likelihood, expected = em.expect(point[0].log_pi, judges.expected_log)
        return step(point[0], expected), bound(point[0], judges, likelihood, prior)

    log_pi, log_confusion = em.begin()
    _, expected = em.expect(log_pi, log_confusion)
    crowd = jax.vmap(lambda x: pooled_dawid_skene.begin(x, prior))(log_pi)
    end = accelerated(
        advance,
        jax.vmap(pooled_dawid_skene.extrapolated),
        step(crowd, expected),
        least_gain=limits.tolerance * jnp.maximum(weight.sum(), 1.0),
        max_steps=limits.max_steps,
        moved=lambda before, after: moved(before[0], after[0]),
        least_move=limits.tolerance**0.5 / 100,
    )
    crowds, votes = end.point
    judges = given_votes(crowds, votes)
    likelihood, expected = em.expect(crowds.log_pi, judges.expected_log)
    value = bound(crowds, judges, likelihood, prior)
    best, cast, status = higher(value), em.tally(expected).sum(-1), ended(value, end.converged)
    log_confusion = jnp.log(judges.confusion)
    modes = Mode(crowds.log_pi, log_confusion, cast, value, end.steps, status)
    crowd, mode = jax.tree.map(lambda x: x[best], (crowds, modes))
    return crowd, mode, departures(expected, best, count, weight)
