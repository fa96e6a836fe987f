"""Counts of correct votes per item, the only data that P3 uses.

With the curve that every estimator returns: the error of a majority vote against the number of votes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Bool, Float, Int
from scipy.stats import hypergeom

from judgebayes.arrays import AnyArray, ItemCodes, ItemValues, Labels, Weights
from judgebayes.compiled.float64 import in_float64
from judgebayes.compiled.jit_inline import jit_inline
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fit import checked
from judgebayes.votes.array import Votes


@dataclass(frozen=True)
class ErrorCurve:
    """A majority vote's error at each number of votes, with its interval."""

    size: Int[np.ndarray, " size"]
    error: Float[np.ndarray, " size"]
    low: Float[np.ndarray, " size"]
    high: Float[np.ndarray, " size"]
    extrapolated: Bool[np.ndarray, " size"]
    """Whether no item has this many votes, so that the error depends on the model only."""


def odd_sizes(most: int) -> tuple[int, ...]:
    """Return 1, 3, 5 .. up to `most`.

    >>> odd_sizes(8)
    (1, 3, 5, 7)
    """
    return tuple(range(1, most + 1, 2))


def check_sizes(sizes: Sequence[int]) -> None:
    """Raise unless every number of votes is odd (P3 Definition 3.2: no ties).

    Raises
    ------
    JudgeBayesError
        If a number is even or below 1, or there is none.
    """
    wrong = [size for size in sizes if size < 1 or size % 2 == 0]
    if wrong or not sizes:
        raise JudgeBayesError(
            f"A majority of {wrong[0] if wrong else 'no'} votes is not defined; use odd numbers "
            "of votes (1, 3, 5, ...)."
        )


def wrong_majority(
    right: Int[np.ndarray, "..."], given: Int[np.ndarray, "..."], size: int
) -> Float[np.ndarray, "..."]:
    """Return P(S < k/2), S the number of right votes among k random ones of those given (P3 eq 3).

    With two classes and odd k this is the error of the majority. With more classes it is the
    probability that less than half of the votes are right, which is not the error of the plurality.
    NaN where fewer than k votes are given, or fewer than are right.
    """
    below = hypergeom.cdf((size - 1) // 2, np.maximum(given, size), np.minimum(right, given), size)
    return np.where((right <= given) & (given >= size), below, np.nan)


def distinct_rows(
    rows: Int[np.ndarray, "row column"],
) -> tuple[Int[np.ndarray, "different column"], Int[np.ndarray, " different"], np.ndarray]:
    """Return the different rows in ascending order, the first place of each, and which each row is.

    The result is that of `numpy.unique` with `axis=0`, which sorts rows as texts of bytes: that takes
    most of the time of a fit to 500,000 items.
    """
    frame = pd.DataFrame(rows)
    which = frame.groupby(list(frame.columns), sort=True).ngroup().to_numpy()
    first = np.unique(which, return_index=True)[1]
    return rows[first], first, which


MIN_ROWS = 16


def padded(rows: int) -> int:
    """Return the least of 16, 32, 64 .. that is not below a number of rows."""
    return max(MIN_ROWS, 1 << max(rows - 1, 0).bit_length())


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Counts:
    """Per item, the number `given` of votes and the number `correct` that equal the label (P3 eq 1).

    `correct` is -1 if the label is unknown or there is no vote.
    """

    correct: Int[Array, "*batch item"]
    given: Int[Array, "*batch item"]
    most: int = field(metadata={"static": True})
    """The largest number of votes that an item can have."""

    @jit_inline()
    def take(self, items: Int[AnyArray, " part"]) -> "Counts":
        """Return the counts of some items, in the given order."""
        return Counts(self.correct[items], self.given[items], self.most)

    def tallied(self, weight: Weights | None = None) -> tuple["Counts", Float[np.ndarray, " cell"]]:
        """Return the distinct pairs (correct, given), and the total weight of the items with each.

        Every fit depends on the items only through these cells; unlabelled items are left out.
        """
        correct, given = np.asarray(self.correct), np.asarray(self.given)
        weight = np.ones(len(correct)) if weight is None else np.asarray(weight, float)
        use = (correct >= 0) & (weight > 0)
        pairs = np.stack([given[use], correct[use]], axis=1)
        cells, _, which = distinct_rows(pairs)
        total = np.bincount(which, weights=weight[use], minlength=len(cells))
        return Counts(jnp.asarray(cells[:, 1]), jnp.asarray(cells[:, 0]), self.most), total


def counts_of(correct: Int[np.ndarray, "*item"], given: Int[np.ndarray, "..."] | int) -> Counts:
    """Return counts from arrays; a single number `given` applies to every item.

    Raises
    ------
    JudgeBayesError
        If lengths differ, there is no item, or more votes are correct than given.

    Examples
    --------
    >>> import numpy as np
    >>> counts_of(np.array([5, 4, 1]), 5).given.tolist()
    [5, 5, 5]
    """
    correct = np.asarray(correct)
    given = np.asarray(given)
    given = np.broadcast_to(given, correct.shape) if given.ndim == 0 else given
    if correct.ndim != 1 or correct.shape != given.shape or len(correct) == 0:
        raise JudgeBayesError(
            f"Correct and given votes have the shapes {correct.shape} and {given.shape}; "
            "pass one number of each per item, and at least one item."
        )
    bad = (correct > given) | (correct < -1) | (given < 0)
    if bad.any():
        row = int(np.argmax(bad))
        raise JudgeBayesError(
            f"Item {row} has {correct[row]} correct votes of {given[row]}; the number must be 0 to "
            f"{max(int(given[row]), 0)}, or -1 if the label is unknown."
        )
    most = max(int(given.max()), 1)
    correct_or_missing = np.where(given > 0, correct, -1)
    return Counts(jnp.asarray(correct_or_missing, jnp.int32), jnp.asarray(given, jnp.int32), most)


@in_float64
def correct_counts(votes: Votes, labels: Labels) -> Counts:
    """Return the number of votes on each item that equal its label, over all judges and samples.

    A missing vote is not a wrong vote: it lowers `given`. With three classes, a vote for a tie on a pair
    with another label is wrong (P3 Definition 3.2).

    Raises
    ------
    JudgeBayesError
        If there is not one label per item.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import judgebayes as jb
    >>> panel = {"ann": [1, 1, 0, 0, 1, 0], "ben": [1, 1, 0, 1, 1, 0], "cy": [0, 1, 1, 0, 0, 1]}
    >>> votes, _ = jb.encode_wide(pd.DataFrame(panel).rename_axis("item"))
    >>> labels = np.array([1, 1, 0, 0, -1, -1])
    >>> from judgebayes.majority import correct_counts
    >>> correct_counts(votes, labels).correct.tolist()
    [2, 3, 2, 2, -1, -1]
    """
    labels = jnp.asarray(labels)
    votes.check_per_item("labels", labels)
    correct, given = _correct_and_given(votes, labels)
    most = votes.n_judges * votes.n_samples
    if not isinstance(given, jax.core.Tracer):
        most = max(int(given.max()), 1)
    return Counts(correct, given, most)


@jax.jit
def _correct_and_given(votes: Votes, labels: ItemCodes) -> tuple[ItemCodes, ItemCodes]:
    pooled = votes.pooled_counts()
    given = pooled.sum(-1)
    agree = jnp.take_along_axis(pooled, jnp.maximum(labels, 0)[:, None], axis=-1)[:, 0]
    return jnp.where((labels >= 0) & (given > 0), agree, -1), given


def prepare(counts: Counts, weight: Weights | None) -> tuple[Counts, Float[Array, " cell"]]:
    """Return counts and weights as arrays; outside compiled code, equal items are merged.

    Their number is padded to 16, 32, 64 .. with items of weight 0, so that a fit is compiled for few
    shapes.

    Raises
    ------
    JudgeBayesError
        If the weights' length differs from the counts', or one is negative or NaN.
    """
    n_items = counts.correct.shape[0]
    _, weights = checked(np.zeros(n_items, int), weight, n_items, 1)
    if any(isinstance(x, jax.core.Tracer) for x in (counts.correct, counts.given, weights)):
        return counts, weights
    cells, total = counts.tallied(weights)
    if len(total) == 0:
        return counts, weights
    size = padded(len(total))
    repeated = cells.take(np.minimum(np.arange(size), len(total) - 1))
    return repeated, jnp.asarray(np.pad(total, (0, size - len(total))))


def labelled_weight(counts: Counts, weight: Weights | None) -> ItemValues:
    """Return the weights, 1 by default, and 0 for items without a label or a vote."""
    used = (counts.correct >= 0) & (counts.given > 0)
    return jnp.where(used, 1.0 if weight is None else jnp.asarray(weight, float), 0.0)
