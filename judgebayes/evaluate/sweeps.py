"""Evaluation over repeated splits, vectorised; a sweep returns a tidy table."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax.sharding import Mesh
from jaxtyping import Array, Float, Int

from judgebayes import __version__
from judgebayes.aggregators.base import Aggregator
from judgebayes.aggregators.calibrated import Calibrated
from judgebayes.arrays import AnyArray, Scalar
from judgebayes.calibrators.base import Calibrator
from judgebayes.compiled.checkpoint import kept_part
from judgebayes.compiled.float64 import in_float64
from judgebayes.evaluate.batches import (
    Plan,
    Pytree,
    SplitArrays,
    SplitBatch,
    each_split,
    split_batches,
)
from judgebayes.evaluate.by_loop import evaluate_by_loop, is_jax
from judgebayes.evaluate.one_split import (
    METRICS,
    AggregatorOutput,
    Evaluation,
    FitOn,
    Metric,
    aggregate_split,
    evaluate,
    map_split,
    measure,
    metrics_named,
)
from judgebayes.evaluate.splits import Splits
from judgebayes.progress import tracked
from judgebayes.votes.array import MISSING, Votes

__all__ = ["evaluate_calibrators", "evaluate_splits", "sweep"]

ANSWERS = ("log_probs", "decisions", "status")
"""The fields of an evaluation in a checkpoint; items and labels follow from the splits."""


@in_float64
def evaluate_splits(
    method: Aggregator,
    votes: Votes,
    labels: Int[AnyArray, " item"],
    splits: Splits,
    *,
    fit_on: FitOn,
    loss: Float[np.ndarray, "action class"] | None = None,
    seed: int = 0,
    devices: Sequence[jax.Device] | None = None,
    batch_size: int | None = None,
    checkpoint: Path | str | None = None,
) -> Evaluation:
    """Fit and evaluate a method on every split; the results have a leading split axis.

    Parameters
    ----------
    method
        The aggregator.
    votes, labels
        All items, class indices, -1 where unknown.
    splits
        The splits.
    fit_on
        Whether a fit uses the votes of the calibration items only, or of all items. There is no default,
        because this is a scientific choice.
    loss
        The loss matrix of the decisions; absolute error by default (P1 eq 6).
    seed
        Seed of the random restarts and draws, split by split.
    devices
        Devices to divide the splits between, for example `jax.devices()`. They may belong to other
        processes (`jax.distributed`), each of which then makes this call and gets all results, as NumPy
        arrays.
    batch_size
        Number of splits per batch; memory grows with it. By default, as many as fit into this machine's
        memory. Results do not depend on it, except for rounding.
    checkpoint
        A folder in which the results of every batch are saved when it is complete. The same call, also
        in a later process, reads them: after an interruption it resumes, and the results have the same
        bits. Your own methods are identified by name (`judgebayes.compiled.digest`).

    Raises
    ------
    JudgeBayesError
        If `fit_on` is neither of the two, a split contains an item that does not exist, or the
        folder cannot be written to (its content is then unchanged).
    """
    batches = split_batches(
        method, votes, labels, splits, fit_on, loss, seed, devices, batch_size, checkpoint
    )
    return _answers(_plan(method, fit_on), batches)[""]


@in_float64
def evaluate_calibrators(
    method: Aggregator,
    calibrators: Mapping[str, Calibrator],
    votes: Votes,
    labels: Int[AnyArray, " item"],
    splits: Splits,
    *,
    fit_on: FitOn,
    share: float | None = 0.7,
    cross_fit: int | None = None,
    loss: Float[np.ndarray, "action class"] | None = None,
    seed: int = 0,
    devices: Sequence[jax.Device] | None = None,
    batch_size: int | None = None,
    checkpoint: Path | str | None = None,
) -> dict[str, Evaluation]:
    """Fit an aggregator once per split, and several calibrators on its output, by name.

    Each result equals that of `Calibrated(method, calibrator, share, cross_fit)`, at the cost of one
    aggregator fit. The parameters are those of `evaluate_splits` and `Calibrated`.

    Raises
    ------
    JudgeBayesError
        As `evaluate_splits`, and if the share or the number of folds is impossible.
    """
    batches = split_batches(
        method, votes, labels, splits, fit_on, loss, seed, devices, batch_size, checkpoint
    )
    return _answers(_plan_of_maps(method, calibrators, share, cross_fit, fit_on), batches)


@in_float64
def sweep(
    methods: Mapping[str, Aggregator],
    votes: Votes,
    labels: Int[AnyArray, " item"],
    splits: Splits,
    *,
    fit_on: FitOn,
    calibrators: Mapping[str, Calibrator] | None = None,
    share: float | None = 0.7,
    cross_fit: int | None = None,
    loss: Float[np.ndarray, "action class"] | None = None,
    metrics: Sequence[str] | Mapping[str, Metric] = ("mae", "accuracy"),
    seed: int = 0,
    devices: Sequence[jax.Device] | None = None,
    batch_size: int | None = None,
    checkpoint: Path | str | None = None,
    progress: bool = False,
) -> pd.DataFrame:
    """Run methods on splits and return a tidy table: a row per method, split and metric.

    With `calibrators`, there is a row per method, calibrator, split and metric, and a column
    `calibrator`; each aggregator is fitted once per split for all calibrators, with `share` and
    `cross_fit` as in `Calibrated`. With `checkpoint`, an interrupted sweep resumes, method by method
    and batch by batch. The other parameters are those of `evaluate_splits`;
    `methods` are aggregators by name; `metrics` are names from `METRICS`, or your own functions of an
    `Evaluation` by name. `progress` shows a progress bar over methods with the remaining time, in a
    terminal or a notebook. The table's `attrs` contain the seed, number of splits and version.

    Examples
    --------
    >>> import numpy as np
    >>> import judgebayes as jb
    >>> counts = [[0, 1, 7], [1, 6, 1], [6, 2, 0], [1, 4, 3], [2, 6, 0], [8, 0, 0]]
    >>> votes = jb.from_counts(np.array(counts))
    >>> labels = np.array([2, 1, 0, 1, 1, 0])
    >>> parts = jb.random_splits(6, splits=4, calibration=3)
    >>> methods = {"sc": jb.MajorityVote(), "best-constant": jb.BaseRate()}
    >>> table = jb.sweep(methods, votes, labels, parts, fit_on="calibration", metrics=["mae"])
    >>> print(table.groupby("method")["value"].mean())
    method
    best-constant    0.916667
    sc               0.000000
    Name: value, dtype: float64
    """
    chosen = dict(metrics) if isinstance(metrics, Mapping) else metrics_named(metrics)
    tables = []
    with tracked(methods.items(), "methods", progress) as named_methods:
        for name, method in named_methods:
            batches = split_batches(
                method, votes, labels, splits, fit_on, loss, seed, devices, batch_size, checkpoint
            )
            if calibrators is None:
                (scores,) = _score_splits(_plan(method, fit_on), batches, chosen)
                tables.append(_tidy(scores, {"method": name}))
                continue
            plan = _plan_of_maps(method, calibrators, share, cross_fit, fit_on)
            for calibrator, scores in zip(
                plan.names, _score_splits(plan, batches, chosen), strict=True
            ):
                tables.append(_tidy(scores, {"method": name, "calibrator": calibrator}))
    table = pd.concat(tables, ignore_index=True)
    table.attrs = {"seed": seed, "splits": len(splits), "judgebayes": __version__}
    return table


class _Scores(NamedTuple):
    """Status and metrics of each split."""

    status: Int[np.ndarray, " split"]
    metrics: dict[str, Float[np.ndarray, " split"]]


def _score_splits(
    plan: Plan, batches: list[SplitBatch], metrics: Mapping[str, Metric]
) -> list[_Scores]:
    """Return the metrics of each split, the only results that a sweep keeps."""

    def score_batch(batch: SplitBatch) -> Float[np.ndarray, "map column split"]:
        def compute() -> dict[str, np.ndarray]:
            rows = [
                [np.asarray(evaluation.status, float), *measure(evaluation, metrics).values()]
                for evaluation in map(batch.without_padding, plan.run(batch))
            ]
            return {"values": np.array(rows, float)}

        if batch.folder is None:
            return compute()["values"]
        # Built-in metrics count by name, as this package's source defines them.
        metric_ids = [
            (n, None if METRICS.get(n) is metric else metric) for n, metric in metrics.items()
        ]
        return kept_part(batch.folder, batch.name(plan, *metric_ids), compute)["values"]

    values_of_map = np.concatenate([score_batch(batch) for batch in batches], axis=2)
    return [
        _Scores(status.astype(np.int32), dict(zip(metrics, values, strict=True)))
        for status, *values in values_of_map
    ]


def _tidy(scores: _Scores, names: Mapping[str, str]) -> pd.DataFrame:
    parts = [
        pd.DataFrame(
            {
                **names,
                "split": np.arange(len(scores.status)),
                "metric": metric,
                "value": values,
                "status": scores.status,
            }
        )
        for metric, values in scores.metrics.items()
    ]
    return pd.concat(parts, ignore_index=True)


def _plan(method: Aggregator, fit_on: FitOn) -> Plan:
    if isinstance(method, Calibrated):  # its calibrator is compiled once, for all aggregators
        maps = {"": method.calibrator}
        return _plan_of_maps(method.aggregator, maps, method.share, method.cross_fit, fit_on)

    def run(batch: SplitBatch) -> list[Evaluation]:
        if not is_jax(method):
            data = (batch.votes, batch.labels, *batch.splits, batch.loss)
            return [evaluate_by_loop(method, *data, fit_on, batch.n_items)]
        args = (method, batch.votes, batch.labels, batch.loss, batch.weight, batch.splits)
        return [batch.run(_evaluate_all, args, fit_on=fit_on, vmap_size=batch.vmap_size)]

    return Plan(run, ("",), method, fit_on)


def _plan_of_maps(
    method: Aggregator,
    calibrators: Mapping[str, Calibrator],
    share: Scalar | None,
    cross_fit: int | None,
    fit_on: FitOn,
) -> Plan:
    def run(batch: SplitBatch) -> list[Evaluation]:
        output = batch.run(
            _answer_all,
            (method, share, batch.votes, batch.labels, batch.weight, batch.splits),
            cross_fit=cross_fit,
            fit_on=fit_on,
            vmap_size=batch.vmap_size,
        )
        # Calibrators run vectorised also after a sequential method.
        vmap_size = batch.vmap_size if batch.vmap_size > 1 else len(output.status)

        def evaluate_map(calibrator: Calibrator) -> Evaluation:
            args = (calibrator, output, batch.labels, batch.loss, batch.splits)
            return batch.run(_map_all, args, vmap_size=vmap_size)

        return [evaluate_map(calibrator) for calibrator in calibrators.values()]

    made_of = (method, share, tuple(calibrators.values()))
    return Plan(run, tuple(calibrators), made_of, (fit_on, cross_fit))


def _answers(plan: Plan, batches: "list[SplitBatch]") -> dict[str, Evaluation]:
    """Return the results on all splits, batch by batch, from the checkpoint if they are saved."""

    def from_checkpoint(batch: SplitBatch, folder: Path) -> list[Evaluation]:
        def compute() -> dict[str, np.ndarray]:
            return {
                f"{index} {field}": np.asarray(getattr(evaluation, field))
                for index, evaluation in enumerate(map(batch.on_host, plan.run(batch)))
                for field in ANSWERS
            }

        arrays = kept_part(folder, batch.name(plan, ANSWERS), compute)
        items = np.asarray(batch.splits[1])[: batch.n_splits]
        labels = np.where(items >= 0, np.asarray(batch.labels)[np.maximum(items, 0)], MISSING)
        evaluations = [
            Evaluation(items, labels, *(arrays[f"{index} {field}"] for field in ANSWERS))
            for index in range(len(plan.names))
        ]
        return evaluations if batch.mesh is not None else jax.device_put(evaluations)

    def evaluate_batch(batch: SplitBatch) -> list[Evaluation]:
        if batch.folder is not None:
            return from_checkpoint(batch, batch.folder)
        return [batch.on_host(evaluation) for evaluation in plan.run(batch)]

    def concatenate(*parts: Array | np.ndarray) -> Array | np.ndarray:
        host = isinstance(parts[0], np.ndarray)
        return np.concatenate(parts) if host else jnp.concatenate(parts)

    first, *rest = map(evaluate_batch, batches)
    evaluations = (
        [jax.tree.map(concatenate, *e) for e in zip(first, *rest, strict=True)] if rest else first
    )
    return dict(zip(plan.names, evaluations, strict=True))


@partial(jax.jit, static_argnames=("fit_on", "vmap_size", "mesh"))
def _evaluate_all(
    method: Aggregator,
    votes: Votes,
    labels: Int[Array, " item"],
    loss: Float[Array, "action class"],
    weight: Float[Array, " item"] | None,
    splits: "SplitArrays",
    fit_on: FitOn,
    vmap_size: int,
    mesh: Mesh | None,
) -> Evaluation:
    """Evaluate a method on every split."""

    def evaluate_split(shared: Pytree, split: SplitArrays) -> Evaluation:
        method, votes, labels, loss, weight = shared
        calibration, evaluation, key = split
        return evaluate(method, votes, labels, calibration, evaluation, loss, key, fit_on, weight)

    return each_split(
        evaluate_split, (method, votes, labels, loss, weight), splits, vmap_size, mesh
    )


@partial(jax.jit, static_argnames=("cross_fit", "fit_on", "vmap_size", "mesh"))
def _answer_all(
    method: Aggregator,
    share: Scalar | None,
    votes: Votes,
    labels: Int[Array, " item"],
    weight: Float[Array, " item"] | None,
    splits: "SplitArrays",
    cross_fit: int | None,
    fit_on: FitOn,
    vmap_size: int,
    mesh: Mesh | None,
) -> AggregatorOutput:
    """Fit an aggregator on every split, for the calibrators after it."""

    def evaluate_split(shared: Pytree, split: SplitArrays) -> AggregatorOutput:
        method, share, votes, labels, weight = shared
        return aggregate_split(method, share, cross_fit, votes, labels, *split, fit_on, weight)

    return each_split(
        evaluate_split, (method, share, votes, labels, weight), splits, vmap_size, mesh
    )


@partial(jax.jit, static_argnames=("vmap_size", "mesh"))
def _map_all(
    calibrator: Calibrator,
    output: AggregatorOutput,
    labels: Int[Array, " item"],
    loss: Float[Array, "action class"],
    splits: "SplitArrays",
    vmap_size: int,
    mesh: Mesh | None,
) -> Evaluation:
    """Fit a calibrator on every split, with one program for all aggregators."""

    def evaluate_split(shared: Pytree, split: Pytree) -> Evaluation:
        calibrator, labels, loss = shared
        output, (calibration, evaluation, _) = split
        return map_split(calibrator, output, labels, calibration, evaluation, loss)

    return each_split(evaluate_split, (calibrator, labels, loss), (output, splits), vmap_size, mesh)
