"""Votes as a list, for crowds whose table of items by workers is mostly empty."""

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from judgebayes.arrays import AnyArray
from judgebayes.votes.array import Votes


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
