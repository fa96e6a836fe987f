"""The matrix of vote counts as a list of votes: products that take time linear in the votes."""

from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Array, Float

from judgebayes.inference.fast.packed_counts import MANY_ITEMS, slots_of
from judgebayes.votes.array import MISSING, Votes
from judgebayes.votes.sparse import SparseVotes

__all__ = ["SparseCounts", "listed"]

LEAST_CELLS = 200_000
"""Smaller matrices are fast anyway."""
GAIN = 16
"""A list is used if the matrix has more than this many cells for every vote."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SparseCounts:
    """The matrix of vote counts, item x (judge vote), as a factor of matrix products."""

    votes: SparseVotes

    def __matmul__(self, table: Float[Array, "judge_vote column"]) -> Float[Array, "item column"]:
        """Return counts @ table."""
        return self.votes.item_sums(table)

    def __rmatmul__(self, rows: Float[Array, "row item"]) -> Float[Array, "row judge_vote"]:
        """Return rows @ counts."""
        return self.votes.cell_sums(rows.T).T

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the matrix."""
        return self.votes.n_items, self.votes.n_judges * self.votes.n_classes


def listed(votes: Votes) -> SparseVotes | None:
    """Return votes as a list if its products are faster than those of a matrix or of words, else None.

    The list is padded to one of a few lengths, so that similar panels share a compilation.
    """
    index = np.asarray(votes.index)
    cells = index.size * votes.n_classes
    if votes.n_items >= MANY_ITEMS:  # packed into words, each as fast as a vote
        cells = (
            GAIN * votes.n_items * -(-index.shape[1] * index.shape[2] // slots_of(votes.n_classes))
        )
    cast = int((index >= 0).sum())
    if cast == 0 or cells < max(LEAST_CELLS, GAIN * cast):
        return None
    item, judge, sample = np.nonzero(index >= 0)
    extra = -cast % max(2 ** max(cast.bit_length() - 3, 0), 1)

    def padded(values: np.ndarray, fill: int) -> np.ndarray:
        return np.pad(values.astype(np.int32), (0, extra), constant_values=fill)

    return SparseVotes(
        padded(item, votes.n_items - 1),
        padded(judge, 0),
        padded(index[item, judge, sample], MISSING),
        votes.n_items,
        votes.n_judges,
        votes.n_classes,
        votes.n_samples,
    )
