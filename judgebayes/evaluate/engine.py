"""The engine: thousands of fits in one program, of cells (data sets) x splits.

Cells whose padded arrays have the same shapes are lanes of one program, which is called once for as many
splits as memory allows. On a CPU cells follow one another, and as many splits run together as the cache
holds; on an accelerator all lanes of a call run side by side. Of a sweep only its metrics leave the
device.

A method that is not JAX code, and a fit that is long on a CPU, is fitted one by one
(`judgebayes.evaluate.one_split`).
"""

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Bool, Float, Int, UInt

from judgebayes.aggregators.base import Cost, cost_of
from judgebayes.aggregators.wrapped import Calibrated, first_stage
from judgebayes.arrays import AnyArray, ItemCodes, ItemValues, Labels, Scalar
from judgebayes.compiled.backend import on_accelerator
from judgebayes.compiled.float64 import in_float64, inside
from judgebayes.errors import JudgeBayesError
from judgebayes.evaluate.one_split import (
    Evaluation,
    FitOn,
    Metric,
    bucket_size,
    fit_one,
    is_jax,
    is_long,
    is_sequential,
    predict,
    score_all,
    scores_of,
)
from judgebayes.evaluate.splits import Splits
from judgebayes.inference.fit import Method, status_of, training
from judgebayes.inference.status import worst
from judgebayes.measures.scores import absolute_loss, bayes_action
from judgebayes.progress import Progress, followed
from judgebayes.votes.array import MISSING, Votes

MEMORY_SHARE, NUMBER_BYTES = 0.25, 8
"""The share of memory for a call of a program, and the bytes per number."""
MAX_NUMBERS = 200_000
"""The numbers of an array over splits and items that fit into the cache of a CPU.

Larger arrays are also allocated again in every call."""
VMAP_BYTES = 2**29
"""The memory of a CPU for fits that run at the same time; several methods may run at once."""
LONG_OPERATIONS = 3e11
"""A call with more operations is divided, so that progress is seen."""
SEQUENTIAL_SPLITS = 10
"""The splits of a call where they are fitted sequentially."""
LANE = "lane"
"""The name of the mesh axis over which splits are divided."""

Pytree = Any
"""A tree of arrays."""


class Cell(NamedTuple):
    """A data set and its splits."""

    votes: Votes
    labels: Labels
    """Class indices, -1 where unknown."""
    splits: Splits


class _Shape(NamedTuple):
    """How the lanes of a program run."""

    cells: int
    """The cells that run together; those of a call follow one another in such groups."""
    splits: int
    """The splits of a cell that run together on each device."""
    mesh: Mesh | None
    """The devices that splits are divided between; None is one."""


Scored = Evaluation | tuple[Int[AnyArray, "*split"], Float[AnyArray, "*split metric"]]
"""The results of splits: all of them, or only their status and metrics."""


def scored(evaluation: Evaluation, metrics: tuple[Metric, ...] | None) -> Scored:
    """Return all results of a split; with metrics, only what leaves the device."""
    return evaluation if metrics is None else scores_of(evaluation, metrics)


class _Items(NamedTuple):
    """The items of a cell: padded arrays, the same for all of its splits; of several, stacked."""

    votes: Votes
    labels: Int[AnyArray, "*cell item"]
    weight: Bool[AnyArray, "*cell item"] | Float[AnyArray, "*cell item"]
    """False for padding; or the items' weights."""


class _Split(NamedTuple):
    """One split of a cell; of several, stacked. Indices of -1 are padding."""

    calibration: Int[AnyArray, "*split calibration"]
    evaluation: Int[AnyArray, "*split evaluation"]
    key: UInt[AnyArray, "*split word"]
    """The data of a random key."""


def evaluate(
    fit_on: FitOn,
    metrics: tuple[Metric, ...] | None,
    shared: tuple[Method, Float[Array, "action class"]],
    items: _Items,
    split: _Split,
) -> Scored:
    """Fit a method on the calibration part of one split and predict its evaluation part, for a loss."""
    method, loss = shared
    votes, labels, weight = _training_data(items, split, fit_on, by_weight=_sums(method))
    key = jax.random.wrap_key_data(jnp.asarray(split.key))
    fitted = method.fit(votes, labels, weight=weight, key=key)
    index = jnp.maximum(split.evaluation, 0)
    # If most items are evaluated, predict all from the shared votes, without copies per split.
    mostly_evaluated = 2 * len(index) >= len(items.labels)
    log_probs = fitted(items.votes)[index] if mostly_evaluated else fitted(items.votes.take(index))
    return scored(evaluation_of(log_probs, status_of(fitted), items.labels, split, loss), metrics)


def _sums(method: Method) -> bool:
    """Tell whether a method's fits are sums over items."""
    return getattr(method, "sums_items", False)


def _training_data(
    items: _Items, split: _Split, fit_on: FitOn, *, by_weight: bool
) -> tuple[Votes, ItemCodes, ItemValues]:
    """Return the votes, labels and weights for the fit on a split, of all items if `by_weight`."""
    votes, labels, weight = items.votes, items.labels, jnp.asarray(items.weight, float)
    index, used = jnp.maximum(split.calibration, 0), split.calibration >= 0
    if by_weight and fit_on == "calibration":
        return votes, jnp.asarray(labels), jnp.zeros(labels.shape).at[index].add(used) * weight
    if fit_on == "all":
        known = jnp.zeros(labels.shape, bool).at[index].max(used)
        return votes, jnp.where(known, labels, MISSING), weight
    return votes.take(index), jnp.asarray(labels)[index], jnp.where(used, weight[index], 0.0)


def evaluation_of(
    log_probs: Float[AnyArray, "*split evaluation class"],
    status: Int[AnyArray, "*split"],
    labels: Int[AnyArray, " item"],
    split: _Split,
    loss: Float[AnyArray, "action class"],
) -> Evaluation:
    """Return the results from the answers of one split, or of several splits of a cell."""
    items = split.evaluation
    return Evaluation(
        items=items,
        labels=jnp.where(items >= 0, jnp.asarray(labels)[jnp.maximum(items, 0)], MISSING),
        log_probs=log_probs,
        decisions=inside(bayes_action)(log_probs, loss),
        status=status,
    )


class _Output(NamedTuple):
    """An aggregator's output on a split: the training data and the input of calibrators."""

    log_probs: Float[Array, "*split calibration class"]
    weight: Float[Array, "*split calibration"]
    raw: Float[Array, "*split evaluation class"]
    status: Int[Array, "*split"]


def aggregate(
    fit_on: FitOn,
    cross_fit: int | None,
    shared: tuple[Method, Scalar | None],
    items: _Items,
    split: _Split,
) -> _Output:
    """Fit an aggregator once on one split, and predict only the items that calibrators need."""
    method, share = shared
    index, evaluation = jnp.maximum(split.calibration, 0), jnp.maximum(split.evaluation, 0)
    used = split.calibration >= 0
    both_steps = share is None and cross_fit is None  # all labels are used in both
    by_weight = both_steps and _sums(method)
    key = jax.random.wrap_key_data(jnp.asarray(split.key))
    data = training(*_training_data(items, split, fit_on, by_weight=by_weight), key)
    fitted, answers, weight = first_stage(method, data, share, cross_fit)
    log_probs = answers
    if by_weight or fit_on == "all":  # maps learn from the calibration items only
        log_probs, weight = answers[index], jnp.where(used, weight[index], 0.0)
    raw = answers[evaluation] if by_weight else fitted(items.votes.take(evaluation))
    return _Output(log_probs, weight, raw, status_of(fitted))


def calibrate(
    metrics: tuple[Metric, ...] | None,
    shared: tuple[Method, Float[Array, "action class"]],
    labels: ItemCodes,
    of_split: tuple[_Output, _Split],
) -> Scored:
    """Fit a calibrator to an aggregator's output on one split, and evaluate it, for a loss."""
    (calibrator, loss), (output, split) = shared, of_split
    used = split.calibration >= 0
    known = jnp.where(used, labels[jnp.maximum(split.calibration, 0)], MISSING)
    mapped = calibrator.fit(output.log_probs, known, weight=output.weight)
    status = worst(output.status, status_of(mapped))
    return scored(evaluation_of(mapped(output.raw), status, labels, split, loss), metrics)


@dataclass(frozen=True)
class Engine:
    """What all methods of a sweep share; a call returns the results of a method."""

    cells: Sequence[Cell]
    loss: Float[np.ndarray, "action class"] | None = None
    """The loss matrix of the decisions; absolute error by default."""
    seed: int = 0
    devices: Sequence[jax.Device] | None = None
    metrics: tuple[Metric, ...] | None = None
    """With metrics, results are the status and the metrics of every split; else evaluations."""

    @in_float64
    def __call__(
        self,
        method: Method | Mapping[str, Calibrated],
        fit_on: FitOn,
        progress: Progress | None = None,
        name: str = "",
    ) -> list[dict[str, Pytree]]:
        """Return the results of every cell by calibrator (without one, by an empty name).

        Several calibrators are given as methods that differ in nothing else: they share one fit of the
        aggregator. Results are NumPy arrays with a leading split axis. `progress` is told each of
        several calls, or each split where they are fitted one by one, with the method's `name`.

        Raises
        ------
        JudgeBayesError
            If `fit_on` is neither of the two, or a split contains an item that does not exist.
        """
        self._check(fit_on)
        maps: Mapping[str, Calibrated] = {}
        if isinstance(method, Mapping):
            maps, fitted = method, next(iter(method.values())).aggregator
        elif isinstance(method, Calibrated):
            maps, fitted = {"": method}, method.aggregator
        else:
            fitted = method
        if not maps and self._one_by_one(fitted, fit_on):
            return [{"": self._in_turn(fitted, fit_on, c, progress, name)} for c in self.cells]
        results: list[dict[str, Pytree]] = [{} for _ in self.cells]
        for places, items, splits in self._groups:
            of_group = self._vectorised(fitted, fit_on, maps, items, splits, progress, name)
            for row, place in enumerate(places):
                results[place] = jax.tree.map(lambda x: x[row], of_group)  # noqa: B023
        return results

    def _check(self, fit_on: FitOn) -> None:
        if fit_on not in ("calibration", "all"):
            raise JudgeBayesError(f"fit_on={fit_on!r}; choose one of: 'calibration', 'all'.")
        for votes, _, splits in self.cells:
            highest = max(int(splits.calibration.max()), int(splits.evaluation.max()))
            if highest >= votes.n_items:
                raise JudgeBayesError(
                    f"The splits contain item {highest}, but there are {votes.n_items} items."
                )

    def _loss(self, votes: Votes) -> Float[np.ndarray, "action class"]:
        return absolute_loss(votes.n_classes) if self.loss is None else np.asarray(self.loss)

    def _one_by_one(self, method: Method, fit_on: FitOn) -> bool:
        if not is_jax(method):
            return True
        if fit_on == "all" or _sums(method) or self.devices is not None:
            return False
        votes, _, splits = max(self.cells, key=lambda cell: cell.splits.calibration.shape[1])
        return is_long(method, votes, bucket_size(splits.calibration.shape[1]))

    def _in_turn(
        self, method: Method, fit_on: FitOn, cell: Cell, progress: Progress | None, name: str
    ) -> Pytree:
        """Return the results of splits that are fitted one by one, if possible on several threads."""
        labels = np.asarray(cell.labels)
        calibration, evaluation = cell.splits.calibration, pad(cell.splits.evaluation)
        sizes = ((calibration >= 0).sum(1).max(), (evaluation >= 0).sum(1).max())
        # All labels, unless most items are held out.
        n_items = int(sum(sizes) if sizes[1] <= sizes[0] else sizes[0])
        votes = jax.tree.map(np.asarray, cell.votes)
        keys = jax.random.wrap_key_data(jnp.asarray(_keys(self.seed, len(calibration))))

        @in_float64  # the setting is a thread's own
        def one(split: int) -> tuple[np.ndarray, np.ndarray]:
            used = calibration[split][calibration[split] >= 0]
            known = np.full(len(labels), MISSING)
            known[used] = labels[used]
            some = np.arange(len(labels)) if fit_on == "all" else used
            fitted = fit_one(method, votes.take(some), known[some], keys[split], n_items)
            held_out = votes.take(np.maximum(evaluation[split], 0))
            return np.asarray(predict(fitted, held_out)), np.asarray(status_of(fitted))

        with ThreadPoolExecutor(os.cpu_count() if is_jax(method) else 1) as pool:
            answers = pool.map(one, range(len(calibration)))
            parts = [next(answers) for _ in followed(calibration, f"{name}: splits", progress)]
        log_probs, status = (np.stack(each) for each in zip(*parts, strict=True))
        split = _Split(calibration, evaluation, keys)
        evaluated = evaluation_of(log_probs, status, labels, split, self._loss(votes))
        results = evaluated if self.metrics is None else score_all(evaluated, self.metrics)
        return jax.tree.map(np.asarray, results)

    @cached_property
    def _groups(self) -> list[tuple[tuple[int, ...], _Items, _Split]]:
        """The cells that run in one program: their places, and their stacked arrays.

        A cell's padding depends on its own size only, and so do its answers.
        """
        groups: dict[Any, list[tuple[int, Pytree]]] = {}
        for place, cell in enumerate(self.cells):
            arrays = _padded(cell, self.seed)
            leaves, tree = jax.tree.flatten(arrays)
            groups.setdefault((tree, *(x.shape for x in leaves)), []).append((place, arrays))
        stacked = []
        for group in groups.values():
            places, own = zip(*group, strict=True)
            items, splits = jax.tree.map(lambda *each: np.stack(each), *own)
            stacked.append((places, items if self.devices else jax.device_put(items), splits))
        return stacked

    def _vectorised(
        self,
        method: Method,
        fit_on: FitOn,
        maps: Mapping[str, Calibrated],
        items: _Items,
        splits: _Split,
        progress: Progress | None,
        name: str,
    ) -> dict[str, Pytree]:
        """Return the results of a group of cells, with leading axes of cells and splits."""
        mesh = None if self.devices is None else Mesh(np.asarray(self.devices), (LANE,))
        size, shape = call_of(method, items, splits, fit_on, mesh)
        loss, n_splits = self._loss(items.votes), splits.calibration.shape[1]
        firsts = range(0, n_splits, size)
        by_call = progress if len(firsts) > 1 else None
        first = next(iter(maps.values()), None)
        calls = []
        for start in followed(firsts, f"{name}: batches of splits", by_call):
            which = np.arange(start, start + size) % n_splits  # the last call repeats splits
            some = jax.tree.map(lambda x: x[:, which], splits)  # noqa: B023
            if first is None:
                how = (fit_on, self.metrics)
                of_call = {"": _each_lane(evaluate, how, (method, loss), items, some, shape)}
            else:
                of_labels = (fit_on, first.cross_fit)
                shared = (method, first.share)
                output = _each_lane(aggregate, of_labels, shared, items, some, shape)
                # Maps run vectorised also after a sequential method.
                wide = shape._replace(splits=size) if shape.splits == 1 else shape
                lanes = (items.labels, (output, some), wide)
                of_call = {
                    each: _each_lane(calibrate, (self.metrics,), (one.calibrator, loss), *lanes)
                    for each, one in maps.items()
                }
            calls.append(_on_host(of_call, mesh))
        whole = (
            calls[0] if len(calls) == 1 else jax.tree.map(lambda *x: np.concatenate(x, 1), *calls)
        )
        return jax.tree.map(lambda x: x[:, :n_splits], whole)


def call_of(
    method: Method, items: _Items, splits: _Split, fit_on: FitOn, mesh: Mesh | None
) -> tuple[int, _Shape]:
    """Return the number of splits of a call, and how its lanes run.

    All calls have the same size, so that they are one program.
    """
    n_cells, n_items = items.votes.index.shape[:2]
    n_splits, of_fit = splits.calibration.shape[1:]
    n_devices = 1 if mesh is None else mesh.size
    used = (n_items if fit_on == "all" else of_fit) + min(splits.evaluation.shape[2], n_items)
    cost = cost_of(method, used, jax.tree.map(lambda x: x[0], items.votes))
    in_memory = splits_in_memory(method, cost)
    if not is_sequential(method):
        in_memory = min(in_memory, max(1, int(LONG_OPERATIONS / max(cost.operations, 1.0))))
    n_calls = -(-n_splits * n_cells // (in_memory * n_devices))
    each = -(-n_splits // (min(n_calls, n_splits) * n_devices))
    if on_accelerator():
        return each * n_devices, _Shape(n_cells, each, mesh)
    together = _together(method, each, n_items, cost)
    return -(-each // together) * together * n_devices, _Shape(1, together, mesh)


def _together(method: Method, splits: int, n_items: int, cost: Cost) -> int:
    """Return the number of splits that run together on a CPU: as many as cache and memory hold."""
    if is_sequential(method):
        return 1
    parts = -(-splits * n_items // MAX_NUMBERS)
    in_memory = max(1, int(VMAP_BYTES / (NUMBER_BYTES * cost.numbers)))
    return -(-splits // max(parts, -(-splits // in_memory)))


def splits_in_memory(method: Method, cost: Cost) -> int:
    """Return the number of lanes per call whose arrays fit into the memory of a device.

    For sequential fits, memory does not grow with the number of splits; these fits are slow, and
    progress is seen by call.
    """
    if is_sequential(method):
        return SEQUENTIAL_SPLITS
    return max(1, int(memory() * MEMORY_SHARE / (cost.numbers * NUMBER_BYTES)))


def memory() -> int:
    """Return the memory of a device in bytes: on a CPU, of this machine."""
    of_device = jax.local_devices()[0].memory_stats()
    if of_device is not None and "bytes_limit" in of_device:
        return int(of_device["bytes_limit"])
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 8 * 2**30  # a system without this information


def _padded(cell: Cell, seed: int) -> tuple[_Items, _Split]:
    """Return the arrays of a cell, padded to bucket sizes."""
    votes, labels, splits = cell
    n_items = bucket_size(votes.n_items)
    rest = (0, n_items - votes.n_items)
    weight = np.arange(n_items) < votes.n_items
    codes = np.pad(np.asarray(labels), rest, constant_values=MISSING)
    return (
        _Items(votes.padded(n_items), codes, weight),
        _Split(pad(splits.calibration), pad(splits.evaluation), _keys(seed, len(splits))),
    )


def pad(part: Int[np.ndarray, "split part"]) -> Int[np.ndarray, "split wide"]:
    """Return the items of splits padded with -1 to the next size of a bucket."""
    splits, items = part.shape
    padded = np.full((splits, bucket_size(items)), -1, np.int32)
    padded[:, :items] = part
    return padded


@lru_cache(maxsize=16)
def _keys(seed: int, n: int) -> UInt[np.ndarray, "split word"]:
    """Return the key data of each split as NumPy numbers, the same for all methods of a sweep."""
    return np.asarray(jax.random.key_data(jax.random.split(jax.random.key(seed), n)))


def _on_host(results: Pytree, mesh: Mesh | None) -> Pytree:
    """Return the results of all devices, of other processes too, as NumPy arrays."""
    if mesh is not None and jax.process_count() > 1:
        from jax.experimental.multihost_utils import process_allgather

        return process_allgather(results, tiled=True)
    return jax.tree.map(np.asarray if mesh is None else _gather, results)


def _gather(array: Array) -> np.ndarray:
    """Return the splits of all devices, with one copy (`np.asarray` copies twice)."""
    parts = sorted(array.addressable_shards, key=lambda part: part.index[1].start or 0)
    return np.concatenate([np.asarray(part.data) for part in parts], axis=1)


@partial(jax.jit, static_argnames=("one", "settings", "shape"))
def _each_lane(
    one: Callable[..., Pytree],
    settings: tuple[Any, ...],
    shared: Pytree,
    items: Pytree,
    splits: Pytree,
    shape: _Shape,
) -> Pytree:
    """Return one(*settings, shared, items of a cell, its split) for every split of every cell.

    With a mesh, each device runs its part of the splits without communication.
    """

    def part(shared: Pytree, items: Pytree, splits: Pytree) -> Pytree:
        def cell(pair: tuple[Pytree, Pytree]) -> Pytree:
            items, splits = pair
            return jax.lax.map(
                partial(one, *settings, shared, items), splits, batch_size=shape.splits
            )

        at_once = shape.cells if shape.cells > 1 else None
        return jax.lax.map(cell, (items, splits), batch_size=at_once)

    if shape.mesh is None:
        return part(shared, items, splits)
    same, spread = PartitionSpec(), PartitionSpec(None, LANE)
    return jax.shard_map(
        part, mesh=shape.mesh, in_specs=(same, same, spread), out_specs=spread, check_vma=False
    )(shared, items, splits)
