r"""What k votes decide, if they are drawn at random from an item's votes: exact, for any classes.

The k votes are drawn without replacement from n_c votes for each class c, so that the numbers of votes
drawn have the multivariate hypergeometric distribution. Its terms are products over classes, and so the
probability that class c has the most votes, with m others as many, is a sum of products of polynomials:
with a_c(j) the probability of j successes out of n_c at p = k / n,

.. math:: P(c, t, m) = a_c(t)\, [y^m x^{k - t}] \prod_{l \ne c}
          \Bigl(\sum_{j < t} a_l(j) x^j + y\, a_l(t) x^t\Bigr) \Big/ \binom{n}{k} p^k (1 - p)^{n - k}.

The paper has only two classes, and counts a tie of an even panel as right (Definition 3.2: odd k).

How the votes on each item split among the classes: all that the split curve and the plurality use.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int
from scipy.stats import binom, hypergeom

from judgebayes.arrays import ItemFloats, ItemInts, Labels
from judgebayes.errors import JudgeBayesError
from judgebayes.majority.counts import distinct_rows, padded
from judgebayes.models.split_curve import SplitData, split_data
from judgebayes.votes.array import Votes

COMMON = 256


@dataclass(frozen=True)
class Splits:
    """Per item, the number of votes for each class, and the label.

    `label_classes` are the classes that a label can be. With votes for A, tie and B and labels A or B,
    they are 0 and 2: a vote for a tie is then a vote for no class.
    """

    given: Int[np.ndarray, "item class"]
    labels: ItemInts
    """Class indices, -1 where unknown."""
    label_classes: tuple[int, ...]

    def __post_init__(self) -> None:
        """Raise a JudgeBayesError unless shapes, counts and labels agree."""
        n_items, n_classes = self.given.shape
        if self.labels.shape != (n_items,):
            raise JudgeBayesError(
                f"There are {n_items} items with votes and {len(self.labels)} labels; pass one label "
                "per item, -1 where it is unknown."
            )
        if len(self.label_classes) < 2 or not set(self.label_classes) <= set(range(n_classes)):
            raise JudgeBayesError(
                f"A label can be {list(self.label_classes)}; name at least two of the classes 0 to "
                f"{n_classes - 1}."
            )
        if (self.given < 0).any():
            raise JudgeBayesError("A number of votes is negative; it must be 0 or more.")
        wrong = (self.labels >= 0) & ~np.isin(self.labels, self.label_classes)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise JudgeBayesError(
                f"Item {row} has the label {self.labels[row]}, which is not one of the classes "
                f"{list(self.label_classes)} that a label can be."
            )

    @cached_property
    def total(self) -> ItemInts:
        """The number of votes on each item."""
        # By column: NumPy adds the few numbers of a row one row after the other.
        total: np.ndarray = np.sum(list(self.given.T), axis=0)
        return total

    @cached_property
    def labelled(self) -> np.ndarray:
        """Whether an item has a label and votes."""
        return (self.labels >= 0) & (self.total > 0)

    @cached_property
    def kinds(self) -> tuple[np.ndarray, Int[np.ndarray, " kind"], ItemInts]:
        """The different splits, the first item of each, and which one each item has."""
        return distinct_rows(self.given)

    @property
    def most(self) -> int:
        """The largest number of votes on an item."""
        return int(self.total.max(initial=0))

    def take(self, items: Int[np.ndarray, " part"]) -> "Splits":
        """Return the splits of some items, in the given order."""
        return Splits(self.given[items], self.labels[items], self.label_classes)

    def with_labels(self, labels: ItemInts) -> "Splits":
        """Return the splits with other labels."""
        other = Splits(self.given, labels, self.label_classes)
        # What was computed from the same votes is right for both.
        vars(other).update(
            {name: vars(self)[name] for name in ("total", "kinds") if name in vars(self)}
        )
        return other

    def positions(self) -> ItemInts:
        """Return the labels as positions in `label_classes`, -1 where unknown."""
        position = np.full(self.given.shape[1] + 1, -1)
        position[list(self.label_classes)] = np.arange(len(self.label_classes))
        return position[self.labels]


def splits_of(
    votes: Votes,
    labels: Labels,
    label_classes: tuple[int, ...] | None = None,
    judges: Int[np.ndarray, " judge"] | None = None,
) -> Splits:
    """Return how the votes of all judges and samples split; missing votes count for no class.

    Parameters
    ----------
    votes, labels
        Votes, and class indices with -1 where unknown.
    label_classes
        The classes that a label can be; by default all.
    judges
        The judges whose votes count; by default all.

    Raises
    ------
    JudgeBayesError
        If the shapes differ, or a label is not one of these classes.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import judgebayes as jb
    >>> panel = {"ann": [1, 1, 0], "ben": [1, 1, 1], "cy": [0, 1, 0]}
    >>> votes, _ = jb.encode_wide(pd.DataFrame(panel).rename_axis("item"))
    >>> splits_of(votes, np.array([1, -1, 0])).given.tolist()
    [[1, 2], [0, 3], [2, 1]]
    """
    index = np.asarray(votes.index)
    index = index if judges is None else index[:, judges]
    n_classes = votes.n_classes
    given = np.stack([(index == c).sum((1, 2)) for c in range(n_classes)], axis=1)
    chosen = tuple(range(n_classes)) if label_classes is None else label_classes
    return Splits(given, np.asarray(labels), chosen)


def item_data(splits: Splits) -> SplitData:
    """Return the data of the curve, a row per item."""
    labels = jnp.asarray(np.where(splits.labelled, splits.positions(), -1))
    return split_data(jnp.asarray(splits.given, float), labels, None, splits.label_classes)


def labelled_data(splits: Splits, weight: ItemFloats) -> SplitData:
    """Return the data of the curve: each distinct split and label once, with its total weight.

    Their number is padded with rows of weight 0 to 16, 32, 64 .., and up to `COMMON` to the number that
    labels of all items could have, so that fits of more labels need no other compiled program.
    """
    used = splits.labelled & (weight > 0)
    rows = np.column_stack([splits.given[used], splits.positions()[used]])
    rows, _, where = distinct_rows(rows)
    total = np.bincount(where, weights=weight[used], minlength=len(rows))
    possible = len(splits.kinds[0]) * len(splits.label_classes)
    size = padded(max(len(rows), min(possible, COMMON)))
    whole = np.zeros((size, rows.shape[1]), int)
    whole[: len(rows)] = rows
    return split_data(
        jnp.asarray(whole[:, :-1], float),
        jnp.asarray(whole[:, -1]),
        jnp.asarray(np.pad(total, (0, size - len(rows)))),
        splits.label_classes,
    )


Decision = Literal["random", "abstain", "median"]
"""What is decided: the class with the most votes, where a tie is broken at random or is no decision; or
the median of ordered classes (of an even number of votes, either of the two middle ones at random)."""


def decision_probs(
    given: Int[np.ndarray, "item class"],
    size: int,
    decision: Decision = "random",
    candidates: tuple[int, ...] | None = None,
) -> Float[np.ndarray, "item class"]:
    """Return the probability that k random votes of an item decide for each class.

    Parameters
    ----------
    given
        The number of votes for each class.
    size
        k; items with fewer votes have NaN.
    decision
        How votes become a decision. With "abstain", the probabilities add up to less than 1.
    candidates
        The classes that can be decided for; by default all. A vote for another class, such as a tie
        where no label is one, is a vote for none of them. Not used with "median".
    """
    counts, _, where = distinct_rows(np.asarray(given))
    if decision == "median":
        decided = _median(counts, size)
    else:
        chosen = tuple(range(counts.shape[1])) if candidates is None else candidates
        decided = _plurality(counts, size, decision == "abstain", chosen)
    decided = np.where((counts.sum(1) >= size)[:, None], decided, np.nan)
    return decided[where]


def _plurality(
    counts: Int[np.ndarray, "cell class"],
    size: int,
    abstain: bool,
    candidates: tuple[int, ...],
) -> Float[np.ndarray, "cell class"]:
    n_classes = counts.shape[1]
    total = np.maximum(counts.sum(1), size)
    p = size / total
    drawn = np.arange(size + 1)
    chance = binom.pmf(drawn, counts[:, :, None], p[:, None, None])  # cell, class, j
    whole = binom.pmf(size, total, p)
    decided = np.zeros(counts.shape)
    share = np.zeros(n_classes) if abstain else 1 / np.arange(1, n_classes + 1)
    least = -(-size // n_classes) if len(candidates) == n_classes else 0
    for c in candidates:
        for most in range(least, size + 1):
            by_ties = _with_others(chance, c, most, candidates)
            decided[:, c] += by_ties[:, 0] + by_ties[:, 1:] @ share[1:]
    return decided / whole[:, None]


def _with_others(
    chance: Float[np.ndarray, "cell class drawn"],
    c: int,
    most: int,
    candidates: tuple[int, ...],
) -> Float[np.ndarray, "cell tie"]:
    """Return P(c has `most` votes, m other candidates have as many, and none has more), for each m."""
    n_cells, n_classes, n_counts = chance.shape
    rest = n_counts - 1 - most
    ways = np.zeros((n_cells, n_classes, rest + 1))
    ways[:, 0, 0] = chance[:, c, most]
    for other in range(n_classes):
        if other == c:
            continue
        longer = np.zeros_like(ways)
        fewer = min(most - 1, rest) if other in candidates else rest
        for j in range(fewer + 1):
            longer[:, :, j:] += chance[:, other, j, None, None] * ways[:, :, : rest + 1 - j]
        if most <= rest and other in candidates:
            as_many = chance[:, other, most, None, None]
            longer[:, 1:, most:] += as_many * ways[:, :-1, : rest + 1 - most]
        ways = longer
    return ways[:, :, rest]


def _median(counts: Int[np.ndarray, "cell class"], size: int) -> Float[np.ndarray, "cell class"]:
    """Return P(median = c): the median is at most c if more than half of the votes are."""
    up_to = np.cumsum(counts, axis=1)
    total = np.maximum(counts.sum(1, keepdims=True), size)
    # The lower middle vote is at most c if (k + 1) // 2 votes are, the upper one if k // 2 + 1 are.
    middles = [
        1 - hypergeom.cdf(least - 1, total, up_to, size)
        for least in ((size + 1) // 2, size // 2 + 1)
    ]
    return np.diff(np.mean(middles, axis=0), axis=1, prepend=0.0)
