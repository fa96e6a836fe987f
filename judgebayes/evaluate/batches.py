"""Batches of splits: padded sizes, memory limits and devices."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float, Int, UInt

from judgebayes.aggregators.base import Aggregator, Size, cost_of
from judgebayes.aggregators.wrapped import Calibrated
from judgebayes.arrays import ItemCodes, ItemValues, Labels
from judgebayes.errors import JudgeBayesError
from judgebayes.evaluate.one_split import Evaluation, FitOn
from judgebayes.evaluate.splits import Splits
from judgebayes.inference.nuts import NUTS
from judgebayes.measures.decide import absolute_loss
from judgebayes.panel.curate import Curated
from judgebayes.votes.array import MISSING, Votes

MEMORY_SHARE, NUMBER_BYTES = 0.25, 8
"""The share of memory for a batch of splits, and the bytes per number."""
MAX_BATCH_NUMBERS = 200_000
VMAP_BYTES = 2**29
"""The memory for the fits of splits that run at the same time; several methods may run at once."""
LONG_OPERATIONS = 3e11
"""A batch of splits with more operations is divided, so that progress is seen."""
SEQUENTIAL_BATCH = 10
"""The batch size of methods whose splits are fitted sequentially."""

SPLIT = "split"
"""The name of the mesh axis over which splits are divided."""

Pytree = Any
"""A tree of arrays."""
SplitArrays = tuple[Array, Array, Array]
"""Calibration items, evaluation items and key of one split, or of several."""


class Plan(NamedTuple):
    """The function that evaluates a batch of splits."""

    run: Callable[["SplitBatch"], list[Evaluation]]
    names: tuple[str, ...]
    """Names of the calibrators, with one result each; a single empty name without calibrators."""


@dataclass(frozen=True)
class SplitBatch:
    """The padded arrays of a batch of splits, and the devices of its evaluation."""

    votes: Votes
    labels: ItemCodes
    weight: ItemValues | None
    """Item weights, 0 for padding; None if fits use only calibration items."""
    loss: Float[Array, "action class"]
    splits: SplitArrays
    n_splits: int
    n_items: int
    """The number of items without padding."""
    vmap_size: int
    mesh: Mesh | None

    @property
    def fit_items(self) -> int:
        """The number of items that each split is fitted to, with padding."""
        return int(self.splits[0].shape[1])

    def without_padding(self, evaluation: Evaluation) -> Evaluation:
        """Return the results of all devices, without padded splits.

        Without padding, results stay on their devices, ready for compiled code: gathering them takes a
        tenth of the time of a short sweep.
        """
        if jax.process_count() == 1 and len(evaluation.status) == self.n_splits:
            return evaluation
        return self.on_host(evaluation)

    def on_host(self, evaluation: Evaluation) -> Evaluation:
        """Return the results without padding, as arrays of this process (NumPy arrays with a mesh)."""
        if self.mesh is None and len(evaluation.status) == self.n_splits:
            return evaluation
        if self.mesh is not None and jax.process_count() > 1:
            from jax.experimental.multihost_utils import process_allgather

            gathered_arrays = process_allgather(evaluation, tiled=True)
        else:
            gathered_arrays = jax.tree.map(_gather, evaluation)
        unpadded = jax.tree.map(lambda x: x[: self.n_splits], gathered_arrays)
        return jax.device_put(unpadded) if self.mesh is None else unpadded


@dataclass(frozen=True)
class SplitData:
    """The padded arrays that all methods share, on the devices of the computation, and the splits."""

    given: Votes
    """The votes without padding."""
    votes: Votes
    labels: ItemCodes
    weight: ItemValues
    loss: Float[Array, "action class"]
    splits: Splits
    keys: UInt[np.ndarray, "split word"]
    mesh: Mesh | None

    def batches(self, method: Aggregator, fit_on: FitOn) -> list[SplitBatch]:
        """Return the batches of a method, all of the same size, so that they share compiled programs.

        Raises
        ------
        JudgeBayesError
            If `fit_on` is neither of the two.
        """
        if fit_on not in ("calibration", "all"):
            raise JudgeBayesError(f"fit_on={fit_on!r}; choose one of: 'calibration', 'all'.")
        batch_size = splits_per_batch(method, self.given, self.splits, fit_on)
        n_splits, size_of_fit = len(self.keys), fit_size(self.given, self.splits, fit_on)
        if not is_sequential(method):
            operations = max(cost_of(method, size_of_fit).operations, 1.0)
            batch_size = min(batch_size, max(1, int(LONG_OPERATIONS / operations)))
        n_devices = 1 if self.mesh is None else self.mesh.size
        n_batches = -(-n_splits // (batch_size * n_devices))
        per_device = -(-n_splits // (n_batches * n_devices))
        vmap_size = _vmap_size(method, per_device, len(self.labels), size_of_fit)
        per_device = -(-per_device // vmap_size) * vmap_size
        size = per_device * n_devices
        firsts = range(0, n_splits, size)  # fewer than `n_batches` where a batch was rounded up
        return [self._batch(first, size, vmap_size, fit_on) for first in firsts]

    def _batch(self, first: int, size: int, vmap_size: int, fit_on: FitOn) -> SplitBatch:
        # The last device's part and the last batch are padded by repeating splits.
        n_splits = len(self.keys)
        full = first + size <= n_splits
        some = slice(first, first + size) if full else np.arange(first, first + size) % n_splits
        parts = (
            pad_split(self.splits.calibration[some]),
            pad_split(self.splits.evaluation[some]),
            self.keys[some],
        )
        calibration, evaluation, numbers = _put(parts, self.mesh, PartitionSpec(SPLIT))
        return SplitBatch(
            votes=self.votes,
            labels=self.labels,
            weight=self.weight if fit_on == "all" else None,
            loss=self.loss,
            splits=(calibration, evaluation, jax.random.wrap_key_data(numbers)),
            n_splits=min(size, n_splits - first),
            n_items=len(self.given.index),
            vmap_size=vmap_size,
            mesh=self.mesh,
        )


def split_data(
    votes: Votes,
    labels: Labels,
    splits: Splits,
    loss: Float[np.ndarray, "action class"] | None,
    seed: int,
    devices: Sequence[jax.Device] | None = None,
) -> SplitData:
    """Return the padded arrays of a sweep.

    Raises
    ------
    JudgeBayesError
        If a split contains an item that does not exist.
    """
    highest = max(int(splits.calibration.max()), int(splits.evaluation.max()))
    n_own = len(votes.index)
    if highest >= n_own:
        raise JudgeBayesError(f"The splits contain item {highest}, but there are {n_own} items.")
    n_items = bucket_size(n_own)
    mesh = None if devices is None else Mesh(np.asarray(devices), (SPLIT,))
    padded = (
        votes.padded(n_items),
        np.pad(np.asarray(labels), (0, n_items - n_own), constant_values=MISSING),
        np.pad(np.ones(n_own), (0, n_items - n_own)),
        absolute_loss(votes.n_classes) if loss is None else np.asarray(loss),
    )
    all_votes, all_labels, weight, losses = _put(padded, mesh, PartitionSpec())
    return SplitData(
        given=votes,
        votes=all_votes,
        labels=all_labels,
        weight=weight,
        loss=losses,
        splits=splits,
        keys=_keys(seed, len(splits.calibration)),
        mesh=mesh,
    )


@lru_cache(maxsize=16)
def _keys(seed: int, n: int) -> UInt[np.ndarray, "split word"]:
    """Return the key data of each split as NumPy numbers, because indexing JAX keys is slow.

    The result is cached, because all methods of a sweep use the same keys.
    """
    return np.asarray(_key_data(seed, n))


@partial(jax.jit, static_argnames="n")
def _key_data(seed: int | Int[Array, ""], n: int) -> UInt[Array, "split word"]:
    return jax.random.key_data(jax.random.split(jax.random.key(seed), n))


def _put(arrays: Pytree, mesh: Mesh | None, spread: PartitionSpec) -> Pytree:
    """Put arrays on the devices of the computation, so that calls do not transfer them.

    With several processes, each has the full arrays and gives its devices their parts.
    """
    if mesh is None or jax.process_count() > 1:
        return jax.device_put(arrays)
    return jax.device_put(arrays, NamedSharding(mesh, spread))


def _gather(array: Array) -> np.ndarray:
    """Return a sharded array as NumPy, with one copy (`np.asarray` copies twice)."""
    parts = sorted(array.addressable_shards, key=lambda part: part.index[0].start or 0)
    return np.concatenate([np.asarray(part.data) for part in parts])


def bucket_size(size: int) -> int:
    """Return the size rounded up to 8, 12, 16, 24, 32, 48, ..., for few shapes and compilations."""
    bucket = 8
    while bucket < size:
        bucket = bucket * 3 // 2 if bucket & (bucket - 1) == 0 else bucket * 4 // 3
    return bucket


def pad_split(part: Int[np.ndarray, "split part"]) -> Int[np.ndarray, "split wide"]:
    """Return the items of splits padded with -1 to the next size of a bucket."""
    splits, items = part.shape
    padded = np.full((splits, bucket_size(items)), -1, np.int32)
    padded[:, :items] = part
    return padded


def is_sequential(method: Aggregator) -> bool:
    """Tell whether splits are fitted sequentially, as each already runs many panels or chains."""
    if isinstance(method, Curated) and hasattr(method.curator, "criterion"):
        return True
    if isinstance(method, (Calibrated, Curated)):
        return is_sequential(method.aggregator)
    return isinstance(getattr(method, "inference", None), NUTS)


def _vmap_size(method: Aggregator, splits: int, n_items: int, size: Size) -> int:
    """Return the number of splits to fit in one vectorised batch.

    An array over splits and items has at most `MAX_BATCH_NUMBERS` numbers: larger arrays do not fit into
    the CPU cache, and their memory is allocated again in every call. All numbers of the fits together
    have at most `VMAP_BYTES`.
    """
    if is_sequential(method):
        return 1
    parts = -(-splits * n_items // MAX_BATCH_NUMBERS)
    at_once = max(1, int(VMAP_BYTES / (NUMBER_BYTES * cost_of(method, size).numbers)))
    return -(-splits // max(parts, -(-splits // at_once)))


def fit_size(votes: Votes, splits: Splits, fit_on: FitOn) -> Size:
    """Return the size of the votes on the items of a split: those of the fit, and the evaluated ones."""
    n_items, n_judges, n_samples = votes.index.shape
    fit_items = n_items if fit_on == "all" else splits.calibration.shape[1]
    items = fit_items + min(splits.evaluation.shape[1], n_items)
    return Size(items, n_judges, n_samples, votes.n_classes)


def splits_per_batch(method: Aggregator, votes: Votes, splits: Splits, fit_on: FitOn) -> int:
    """Return the number of splits per batch whose arrays fit into this machine's memory.

    For sequential fits, memory does not grow with the number of splits; these fits are slow, and
    progress is seen by batch.
    """
    if is_sequential(method):
        return SEQUENTIAL_BATCH
    numbers = cost_of(method, fit_size(votes, splits, fit_on)).numbers
    return max(1, int(memory() * MEMORY_SHARE / (numbers * NUMBER_BYTES)))


def memory() -> int:
    """Return the memory of this machine in bytes."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 8 * 2**30  # a system without this information
