"""Items with the same votes, label and generator as one row with a weight."""

import jax.numpy as jnp
import numpy as np

from judgebayes.arrays import ItemInts, Labels, Weights
from judgebayes.generators.counts import check_one_vote
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
