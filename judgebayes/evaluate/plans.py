"""What is computed for a batch of splits: compiled programs over all of its splits, or a loop."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Float

from judgebayes.aggregators.base import Aggregator
from judgebayes.aggregators.calibrated import Calibrated
from judgebayes.arrays import ItemCodes, ItemValues, Scalar
from judgebayes.calibrators.base import Calibrator
from judgebayes.evaluate.batches import SPLIT, Plan, Pytree, SplitArrays, SplitBatch, SplitData
from judgebayes.evaluate.by_loop import evaluate_by_loop
from judgebayes.evaluate.one_by_one import evaluate_one_by_one, is_long
from judgebayes.evaluate.one_split import (
    AggregatorOutput,
    Evaluation,
    FitOn,
    aggregate_split,
    evaluate,
    fits_from_agreement,
    map_split,
)
from judgebayes.progress import Progress, followed
from judgebayes.votes.array import Votes


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
            data = (batch.votes, batch.labels, *batch.splits, batch.loss)
            return [evaluate_by_loop(method, *data, fit_on, batch.n_items)]
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
