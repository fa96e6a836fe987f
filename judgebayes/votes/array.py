"""Votes as an array: class indices by item, judge and sample, with missing entries.

Votes as a list serve crowds whose table of items by workers is mostly empty.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from judgebayes.arrays import AnyArray, ItemInts
from judgebayes.compiled.jit_inline import jit_inline
from judgebayes.errors import JudgeBayesError

MISSING = -1
"""The index of a vote that was not given or could not be read; it is not a class.

Such a vote is ignored: counts and rules leave it out, and it is a factor of one in a likelihood, as if
the judge had not been asked. Only the free form of stacking gives absence a weight. The coding
(`judgebayes.votes.Coding`) records which votes were requested and are missing, for diagnostics. A label
of this index is unknown.
"""

UNDECIDED = -2
"""The index of a vote for no class: a judge's "tie" or "unsure" where no label is one.

Like a missing vote, it is for no class, and a factor of one in a likelihood; but the judge answered. Its
rate is reported by judge, and `judgebayes.WithUndecided` uses what it says about the label.
"""

MOST_CELLS = 10**8
"""The numbers of votes by judge and class above which classes are counted one by one."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Votes:
    """Votes of judges on items, each repeated up to `sample` times.

    `index` contains class indices 0 .. n_classes - 1, in the order of the classes, or `MISSING`, or
    `UNDECIDED`.
    Samples are sorted by the sample column and then by presentation order, so that the first n
    samples are balanced over orders if the votes are.
    """

    index: Int[Array, "*batch item judge sample"]
    score: Float[Array, "*batch item judge sample"] | None
    """A number that came with each vote, such as its confidence; NaN where the vote is missing."""
    order: Int[Array, "*batch item judge sample"] | None
    """0 where the vote was given in the labels' order, 1 where the responses were swapped."""
    task: Int[Array, "*batch item"] | None
    """The task that each item belongs to."""
    n_classes: int = field(metadata={"static": True})
    n_tasks: int = field(default=0, metadata={"static": True})

    @property
    def n_items(self) -> int:
        """The number of items."""
        return self.index.shape[-3]

    @property
    def n_judges(self) -> int:
        """The number of judges."""
        return self.index.shape[-2]

    @property
    def n_samples(self) -> int:
        """The most votes that a judge gave on one item."""
        return self.index.shape[-1]

    def __repr__(self) -> str:
        """Return a short summary."""
        try:
            cast = f"{int((self.index >= 0).sum())} votes"
        except (TypeError, AttributeError):  # a tracer, or a placeholder inside a transformation
            cast = "votes"
        shape = " x ".join(str(n) for n in getattr(self.index, "shape", ()))
        return f"Votes({cast}, item x judge x sample = {shape}, {self.n_classes} classes)"

    @jit_inline()
    def counts(self) -> Int[Array, "*batch item judge class"]:
        """Return the number of votes by item, judge and class; missing votes are ignored."""
        return (self.index[..., None] == jnp.arange(self.n_classes)).sum(-2, dtype=jnp.int32)

    @jit_inline()
    def pooled_counts(self) -> Int[Array, "*batch item class"]:
        """Return the votes of all judges together, by item and class."""
        if self.index.size * self.n_classes <= MOST_CELLS:
            return self.counts().sum(-2)

        # Class by class, which takes longer: for 20,000 items x 1,000 judges x 20 classes, the counts by
        # judge would have 1.6 GB.
        def of_class(k: Int[Array, ""]) -> Int[Array, "*batch item"]:
            return (self.index == k).sum((-2, -1), dtype=jnp.int32)

        return jnp.moveaxis(jax.lax.map(of_class, jnp.arange(self.n_classes)), 0, -1).astype(int)

    @jit_inline()
    def take(self, items: Int[AnyArray, " part"]) -> "Votes":
        """Return the votes on some items, in the given order."""
        return self._each(lambda array, _: array[items])

    def padded(self, n_items: int) -> "Votes":
        """Return the votes padded to `n_items` items; the added items have no votes.

        Not for compiled code: the arrays are NumPy arrays, not yet placed on a device.
        """

        def pad(array: Array, fill: float) -> Any:
            # Takes a third of the time of `np.pad`.
            wide = np.full((n_items, *array.shape[1:]), fill, array.dtype)
            wide[: len(array)] = array
            return wide

        return self._each(pad)

    def _each(self, change: Callable[[Array, float], Any], tasks: bool = True) -> "Votes":
        """Return the votes with each array changed, which is given with its value of no vote."""
        fills = {"index": MISSING, "score": jnp.nan, "order": MISSING} | (
            {"task": 0} if tasks else {}
        )
        arrays = {name: getattr(self, name) for name in fills}
        return replace(
            self, **{name: change(x, fills[name]) for name, x in arrays.items() if x is not None}
        )

    def first(self, samples: int) -> "Votes":
        """Return the votes with only the first samples of every judge on every item; others are missing.

        The shape is unchanged, so that fits at several numbers of votes are compiled once.
        """
        if not 0 < samples <= self.n_samples:
            raise JudgeBayesError(
                f"The first {samples} samples were requested, but judges voted at most {self.n_samples} "
                "times on an item."
            )
        early = jnp.arange(self.n_samples) < samples
        return replace(self, index=jnp.where(early, self.index, MISSING))

    def check_per_item(self, name: str, array: Any) -> None:
        """Raise JudgeBayesError unless an array, called `name`, has one value for each item."""
        if array.shape != (self.n_items,):
            raise JudgeBayesError(
                f"The {name} have the shape {array.shape}; the votes have {self.n_items} items, so the "
                f"shape must be ({self.n_items},)."
            )

    def of_judges(self, judges: Sequence[int] | Int[np.ndarray, " part"]) -> "Votes":
        """Return the votes of the judges at some positions; one at -1 has no votes."""
        where = np.asarray(judges)
        if (where >= 0).all():
            return self._each(lambda array, _: array[..., where, :], tasks=False)
        there = (where >= 0)[:, None]
        return self._each(
            lambda array, fill: jnp.where(there, array[..., where, :], fill), tasks=False
        )


def from_counts(counts: np.ndarray) -> Votes:
    """Return the votes of one judge from its counts by item and class.

    Raises
    ------
    JudgeBayesError
        If a count is negative or not a whole number.

    Examples
    --------
    >>> import numpy as np
    >>> from_counts(np.array([[0, 1, 7], [6, 2, 0]])).pooled_counts().tolist()
    [[0, 1, 7], [6, 2, 0]]
    """
    counts = np.asarray(counts)  # item x class
    if counts.ndim != 2 or counts.shape[1] < 2:
        raise JudgeBayesError(
            f"Counts have the shape {counts.shape}; it must be (item, class) with two or more "
            "classes."
        )
    bad = ~((counts >= 0) & (counts == np.floor(counts)))
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise JudgeBayesError(
            f"Row {row}, class {column} contains the count {counts[row, column]}; counts are whole "
            "numbers of 0 or more."
        )
    ends = counts.astype(np.int64).cumsum(1)
    sample = np.arange(max(int(ends.max(initial=0)), 1))
    index = (sample[:, None] >= ends[:, None, :]).sum(-1)
    index = np.where(index < counts.shape[1], index, MISSING)
    return Votes(jnp.asarray(index[:, None, :], jnp.int8), None, None, None, counts.shape[1])


@dataclass(frozen=True)
class Data:
    """Votes, labels (-1 where unknown), and the names of items, judges and classes."""

    votes: Votes
    labels: ItemInts
    items: tuple[str, ...]
    judges: tuple[str, ...]
    classes: tuple[str, ...]
    pairwise: bool = False
    """Whether the two ends of the scale are two responses that could be swapped."""
    generator: ItemInts | None = None
    generators: tuple[str, ...] = ()

    @property
    def index(self) -> Int[np.ndarray, "item judge sample"]:
        """The votes as class indices, -1 where missing or undecided."""
        return np.maximum(np.asarray(self.votes.index, np.int8), MISSING)

    @property
    def labelled(self) -> Int[np.ndarray, " some"]:
        """The positions of the labelled items."""
        return np.flatnonzero(self.labels >= 0)

    def names(self, of: Int[np.ndarray, " some"]) -> list[str]:
        """Return the names of items by their positions."""
        return [self.items[int(i)] for i in of]

    def sizes(self) -> str:
        """Return the sizes as text."""
        cast = int((self.index >= 0).sum())
        return (
            f"{len(self.items)} items, {len(self.judges)} judge(s), {cast} votes, "
            f"{len(self.labelled)} labels"
        )

    def checksum(self) -> str:
        """Return a digest of votes, labels and names, equal for two posteriors of the same data.

        It does not depend on the name of a file or on the order of its rows.
        """
        digest = hashlib.sha256()
        item, judge = (np.argsort(np.asarray(names)) for names in (self.items, self.judges))
        named = [sorted(self.items), sorted(self.judges), self.classes]
        digest.update(json.dumps(named).encode())
        index = np.sort(self.index[item][:, judge], axis=2)  # samples have no names
        for array in (index.astype("<i8"), np.asarray(self.labels)[item].astype("<i8")):
            digest.update(str(array.shape).encode() + array.tobytes())
        return digest.hexdigest()


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SparseVotes:
    """Votes in coordinate form: in row r, `judge[r]` gave `item[r]` the class `index[r]`.

    Rows are sorted by item; rows with the class `MISSING` are ignored. In a matrix product the votes
    are the matrix of vote counts, item x (judge vote), which takes time linear in the votes.
    """

    item: Int[AnyArray, " row"]
    judge: Int[AnyArray, " row"]
    index: Int[AnyArray, " row"]
    n_items: int = field(metadata={"static": True})
    n_judges: int = field(metadata={"static": True})
    n_classes: int = field(metadata={"static": True})

    def __repr__(self) -> str:
        """Return a short summary."""
        return (
            f"SparseVotes({len(self)} votes, {self.n_items} items, {self.n_judges} judges, "
            f"{self.n_classes} classes)"
        )

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self.index.shape[0])

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the matrix of vote counts."""
        return self.n_items, self.n_judges * self.n_classes

    def __matmul__(self, table: Float[Array, "judge_vote column"]) -> Float[Array, "item column"]:
        """Return counts @ table."""
        given = table.at[self._cells()].get(mode="fill", fill_value=0.0)
        return jax.ops.segment_sum(given, self.item, self.n_items, indices_are_sorted=True)

    def __rmatmul__(self, rows: Float[Array, "row item"]) -> Float[Array, "row judge_vote"]:
        """Return rows @ counts."""
        return jax.ops.segment_sum(rows.T[self.item], self._cells(), self.shape[1]).T

    def pooled_counts(self) -> Int[Array, "item class"]:
        """Return the votes of all judges together, by item and class."""
        return (self @ jnp.tile(jnp.eye(self.n_classes), (self.n_judges, 1))).astype(jnp.int32)

    def _cells(self) -> Int[Array, " row"]:
        """Return judge * n_classes + class of every vote; one past the last where it is missing."""
        cell = jnp.asarray(self.judge, jnp.int32) * self.n_classes + self.index
        return jnp.where(jnp.asarray(self.index) >= 0, cell, self.shape[1])


AnyVotes = Votes | SparseVotes
"""Votes as an array or as a list."""


def from_dense(votes: Votes) -> SparseVotes:
    """Return votes as a list, without scores, orders and tasks: a row for every vote for a class."""
    index = np.asarray(votes.index)
    place = np.nonzero(index >= 0)
    item, judge, given = (x.astype(np.int32) for x in (*place[:2], index[place]))
    return SparseVotes(item, judge, given, votes.n_items, votes.n_judges, votes.n_classes)
