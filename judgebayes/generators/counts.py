"""Data for generator precision: votes counted by generator, judge and label, or distinct items.

Distinct items have the same votes, label and generator as one row with a weight.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from judgebayes.arrays import AnyArray, ItemCodes, ItemInts, Labels, Weights
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.models.base import PanelData
from judgebayes.votes.array import Votes


def unique_items(
    votes: Votes,
    labels: Labels,
    generators: Labels,
    weight: Weights | None = None,
) -> tuple[PanelData, ItemInts]:
    """Return the distinct items with their weights, and the index of the row of every item.

    Raises
    ------
    JudgeBayesError
        If the votes are not binary, or a judge voted more than once on an item.
    """
    check_one_vote(votes, "The item-level model takes")
    index = np.asarray(votes.index)[..., 0]
    full = np.column_stack([index, np.asarray(labels, int), np.asarray(generators, int)])
    unique_rows, row_of_item = np.unique(full, axis=0, return_inverse=True)
    item_weights = np.ones(len(full)) if weight is None else np.asarray(weight, float)
    total = np.bincount(row_of_item.ravel(), weights=item_weights)
    # Rows of weight 0 pad to a power of two, so that fewer sizes are compiled.
    padding = (1 << (len(unique_rows) - 1).bit_length()) - len(unique_rows)
    unique_rows = np.pad(unique_rows, ((0, padding), (0, 0)))
    rows = PanelData(
        jnp.asarray(unique_rows[:, :-2, None]),
        jnp.asarray(unique_rows[:, -2]),
        jnp.asarray(np.pad(total, (0, padding))),
        generator=jnp.asarray(unique_rows[:, -1]),
    )
    return rows, row_of_item.ravel()


class Rates(NamedTuple):
    """True positive and true negative rate of each judge, pooled over labelled generators.

    NaN if a judge voted on no item labelled valid (or invalid).
    """

    tpr: Float[AnyArray, "*batch judge"]
    tnr: Float[AnyArray, "*batch judge"]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PrecisionCounts:
    """Counts of the votes on the items of several generators.

    A vote is valid (1) or invalid (0); a missing vote is not counted. Every item is counted once, by its
    label or among the unlabelled items. A pair of generator and judge that was never run has zeros.
    Counts are floats, so that weights and shares can be used.
    """

    accepted: Float[Array, "*batch generator judge"]
    """Unlabelled items that the judge called valid."""
    judged: Float[Array, "*batch generator judge"]
    """Unlabelled items that the judge voted on."""
    true_accepted: Float[Array, "*batch generator judge"]
    """Items labelled valid that the judge called valid (TP)."""
    valid_judged: Float[Array, "*batch generator judge"]
    """Items labelled valid that the judge voted on (TP + FN)."""
    false_accepted: Float[Array, "*batch generator judge"]
    """Items labelled invalid that the judge called valid (FP)."""
    invalid_judged: Float[Array, "*batch generator judge"]
    """Items labelled invalid that the judge voted on (FP + TN)."""
    valid: Float[Array, "*batch generator"]
    """Items labelled valid."""
    invalid: Float[Array, "*batch generator"]
    """Items labelled invalid."""
    unlabelled: Float[Array, "*batch generator"]
    """Items without a label."""

    @property
    @in_float64
    def matrix(self) -> Float[Array, "*batch generator judge"]:
        """The share of a generator's items that each judge calls valid (P4's P), NaN if none."""
        accepted = self.accepted + self.true_accepted + self.false_accepted
        judged = self.judged + self.valid_judged + self.invalid_judged
        return _share(accepted, judged)

    @property
    def labelled(self) -> Bool[Array, "*batch generator"]:
        """Whether a generator has any label."""
        return self.valid + self.invalid > 0

    @property
    @in_float64
    def labelled_precision(self) -> Float[Array, "*batch generator"]:
        """The share of valid items among the labelled ones, NaN without labels."""
        return _share(self.valid, self.valid + self.invalid)

    @in_float64
    def reveal(self, shown: Bool[AnyArray, " generator"]) -> "PrecisionCounts":
        """Return the counts with the labels of the generators in `shown` only.

        The other generators' labelled items become unlabelled ones. Works inside compiled code.
        """
        keep = jnp.asarray(shown)
        cell = keep[:, None]
        hidden = jnp.where(cell, 0.0, 1.0)
        return PrecisionCounts(
            accepted=self.accepted + hidden * (self.true_accepted + self.false_accepted),
            judged=self.judged + hidden * (self.valid_judged + self.invalid_judged),
            true_accepted=jnp.where(cell, self.true_accepted, 0.0),
            valid_judged=jnp.where(cell, self.valid_judged, 0.0),
            false_accepted=jnp.where(cell, self.false_accepted, 0.0),
            invalid_judged=jnp.where(cell, self.invalid_judged, 0.0),
            valid=jnp.where(keep, self.valid, 0.0),
            invalid=jnp.where(keep, self.invalid, 0.0),
            unlabelled=self.unlabelled + jnp.where(keep, 0.0, self.valid + self.invalid),
        )

    @in_float64
    def rates(self) -> Rates:
        """Return every judge's pooled rates on the labelled items (P4's v+ and v-)."""
        return Rates(
            _share(self.true_accepted.sum(-2), self.valid_judged.sum(-2)),
            1 - _share(self.false_accepted.sum(-2), self.invalid_judged.sum(-2)),
        )


def _share(part: Array, whole: Array) -> Array:
    """Return part / whole, NaN where the whole is 0."""
    return jnp.where(whole > 0, part / jnp.where(whole > 0, whole, 1.0), jnp.nan)


def check_binary(votes: Votes, what: str) -> None:
    """Raise JudgeBayesError unless votes have two classes."""
    if votes.n_classes != 2:
        raise JudgeBayesError(
            f"The votes have {votes.n_classes} classes; {what} needs two: invalid (0) and valid (1)."
        )


def check_one_vote(votes: Votes, what: str) -> None:
    """Raise JudgeBayesError unless votes are binary, at most one of each judge on an item."""
    if votes.n_classes != 2 or votes.n_samples != 1:
        raise JudgeBayesError(
            f"{what} one binary vote of each judge on each item; these votes have {votes.n_classes} "
            f"classes, and a judge has up to {votes.n_samples} votes on an item."
        )


@in_float64
def count_votes(
    votes: Votes, labels: Labels, generators: Labels, n_generators: int
) -> PrecisionCounts:
    """Return votes counted by generator, judge and label.

    Parameters
    ----------
    votes
        Binary votes; 1 means valid. Repeated votes of a judge on an item all count.
    labels
        1 valid, 0 invalid, -1 unknown.
    generators
        The index of each item's generator, from 0.
    n_generators
        The number of generators.

    Raises
    ------
    JudgeBayesError
        If the votes are not binary, or lengths differ.
    """
    check_binary(votes, "generator precision")
    labels, generators = jnp.asarray(labels), jnp.asarray(generators)
    votes.check_per_item("labels", labels)
    votes.check_per_item("generators", generators)
    of_label = (labels[:, None] == jnp.array([-1, 0, 1])).astype(float)
    return _counted(votes, of_label, generators, n_generators)


@in_float64
def expected_counts(
    votes: Votes, valid: Weights, generators: Labels, n_generators: int
) -> PrecisionCounts:
    """Return the expected `count_votes` of items that are valid with a probability.

    `valid` is the probability, NaN for items without a label; the other arguments are those of
    `count_votes`.
    """
    p = jnp.asarray(valid)
    known = jnp.isfinite(p)
    at = jnp.where(known, p, 0.0)
    of_label = jnp.stack([1.0 - known, jnp.where(known, 1 - at, 0.0), at], axis=1)
    return _counted(votes, of_label, jnp.asarray(generators), n_generators)


def _counted(
    votes: Votes, of_label: Float[Array, "item 3"], generators: ItemCodes, n_generators: int
) -> PrecisionCounts:
    """Return counts of items with weights for no label, invalid and valid."""
    by_class = votes.counts().astype(float)  # item judge class
    member = (generators[:, None] == jnp.arange(n_generators)).astype(float)

    def cells(weight: Array) -> tuple[Array, Array, Array]:
        chosen = member * weight[:, None]
        counted = jnp.einsum("ig,ijc->gjc", chosen, by_class)
        return counted[..., 1], counted.sum(-1), chosen.sum(0)

    (accepted, judged, unlabelled), (fp, invalid_judged, invalid), (tp, valid_judged, valid) = (
        cells(weight) for weight in of_label.T
    )
    return PrecisionCounts(
        accepted, judged, tp, valid_judged, fp, invalid_judged, valid, invalid, unlabelled
    )
