"""EM for Dawid and Skene's model from two starts side by side: what every route of it shares.

The votes are read once for both starts, whose classes are columns of the same products.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from judgebayes.arrays import ItemCodes, ItemValues
from judgebayes.inference.fast import dawid_skene
from judgebayes.inference.fast.dawid_skene import (
    SAME_MODE,
    Counts,
    from_columns,
    in_columns,
    responsibilities,
)
from judgebayes.inference.status import Status

Scalar = float | Float[Array, ""]


class Limits(NamedTuple):
    """The stopping rule of EM: the least gain per item, and the most steps."""

    tolerance: float
    max_steps: int


@dataclass(frozen=True)
class TwoStarts:
    """The votes and labels that EM runs on."""

    count: Counts
    labels: ItemCodes
    weight: ItemValues
    noise: Scalar
    n_classes: int

    def begin(self) -> tuple[Float[Array, "start class"], Float[Array, "start judge class vote"]]:
        """Return the logarithms of class shares and confusion matrices of both starts."""
        starts = [
            start(self.count, self.labels, self.weight, self.n_classes)
            for start in (dawid_skene.start, dawid_skene.majority_start)
        ]
        log_pi, log_confusion = (jnp.stack(x) for x in zip(*starts, strict=True))
        return log_pi, log_confusion

    def expect(
        self,
        log_pi: Float[Array, "start class"],
        log_votes: Float[Array, "start judge class vote"],
    ) -> tuple[Float[Array, " start"], Float[Array, "column item"]]:
        """Return the log-likelihood and the weighted probabilities of the items' classes."""
        clamped = dawid_skene.clamp(self.labels, self.noise, self.n_classes)
        evidence = self.count @ in_columns(log_votes)
        values, expected = [], []
        for start, prior_share in enumerate(log_pi):
            first = start * self.n_classes
            joint = [
                prior_share[k] + clamped[:, k] + evidence[:, first + k]
                for k in range(self.n_classes)
            ]
            each, own = responsibilities(joint)
            values.append(jnp.where(self.weight > 0, self.weight * each, 0.0).sum())
            expected += [self.weight * x for x in own]
        return jnp.stack(values), jnp.stack(expected)

    def share(self, expected: Float[Array, "column item"]) -> Float[Array, "start class"]:
        """Return the expected number of items of each class."""
        return expected.sum(1).reshape(-1, self.n_classes)

    def tally(
        self, expected: Float[Array, "column item"]
    ) -> Float[Array, "start judge class vote"]:
        """Return the expected number of votes by judge, class and vote."""
        columns = (expected @ self.count).T
        return from_columns(columns, len(expected) // self.n_classes, self.n_classes)


def ended(value: Float[Array, " start"], converged: Bool[Array, " start"]) -> Int[Array, " start"]:
    """Return the status of each start."""
    return jnp.select(
        [~jnp.isfinite(value), converged],
        [int(Status.NONFINITE), int(Status.CONVERGED)],
        int(Status.MAX_STEPS),
    )


def higher(value: Float[Array, " start"]) -> Int[Array, ""]:
    """Return the start with the higher value; the first, if they are the same."""
    return jnp.where(value[1] > value[0] + SAME_MODE * jnp.abs(value[0]), 1, 0)


class Departures(NamedTuple):
    """The share of items on which decisions differ from those of the majority and of the other start."""

    majority: Float[Array, ""]
    other_start: Float[Array, ""]


def departures(
    expected: Float[Array, "column item"], best: Int[Array, ""], count: Counts, weight: ItemValues
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
