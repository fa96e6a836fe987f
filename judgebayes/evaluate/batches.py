"""Batches of splits: sizes that programs share, what suits the memory, and who runs which."""

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float, Int, UInt

from judgebayes.aggregators.base import Aggregator
from judgebayes.aggregators.calibrated import Calibrated
from judgebayes.arrays import AnyArray
from judgebayes.compiled.digest import digest_of
from judgebayes.compiled.programs import cached_export
from judgebayes.errors import JudgeBayesError
from judgebayes.evaluate.one_split import Evaluation, FitOn
from judgebayes.evaluate.splits import Splits
from judgebayes.inference.nuts import NUTS
from judgebayes.measures.decide import absolute_loss
from judgebayes.panel.curate import Curated
from judgebayes.votes.array import MISSING, Votes

__all__ = ["OverSplits", "Plan", "Pytree", "SplitArrays", "each_split", "over_splits"]

R = TypeVar("R")

SHARE_OF_MEMORY, NUMBER_BYTES, COPIES = 0.25, 8, 6
"""A batch of splits may take this share of the memory, with so many copies of what a fit sees."""
NUMBERS_AT_ONCE = 200_000
ONE_BY_ONE = 10
"""So many splits make a batch where they are fitted one after the other."""

SPLIT = "split"
"""The name of the mesh axis over which splits are divided."""

Pytree = Any
"""A tree of arrays."""
SplitArrays = tuple[Array, Array, Array]
"""Calibration items, evaluation items and key of one split, or of several."""


class Plan(NamedTuple):
    """How to answer a batch of splits, and all that the answers hang on."""

    run: Callable[["OverSplits"], list[Evaluation]]
    names: tuple[str, ...]
    """Of the maps behind the method, an answer each; one of no name if there is none."""
    made_of: Pytree
    settings: object


@dataclass(frozen=True)
class OverSplits:
    """The arrays of a sweep, of sizes that others share, and where it runs."""

    votes: Votes
    labels: Int[Array, " item"]
    weight: Float[Array, " item"] | None
    """0 of the items that fill up; None where no fit sees them."""
    loss: Float[Array, "action class"]
    splits: SplitArrays
    n_splits: int
    n_items: int
    """Without those that fill up."""
    at_once: int
    mesh: Mesh | None
    folder: Path | None

    def run(self, function: Callable[..., R], args: tuple[Any, ...], **static: Any) -> R:
        """Call a compiled function; on this process's own device, by a kept program if there is."""
        if self.mesh is not None:
            return function(*args, **static, mesh=self.mesh)
        return cached_export(function, *args, **static, mesh=None)

    def name(self, plan: Plan, *what: object) -> str:
        """Return the name under which something that a plan gives on these splits is kept."""
        items = [np.asarray(part, np.int32) for part in self.splits[:2]]  # half to digest
        data = (self.votes, self.labels, self.weight, self.loss, items, self.splits[2])
        devices = None if self.mesh is None else self.mesh.size
        settings = (plan.settings, what, self.n_splits, self.at_once, devices)
        return digest_of((plan.made_of, data), *settings)

    def trimmed(self, found: Evaluation) -> Evaluation:
        """Return what all devices found, without the splits that filled up the last one's part.

        Where nothing has to go it stays where it was found, fit for compiled code: to bring it
        together takes a tenth of the time of a short sweep.
        """
        if jax.process_count() == 1 and len(found.status) == self.n_splits:
            return found
        return self.gathered(found)

    def gathered(self, found: Evaluation) -> Evaluation:
        """Return the same as arrays of this process: NumPy's, where devices were named."""
        if self.mesh is None and len(found.status) == self.n_splits:
            return found
        if self.mesh is not None and jax.process_count() > 1:
            from jax.experimental.multihost_utils import process_allgather

            whole = process_allgather(found, tiled=True)
        else:
            whole = jax.tree.map(_whole, found)
        cut = jax.tree.map(lambda x: x[: self.n_splits], whole)
        return jax.device_put(cut) if self.mesh is None else cut


def over_splits(
    method: Aggregator,
    votes: Votes,
    labels: Int[AnyArray, " item"],
    splits: Splits,
    fit_on: FitOn,
    loss: Float[np.ndarray, "action class"] | None,
    seed: int,
    devices: Sequence[jax.Device] | None,
    batch_size: int | None,
    checkpoint: Path | str | None,
) -> list[OverSplits]:
    """Return the batches of a sweep, all of one size: they share their programs."""
    if fit_on not in ("calibration", "all"):
        raise JudgeBayesError(f"fit_on={fit_on!r}; right would be 'calibration' or 'all'.")
    highest = max(int(splits.calibration.max()), int(splits.evaluation.max()))
    own, n_splits = votes.n_items, len(splits)
    if highest >= own:
        raise JudgeBayesError(f"The splits speak of item {highest}, but there are {own} items.")
    n_items = _roomy(own)
    n_devices = 1 if devices is None else len(devices)
    if batch_size is None:
        batch_size = splits_per_batch(method, votes, splits, fit_on)
    if batch_size < 1:
        raise JudgeBayesError(f"batch_size={batch_size}; right would be 1 split or more.")
    n_batches = -(-n_splits // (batch_size * n_devices))
    each = -(-n_splits // (n_batches * n_devices))
    at_once = _splits_at_once(method, each, n_items)
    each = -(-each // at_once) * at_once
    size = each * n_devices
    keys = _keys(seed, n_splits)
    mesh = None if devices is None else Mesh(np.asarray(devices), (SPLIT,))
    all_votes, all_labels, weight, losses = _placed(
        (
            votes.padded(n_items),
            np.pad(np.asarray(labels), (0, n_items - own), constant_values=MISSING),
            np.pad(np.ones(own), (0, n_items - own)) if fit_on == "all" else None,
            absolute_loss(votes.n_classes) if loss is None else np.asarray(loss),
        ),
        mesh,
        PartitionSpec(),
    )

    def batch(first: int) -> OverSplits:
        # The last device's part, and the last batch, are filled up.
        full = first + size <= n_splits
        some = slice(first, first + size) if full else np.arange(first, first + size) % n_splits
        parts = (_widened(splits.calibration[some]), _widened(splits.evaluation[some]), keys[some])
        calibration, evaluation, numbers = _placed(parts, mesh, PartitionSpec(SPLIT))
        return OverSplits(
            votes=all_votes,
            labels=all_labels,
            weight=weight,
            loss=losses,
            splits=(calibration, evaluation, jax.random.wrap_key_data(numbers)),
            n_splits=min(size, n_splits - first),
            n_items=own,
            at_once=at_once,
            mesh=mesh,
            folder=None if checkpoint is None else Path(checkpoint),
        )

    return [batch(place * size) for place in range(n_batches)]


@lru_cache(maxsize=16)
def _keys(seed: int, n: int) -> UInt[np.ndarray, "split word"]:
    """Return a key for each split, as numbers: to index keys takes longer than all else here.

    Kept, for the methods of a sweep have the same ones.
    """
    return np.asarray(_key_data(seed, n))


@partial(jax.jit, static_argnames="n")
def _key_data(seed: int | Int[Array, ""], n: int) -> UInt[Array, "split word"]:
    return jax.random.key_data(jax.random.split(jax.random.key(seed), n))


def _placed(arrays: Pytree, mesh: Mesh | None, spread: PartitionSpec) -> Pytree:
    """Return arrays where they are needed, so that no call has to move them there.

    Several processes each have the whole of them, and give their devices what is theirs.
    """
    if mesh is None or jax.process_count() > 1:
        return jax.device_put(arrays)
    return jax.device_put(arrays, NamedSharding(mesh, spread))


def _whole(array: Array) -> np.ndarray:
    """Return an array whose first axis devices share, copied once (`np.asarray` copies twice)."""
    parts = sorted(array.addressable_shards, key=lambda part: part.index[0].start or 0)
    return np.concatenate([np.asarray(part.data) for part in parts])


def each_split(
    one: Callable[[Pytree, Pytree], Pytree],
    shared: Pytree,
    splits: Pytree,
    at_once: int,
    mesh: Mesh | None,
) -> Pytree:
    """Run every split; with a mesh, each device its part of them, without a word between."""

    def part(shared: Pytree, splits: Pytree) -> Pytree:
        return jax.lax.map(partial(one, shared), splits, batch_size=at_once)

    if mesh is None:
        return part(shared, splits)
    spread = PartitionSpec(SPLIT)
    return jax.shard_map(
        part, mesh=mesh, in_specs=(PartitionSpec(), spread), out_specs=spread, check_vma=False
    )(shared, splits)


def _roomy(size: int) -> int:
    """Return the next of 8, 12, 16, 24, 32, 48, ...: few shapes, so few compilations."""
    room = 8
    while room < size:
        room = room * 3 // 2 if room & (room - 1) == 0 else room * 4 // 3
    return room


def _widened(part: Int[np.ndarray, "split part"]) -> Int[np.ndarray, "split wide"]:
    splits, items = part.shape
    wide = np.full((splits, _roomy(items)), -1, np.int32)
    wide[:, :items] = part
    return wide


def _one_by_one(method: Aggregator) -> bool:
    """Tell whether one split keeps the machine busy: many panels, or chains, are side by side."""
    if isinstance(method, Curated) and hasattr(method.curator, "criterion"):
        return True
    if isinstance(method, (Calibrated, Curated)):
        return _one_by_one(method.aggregator)
    return isinstance(getattr(method, "inference", None), NUTS)


def _splits_at_once(method: Aggregator, splits: int, n_items: int) -> int:
    """Return how many splits to fit side by side.

    As many as keep an array of all items within `NUMBERS_AT_ONCE`: larger ones leave the cache, and
    their memory is taken from the system anew in every call.
    """
    if _one_by_one(method):
        return 1
    parts = -(-splits * n_items // NUMBERS_AT_ONCE)
    return -(-splits // parts)


def splits_per_batch(method: Aggregator, votes: Votes, splits: Splits, fit_on: FitOn) -> int:
    """Return how many splits at once suit the memory of this machine.

    A split's fit holds copies of the votes that it sees, and of their probabilities. Where splits
    are fitted one by one, memory does not grow with them: such fits are long, and a batch is what a
    killed run loses.
    """
    if _one_by_one(method):
        return ONE_BY_ONE
    n_items, *slots = votes.index.shape
    seen = n_items if fit_on == "all" else splits.calibration.shape[1]
    items = seen + min(splits.evaluation.shape[1], n_items)
    cells = (math.prod(slots) + 1) * votes.n_classes
    return max(1, int(memory() * SHARE_OF_MEMORY / (items * cells * NUMBER_BYTES * COPIES)))


def memory() -> int:
    """Return the bytes of memory that this machine has."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 8 * 2**30  # a system that does not tell
