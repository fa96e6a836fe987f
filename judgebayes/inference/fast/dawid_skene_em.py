"""EM for Dawid and Skene's model from two starts, with an extrapolation after every two steps."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from judgebayes.arrays import ItemCodes, ItemValues
from judgebayes.inference.fast import dawid_skene
from judgebayes.inference.fast.accelerated_em import accelerated, line
from judgebayes.inference.fast.dawid_skene import LEAST, Counts, Mode, updated
from judgebayes.inference.fast.two_starts import (
    Departures,
    Limits,
    TwoStarts,
    departures,
    ended,
    higher,
)
from judgebayes.models.dawid_skene import Prior

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
    labels: ItemCodes,
    weight: ItemValues,
    prior: Prior,
    noise: Scalar,
    n_classes: int,
) -> tuple[Mode, Departures]:
    """Run EM from both starts and return the higher mode; every step raises the log posterior."""
    em = TwoStarts(count, labels, weight, noise, n_classes)
    of_prior = jax.vmap(dawid_skene.log_prior, (0, 0, None))

    def advance(point: Point) -> tuple[Point, Float[Array, " start"]]:
        value, expected = em.expect(*point)
        improved = jax.vmap(updated, (0, 0, None))(em.share(expected), em.tally(expected), prior)
        return improved, value + of_prior(*point, prior)

    end = accelerated(
        advance,
        jax.vmap(_extrapolated),
        em.begin(),
        least_gain=limits.tolerance * jnp.maximum(weight.sum(), 1.0),
        max_steps=limits.max_steps,
        plain_steps=PLAIN_STEPS,
    )
    log_pi, log_confusion = end.point
    value, expected = em.expect(log_pi, log_confusion)
    value += of_prior(log_pi, log_confusion, prior)
    best, cast = higher(value), em.tally(expected).sum(-1)
    modes = Mode(log_pi, log_confusion, cast, value, end.steps, ended(value, end.converged))
    return jax.tree.map(lambda x: x[best], modes), departures(expected, best, count, weight)


def _extrapolated(first: Single, second: Single, third: Single) -> Single:
    """Return class shares and confusion matrices of one start, extrapolated as probabilities."""
    points = [jax.tree.map(jnp.exp, point) for point in (first, second, third)]
    far = line(points[0], points[1], points[2], lambda point: point)

    def normalised(x: Array) -> Array:
        positive = jnp.maximum(x, LEAST)
        return jnp.log(positive / positive.sum(-1, keepdims=True))

    return normalised(far[0]), normalised(far[1])
