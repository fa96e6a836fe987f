"""Votes as a list, for many items and judges with few votes each: memory linear in votes."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from judgebayes.arrays import AnyArray
from judgebayes.errors import JudgeBayesError
from judgebayes.votes.array import MISSING, Votes

__all__ = [
    "AnyVotes",
    "Slab",
    "SlabShape",
    "SparseVotes",
    "counts_by_item",
    "from_dense",
    "index_type",
    "longest_run",
]

SLAB_ROWS = 2**18
"""The number of votes processed at a time, so that intermediate results fit into the cache."""


class SlabShape(NamedTuple):
    """The number of votes and items in a slab."""

    rows: int
    items: int


class Slab(NamedTuple):
    """The votes on some consecutive items, renumbered from 0, and the range of these items."""

    votes: "SparseVotes"
    items: slice


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SparseVotes:
    """Votes in coordinate form: in row r, `judge[r]` gave `item[r]` the class `index[r]`.

    Rows are sorted by item and, within an item, by judge. Rows with the class `MISSING` are ignored:
    they pad slabs. The arrays may be memory maps, which are read slab by slab and never as a whole.
    """

    item: Int[AnyArray, " row"]
    judge: Int[AnyArray, " row"]
    index: Int[AnyArray, " row"]
    n_items: int = field(metadata={"static": True})
    n_judges: int = field(metadata={"static": True})
    n_classes: int = field(metadata={"static": True})
    n_samples: int = field(default=1, metadata={"static": True})
    """The most votes of a judge on one item."""

    def __repr__(self) -> str:
        """Return a short summary."""
        return (
            f"SparseVotes({len(self)} votes, {self.n_items} items, {self.n_judges} judges, "
            f"{self.n_classes} classes)"
        )

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self.index.shape[0])

    def cells(self) -> Int[Array, " row"]:
        """Return judge * n_classes + class of every vote; one past the last where it is missing."""
        cell = jnp.asarray(self.judge, jnp.int32) * self.n_classes + self.index
        return jnp.where(jnp.asarray(self.index) >= 0, cell, self.n_judges * self.n_classes)

    def item_sums(self, table: Float[Array, "cell column"]) -> Float[Array, "item column"]:
        """Return, for every item, the sum over its votes of the rows of a table by cell."""
        given = table.at[self.cells()].get(mode="fill", fill_value=0.0)
        return jax.ops.segment_sum(given, self.item, self.n_items, indices_are_sorted=True)

    def cell_sums(self, by_item: Float[Array, "item column"]) -> Float[Array, "cell column"]:
        """Return, for every judge and class, the sum of the rows of the items with that vote.

        The transpose of `item_sums`.
        """
        given = by_item[self.item]
        return jax.ops.segment_sum(given, self.cells(), self.n_judges * self.n_classes)

    def weighted_counts(self, weight: Float[Array, " judge"]) -> Float[Array, "item class"]:
        """Return the votes of every item by class, weighted by judge."""
        own = weight[:, None, None] * jnp.eye(self.n_classes)
        return self.item_sums(own.reshape(-1, self.n_classes))

    def pooled_counts(self) -> Int[Array, "item class"]:
        """Return the votes of all judges together, by item and class."""
        return self.weighted_counts(jnp.ones(self.n_judges)).astype(jnp.int32)

    def slab_shape(self, rows: int | None = None) -> SlabShape:
        """Return a common shape for all slabs, with about `rows` votes each."""
        rows = SLAB_ROWS if rows is None else rows
        rows = min(max(rows, longest_run(rows, self.item)), _power_of_2(len(self)))
        share = self.n_items / max(len(self), 1)
        return SlabShape(rows, min(_power_of_2(self.n_items), _power_of_2(int(1.5 * share * rows))))

    def slabs(self, shape: SlabShape | None = None) -> Iterator[Slab]:
        """Yield the votes as slabs, each padded to the same shape.

        Every item is in exactly one slab, also items without votes.
        """
        shape = self.slab_shape() if shape is None else shape
        for rows, items in self.bounds(shape):
            yield Slab(self._piece(rows, items.start, shape), items)

    def bounds(self, shape: SlabShape) -> Iterator[tuple[slice, slice]]:
        """Yield the range of rows and the range of items of each slab of a shape."""
        row, item = 0, 0
        while item < self.n_items:
            last = row + shape.rows
            stop = int(self.item[last]) if last < len(self) else self.n_items
            stop = min(stop, item + shape.items)
            if stop == item:
                raise JudgeBayesError(
                    f"Item {item} has more than {shape.rows} votes, the maximum of a slab."
                )
            end = row + int(np.searchsorted(np.asarray(self.item[row:last]), stop))
            yield slice(row, end), slice(item, stop)
            row, item = end, stop

    def _piece(self, rows: slice, item: int, shape: SlabShape) -> "SparseVotes":
        def padded(values: np.ndarray, fill: int) -> np.ndarray:
            return np.pad(values, (0, shape.rows - len(values)), constant_values=fill)

        item_of_row, judge, index = (
            np.asarray(x[rows]) for x in (self.item, self.judge, self.index)
        )
        return replace(
            self,
            item=padded(item_of_row - np.int32(item), shape.items - 1),
            judge=padded(judge, 0),
            index=padded(index, MISSING),
            n_items=shape.items,
        )

    def starts(self) -> Bool[Array, " row"]:
        """Return whether each row is the first of its judge on its item."""
        item, judge = jnp.asarray(self.item), jnp.asarray(self.judge)
        new = (item[1:] != item[:-1]) | (judge[1:] != judge[:-1])
        return jnp.concatenate([jnp.ones(1, bool), new])

    def samples(self) -> Int[Array, " row"]:
        """Return the position of every vote among those of its judge on its item."""
        row = jnp.arange(len(self))
        return row - jax.lax.cummax(jnp.where(self.starts(), row, 0))

    def of_items(self, items: Int[np.ndarray, " some"]) -> "SparseVotes":
        """Return the votes on some items, given in ascending order and renumbered from 0."""
        new_position = np.full(self.n_items, MISSING, np.int32)
        new_position[items] = np.arange(len(items))
        selected = np.flatnonzero((new_position >= 0)[np.asarray(self.item)])
        item, judge, index = (np.asarray(x)[selected] for x in (self.item, self.judge, self.index))
        return replace(self, item=new_position[item], judge=judge, index=index, n_items=len(items))

    def dense(self) -> Votes:
        """Return the votes as an array item x judge x sample."""
        result = np.full((self.n_items, self.n_judges, self.n_samples), MISSING, np.int8)
        given = np.flatnonzero(np.asarray(self.index) >= 0)
        item, judge, index = (np.asarray(x)[given] for x in (self.item, self.judge, self.index))
        result[item, judge, np.asarray(self.samples())[given]] = index
        return Votes(jnp.asarray(result), None, None, None, self.n_classes)


AnyVotes = Votes | SparseVotes
"""Votes as an array or as a list."""


def counts_by_item(votes: AnyVotes) -> Int[np.ndarray, "item class"]:
    """Return the votes of all judges together, by item and class; of a list, slab by slab."""
    if isinstance(votes, Votes):
        return np.asarray(votes.pooled_counts())
    n_classes = votes.n_classes
    counts = np.zeros((votes.n_items, n_classes), np.int64)
    for rows, items in votes.bounds(votes.slab_shape()):
        index = np.asarray(votes.index[rows]).astype(np.int64)
        cell = (np.asarray(votes.item[rows]) - items.start) * n_classes + index
        size = (items.stop - items.start) * n_classes
        counts[items] = np.bincount(cell[index >= 0], minlength=size).reshape(-1, n_classes)
    return counts


def from_dense(votes: Votes) -> SparseVotes:
    """Return votes as a list, with a row for every vote that is not missing.

    Raises
    ------
    JudgeBayesError
        If the votes have scores, orders or tasks, which a list cannot store.
    """
    for name, array in (("scores", votes.score), ("orders", votes.order), ("tasks", votes.task)):
        if array is not None:
            raise JudgeBayesError(f"The votes have {name}, which sparse votes cannot store.")
    index = np.asarray(votes.index)
    item, judge, sample = np.nonzero(index >= 0)
    most = (index >= 0).sum(2).max(initial=1)
    return SparseVotes(
        item.astype(np.int32),
        judge.astype(index_type(votes.n_judges)),
        index[item, judge, sample].astype(index_type(votes.n_classes)),
        votes.n_items,
        votes.n_judges,
        votes.n_classes,
        int(most),
    )


def index_type(size: int) -> type[np.signedinteger]:
    """Return the smallest signed integer type that can represent `size`."""
    smallest: type[np.signedinteger] = next(
        t for t in (np.int8, np.int16, np.int32) if size <= np.iinfo(t).max
    )
    return smallest


def _parts(item: Int[AnyArray, " row"], rows: int) -> Iterator[np.ndarray]:
    """Yield runs of rows, each starting with a new item."""
    start = 0
    while start < len(item):
        end = min(start + rows, len(item))
        if end < len(item):
            end = int(np.searchsorted(item, item[end])) if item[start] != item[end] else end
            if end < len(item) and item[start] == item[end]:
                end = int(np.searchsorted(item, item[start], side="right"))
        yield np.asarray(item[start:end])
        start = end


def longest_run(rows: int, *columns: Int[AnyArray, " row"]) -> int:
    """Return the length of the longest run of rows equal in all columns, part by part."""
    total, longest, begin = len(columns[0]), 0, 0
    for start in range(1, total, rows):
        parts = (np.diff(column[start - 1 : start + rows]) != 0 for column in columns)
        change = start + np.flatnonzero(np.logical_or.reduce(list(parts)))
        ends = np.concatenate([[begin], change])
        longest = max(longest, int(np.diff(ends).max(initial=0)))
        begin = int(ends[-1])
    return max(longest, total - begin)


def _power_of_2(size: int) -> int:
    return 1 << max(size - 1, 1).bit_length()
