"""Slabs of a list of votes with the labels and weights of their items, divided between devices."""

from collections.abc import Iterable
from typing import NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float, Int

from judgebayes.inference.fast.agreement import filled
from judgebayes.votes.array import MISSING
from judgebayes.votes.sparse import Slab, SlabShape, SparseVotes

__all__ = ["SHARD", "Group", "grouped"]

SHARD = "shard"
"""The axis of arrays, and of a mesh, along which devices share the work."""


class Group(NamedTuple):
    """Some slabs of every device, with the labels and weights of their items."""

    votes: SparseVotes
    labels: Int[Array, "*lead item"]
    """With leading axes shard and slab; a single slab has neither."""
    weight: Float[Array, "*lead item"]


def grouped(
    slabs: Iterable[Slab],
    votes: SparseVotes,
    labels: Int[np.ndarray, " item"],
    weight: Float[np.ndarray, " item"],
    mesh: Mesh,
    shape: SlabShape,
    some: int,
) -> Group:
    """Put slabs of `votes` on the devices of this process, `some` on each, padded with empty slabs."""
    n_devices, v = len(mesh.local_devices), votes
    lead = (n_devices * some,)
    columns = [
        np.full((*lead, shape.rows), shape.items - 1, np.int32),
        np.zeros((*lead, shape.rows), v.judge.dtype),
        np.full((*lead, shape.rows), MISSING, v.index.dtype),
        np.full((*lead, shape.items), MISSING, np.int32),
        np.zeros((*lead, shape.items)),
    ]
    for place, slab in enumerate(slabs):
        parts = (
            slab.votes.item,
            slab.votes.judge,
            slab.votes.index,
            filled(labels[slab.items], shape.items, MISSING),
            filled(weight[slab.items], shape.items, 0.0),
        )
        for column, part in zip(columns, parts, strict=True):
            column[place] = part
    sharding = NamedSharding(mesh, PartitionSpec(SHARD))

    def put() -> Array:
        """Put the first column on the devices and drop it here, so that at most one is held twice."""
        column = columns.pop(0)
        shaped = column.reshape(n_devices, some, *column.shape[1:])
        # The column must not be freed before the copy is complete.
        return jax.block_until_ready(jax.make_array_from_process_local_data(sharding, shaped))

    lists = SparseVotes(put(), put(), put(), shape.items, v.n_judges, v.n_classes)
    return Group(lists, put(), put())
