"""How the votes on each item split among the classes: all that the split curve and the plurality use."""

from dataclasses import dataclass
from functools import cached_property

import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from judgebayes.arrays import ItemFloats, ItemInts, Labels
from judgebayes.errors import JudgeBayesError
from judgebayes.majority.distinct import distinct_rows
from judgebayes.models.split_curve import SplitData, split_data
from judgebayes.votes.array import Votes

MIN_ROWS = 16
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


def padded(rows: int) -> int:
    """Return the least of 16, 32, 64 .. that is not below a number of rows."""
    return max(MIN_ROWS, 1 << max(rows - 1, 0).bit_length())
