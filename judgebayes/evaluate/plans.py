"""What is computed for a batch of splits: compiled programs over all of its splits, or a loop.

A method that is not JAX code is fitted split by split, without compilation.

A sweep usually fits many splits in one vectorised program. For a long fit that has two costs: the
program takes many seconds to compile, and then again for the single fit to all labels; and every split
waits for the one that needs the most steps. On a CPU, where one fit keeps a core busy, such splits are
therefore fitted one by one, on several threads. The items are padded to the number of all labels, so
that the fit to all of them (`fit_to_all`) is the same program.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Float, Int

from judgebayes.aggregators.base import Aggregator, Costed, Size, cost_of
from judgebayes.aggregators.wrapped import Calibrated
from judgebayes.arrays import (
    ItemCodes,
    ItemInts,
    ItemValues,
    Key,
    Labels,
    LogProbs,
    Scalar,
    Weights,
)
from judgebayes.calibrators.calibrator import Calibrator
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.evaluate.batches import (
    SPLIT,
    Plan,
    Pytree,
    SplitArrays,
    SplitBatch,
    SplitData,
    bucket_size,
    is_sequential,
)
from judgebayes.evaluate.one_split import (
    AggregatorOutput,
    Evaluation,
    FitOn,
    aggregate_split,
    evaluate,
    fits_from_agreement,
    map_split,
)
from judgebayes.inference.fit import Fitted
from judgebayes.inference.status import Status
from judgebayes.measures.decide import bayes_action
from judgebayes.progress import Progress, followed
from judgebayes.votes.array import MISSING, Votes

SUM_TOLERANCE = 1e-6


@dataclass(frozen=True)
class PlainFit:
    """A fit that is not JAX code, with checked predictions and a status."""

    inner: Any
    status: Int[Array, ""]

    def __call__(self, votes: Votes) -> LogProbs:
        """Return the items' log-probabilities.

        Raises
        ------
        JudgeBayesError
            If they have another shape, are not numbers, or their exponentials do not sum to one.
        """
        return predict_checked(self.inner, votes)


def fit_plain(method: Any, votes: Votes, labels: Labels, key: Array) -> PlainFit:
    """Fit a method that is not JAX code; a fit without a status counts as converged."""
    inner = method.fit(votes, labels, key=key)
    return PlainFit(inner, jnp.asarray(int(getattr(inner, "status", Status.CONVERGED))))


def evaluate_by_loop(method: Any, batch: SplitBatch, fit_on: FitOn) -> Evaluation:
    """Fit and evaluate every split in turn; the results have a leading split axis."""
    labels, parts = np.asarray(batch.labels), []
    for calibration, evaluation, key in zip(*batch.splits, strict=True):
        items = np.asarray(calibration)[np.asarray(calibration) >= 0]
        fit_labels = np.full(batch.n_items, MISSING)
        fit_labels[items] = labels[items]
        fit_items = np.arange(batch.n_items) if fit_on == "all" else items
        fitted = fit_plain(method, batch.votes.take(fit_items), fit_labels[fit_items], key)
        held_out = batch.votes.take(np.maximum(np.asarray(evaluation), 0))
        parts.append((fitted(held_out), fitted.status))
    return _together(batch, parts)


def _together(batch: SplitBatch, parts: Sequence[tuple[Any, Any]]) -> Evaluation:
    """Return the results of splits that were fitted in turn, from their answers and statuses."""
    log_probs, status = (jnp.asarray(np.stack(each)) for each in zip(*parts, strict=True))
    items = jnp.asarray(batch.splits[1])
    return Evaluation(
        items=items,
        labels=jnp.where(items >= 0, jnp.asarray(batch.labels)[jnp.maximum(items, 0)], MISSING),
        log_probs=log_probs,
        decisions=bayes_action(log_probs, jnp.asarray(batch.loss)),
        status=status,
    )


def predict_checked(fitted: Any, votes: Votes) -> LogProbs:
    """Return the log-probabilities of every item's classes from a fit, after checks.

    Raises
    ------
    JudgeBayesError
        If they have another shape, are not numbers, or their exponentials do not sum to one.
    """
    name = type(fitted).__name__
    predicted = np.asarray(fitted(votes), float)
    expected = (votes.n_items, votes.n_classes)
    if predicted.shape != expected:
        raise JudgeBayesError(
            f"{name} returns an array of shape {predicted.shape}; expected the log-probabilities "
            f"of {expected[0]} items and {expected[1]} classes."
        )
    with np.errstate(over="ignore"):
        total = np.exp(predicted).sum(1)
    if not (np.abs(total - 1) < SUM_TOLERANCE).all():
        item = int(np.argmax(~(np.abs(total - 1) < SUM_TOLERANCE)))
        raise JudgeBayesError(
            f"{name} returns {predicted[item]} for item {item}. The exponentials of "
            f"log-probabilities sum to 1, but these sum to {total[item]:g}."
        )
    return jnp.asarray(predicted)


LONG_FIT = 3e6
"""The operations from which a fit takes much longer than its call."""


def is_long(method: Aggregator, votes: Votes, items: int) -> bool:
    """Tell whether a fit to this many items is long, by the method's own cost, and runs on a CPU."""
    inner: object = method
    while not isinstance(inner, Costed) and hasattr(inner, "aggregator"):
        inner = inner.aggregator
    # The folds of a map's cross-fitting depend on the number of items, with padding.
    if not isinstance(inner, Costed) or isinstance(method, Calibrated) or is_sequential(method):
        return False
    size = Size(items, votes.n_judges, votes.n_samples, votes.n_classes)
    return cost_of(method, size).operations >= LONG_FIT and jax.default_backend() == "cpu"


def fit_to_all(method: Aggregator, votes: Votes, labels: ItemInts, key: Key) -> Fitted:
    """Return the fit to all items, by the program of the splits."""
    return _fitted(method, votes, labels, np.arange(len(labels)), bucket_size(len(labels)), key)


def evaluate_one_by_one(
    method: Aggregator, batch: SplitBatch, what: str = "", progress: Progress | None = None
) -> Evaluation:
    """Fit and evaluate every split of a batch, each on its calibration items only.

    `progress` is told each split, with `what` as the name of the task.
    """
    labels = np.asarray(batch.labels)
    calibration, evaluation = (np.asarray(part) for part in batch.splits[:2])
    sizes = ((calibration >= 0).sum(1).max(), (evaluation >= 0).sum(1).max())
    # All labels, unless most items are held out.
    n_items = bucket_size(int(sum(sizes) if sizes[1] <= sizes[0] else sizes[0]))
    votes = jax.tree.map(np.asarray, batch.votes)

    @in_float64  # the setting is a thread's own
    def one(split: int) -> tuple[Float[np.ndarray, "item class"], Int[np.ndarray, ""]]:
        items = calibration[split][calibration[split] >= 0]
        fitted = _fitted(method, votes, labels, items, n_items, batch.splits[2][split])
        some = votes.take(np.maximum(evaluation[split], 0))
        return np.asarray(answers_of(fitted, some)), np.asarray(fitted.status)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(one, range(len(calibration)))
        parts = [next(results) for _ in followed(calibration, what, progress)]
    return _together(batch, parts)


def _fitted(
    method: Aggregator,
    votes: Votes,
    labels: ItemInts,
    items: Int[np.ndarray, " some"],
    n_items: int,
    key: Key,
) -> Fitted:
    """Return the fit to some items, padded with items without votes and of weight 0."""
    rest = n_items - len(items)
    return _fit(
        method,
        votes.take(items).padded(n_items),
        np.pad(labels[items], (0, rest), constant_values=MISSING),
        np.pad(np.ones(len(items)), (0, rest)),
        key,
    )


@jax.jit
def _fit(method: Aggregator, votes: Votes, labels: Labels, weight: Weights, key: Key) -> Fitted:
    return method.fit(votes, labels, weight=weight, key=key)


@jax.jit
def answers_of(fitted: Fitted, votes: Votes) -> LogProbs:
    """Return the answers of a fit."""
    return fitted(votes)


def is_jax(method: Any) -> bool:
    """Tell whether a method or a fit is a pytree, usable in compiled code."""
    return not jax.tree_util.all_leaves([method])


def plan_of(
    method: Aggregator, fit_on: FitOn, what: str = "", progress: Progress | None = None
) -> Plan:
    """Return the plan to fit and evaluate a method on every split.

    `progress` is told each split where they are fitted one by one, with `what` as the task's name.
    """
    if isinstance(method, Calibrated):  # its calibrator is compiled once, for all aggregators
        maps = {"": method.calibrator}
        return plan_of_maps(method.aggregator, maps, method.share, method.cross_fit, fit_on)

    def run(batch: SplitBatch) -> list[Evaluation]:
        if not is_jax(method):
            return [evaluate_by_loop(method, batch, fit_on)]
        vectorised = fit_on == "all" or fits_from_agreement(method, batch.votes, fit_on)
        if not vectorised and batch.mesh is None and is_long(method, batch.votes, batch.fit_items):
            return [evaluate_one_by_one(method, batch, what, progress)]
        arrays = (batch.votes, batch.labels, batch.loss, batch.weight, batch.splits)
        return [_evaluate_all(method, *arrays, fit_on, batch.vmap_size, batch.mesh)]

    return Plan(run, ("",))


def plan_of_maps(
    method: Aggregator,
    calibrators: Mapping[str, Calibrator],
    share: Scalar | None,
    cross_fit: int | None,
    fit_on: FitOn,
) -> Plan:
    """Return the plan to fit a method on every split, and then every calibrator to its output."""

    def run(batch: SplitBatch) -> list[Evaluation]:
        data = (batch.votes, batch.labels, batch.weight, batch.splits)
        output = _answer_all(method, share, *data, cross_fit, fit_on, batch.vmap_size, batch.mesh)
        # Calibrators run vectorised also after a sequential method.
        vmap_size = batch.vmap_size if batch.vmap_size > 1 else len(output.status)

        def evaluate_map(calibrator: Calibrator) -> Evaluation:
            data = (batch.labels, batch.loss, batch.splits)
            return _map_all(calibrator, output, *data, vmap_size, batch.mesh)

        return [evaluate_map(calibrator) for calibrator in calibrators.values()]

    return Plan(run, tuple(calibrators))


def evaluate_data(
    method: Aggregator,
    data: SplitData,
    fit_on: FitOn,
    *,
    progress: Progress | None = None,
    name: str = "",
) -> Evaluation:
    """Return the results of a method on all splits; `progress` is told each of several batches.

    In a single batch it is told each split, if they are fitted one by one.
    """
    batches = data.batches(method, fit_on)
    by_batch, by_split = (progress, None) if len(batches) > 1 else (None, progress)
    plan = plan_of(method, fit_on, f"{name}: splits", by_split)
    return answers(plan, batches, f"{name}: batches of splits", by_batch)[""]


def answers(
    plan: Plan, batches: list[SplitBatch], what: str = "", progress: Progress | None = None
) -> dict[str, Evaluation]:
    """Return the results on all splits, batch by batch."""

    def concatenate(*parts: Array | np.ndarray) -> Array | np.ndarray:
        host = isinstance(parts[0], np.ndarray)
        return np.concatenate(parts) if host else jnp.concatenate(parts)

    first, *rest = (
        [batch.on_host(evaluation) for evaluation in plan.run(batch)]
        for batch in followed(batches, what, progress)
    )
    evaluations = (
        [jax.tree.map(concatenate, *e) for e in zip(first, *rest, strict=True)] if rest else first
    )
    return dict(zip(plan.names, evaluations, strict=True))


def _each_split(
    one: Callable[[Pytree, Pytree], Pytree],
    shared: Pytree,
    splits: Pytree,
    vmap_size: int,
    mesh: Mesh | None,
) -> Pytree:
    """Run every split; with a mesh, each device runs its part without communication."""

    def part(shared: Pytree, splits: Pytree) -> Pytree:
        return jax.lax.map(partial(one, shared), splits, batch_size=vmap_size)

    if mesh is None:
        return part(shared, splits)
    spread = PartitionSpec(SPLIT)
    return jax.shard_map(
        part, mesh=mesh, in_specs=(PartitionSpec(), spread), out_specs=spread, check_vma=False
    )(shared, splits)


@partial(jax.jit, static_argnames=("fit_on", "vmap_size", "mesh"))
def _evaluate_all(
    method: Aggregator,
    votes: Votes,
    labels: ItemCodes,
    loss: Float[Array, "action class"],
    weight: ItemValues | None,
    splits: SplitArrays,
    fit_on: FitOn,
    vmap_size: int,
    mesh: Mesh | None,
) -> Evaluation:
    """Evaluate a method on every split."""

    def evaluate_split(shared: Pytree, split: SplitArrays) -> Evaluation:
        method, votes, labels, loss, weight = shared
        calibration, evaluation, key = split
        return evaluate(method, votes, labels, calibration, evaluation, loss, key, fit_on, weight)

    return _each_split(
        evaluate_split, (method, votes, labels, loss, weight), splits, vmap_size, mesh
    )


@partial(jax.jit, static_argnames=("cross_fit", "fit_on", "vmap_size", "mesh"))
def _answer_all(
    method: Aggregator,
    share: Scalar | None,
    votes: Votes,
    labels: ItemCodes,
    weight: ItemValues | None,
    splits: SplitArrays,
    cross_fit: int | None,
    fit_on: FitOn,
    vmap_size: int,
    mesh: Mesh | None,
) -> AggregatorOutput:
    """Fit an aggregator on every split, for the calibrators after it."""

    def evaluate_split(shared: Pytree, split: SplitArrays) -> AggregatorOutput:
        method, share, votes, labels, weight = shared
        return aggregate_split(method, share, cross_fit, votes, labels, *split, fit_on, weight)

    return _each_split(
        evaluate_split, (method, share, votes, labels, weight), splits, vmap_size, mesh
    )


@partial(jax.jit, static_argnames=("vmap_size", "mesh"))
def _map_all(
    calibrator: Calibrator,
    output: AggregatorOutput,
    labels: ItemCodes,
    loss: Float[Array, "action class"],
    splits: SplitArrays,
    vmap_size: int,
    mesh: Mesh | None,
) -> Evaluation:
    """Fit a calibrator on every split, with one program for all aggregators."""

    def evaluate_split(shared: Pytree, split: Pytree) -> Evaluation:
        calibrator, labels, loss = shared
        output, (calibration, evaluation, _) = split
        return map_split(calibrator, output, labels, calibration, evaluation, loss)

    return _each_split(
        evaluate_split, (calibrator, labels, loss), (output, splits), vmap_size, mesh
    )
