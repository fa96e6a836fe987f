"""Simulated panels of any size, generated in parts."""

import numpy as np
from jaxtyping import Float, Int

from judgebayes.votes import SparseVotes
from judgebayes.votes.sparse import index_type

__all__ = ["PIECE", "chosen_judges", "dense_panel", "sparse_panel"]

PIECE = 100_000
"""Number of items generated at a time."""


def dense_panel(
    items: int, judges: int, *, missing: float = 0.05, seed: int = 0
) -> tuple[Int[np.ndarray, "item judge"], Int[np.ndarray, " item"]]:
    """Return binary votes of judges with sensitivities and specificities of .55 to .92."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, items)
    right = rng.random((items, judges)) < rng.uniform(0.55, 0.92, (2, judges))[labels]
    votes = np.where(right, labels[:, None], 1 - labels[:, None])
    return np.where(rng.random(votes.shape) < missing, -1, votes).astype(np.int8), labels


def sparse_panel(
    items: int, judges: int, each: int, *, seed: int = 0
) -> tuple[SparseVotes, Int[np.ndarray, " item"], Float[np.ndarray, "judge 2"]]:
    """Return `each` binary votes on every item by judges at random, labels, and accuracies."""
    rng = np.random.default_rng(seed)
    rows = items * each
    item, judge = np.empty(rows, np.int32), np.empty(rows, index_type(judges))
    index = np.empty(rows, np.int8)
    accuracy = rng.uniform(0.6, 0.95, (judges, 2)).astype(np.float32)
    labels = rng.integers(0, 2, items).astype(np.int8)
    for start in range(0, items, PIECE):
        stop = min(start + PIECE, items)
        here = slice(start * each, stop * each)
        item[here] = np.repeat(np.arange(start, stop, dtype=np.int32), each)
        chosen = chosen_judges(rng, stop - start, judges, each).ravel()
        truth = np.repeat(labels[start:stop], each)
        right = rng.random(len(truth), dtype=np.float32) < accuracy[chosen, truth]
        judge[here], index[here] = chosen, np.where(right, truth, 1 - truth)
    return SparseVotes(item, judge, index, items, judges, 2), labels, accuracy


def chosen_judges(
    rng: np.random.Generator, items: int, judges: int, each: int
) -> Int[np.ndarray, "item each"]:
    """Return `each` different judges at random for every item, in ascending order."""
    first = rng.integers(0, judges, (items, 1))
    stride = rng.integers(1, max(judges // each, 2), (items, 1))
    return np.sort((first + stride * np.arange(each)) % judges, axis=1)
