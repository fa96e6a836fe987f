"""Evaluation over repeated splits: many run at once, and a sweep is a tidy table of them."""

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
    OverSplits,
    Plan,
    Pytree,
    SplitArrays,
    each_split,
    over_splits,
)
from judgebayes.evaluate.by_loop import evaluated_by_loop, is_jax
from judgebayes.evaluate.one_split import (
    METRICS,
    Evaluation,
    FitOn,
    Metric,
    Stage,
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
"""What a checkpoint keeps of an evaluation; items and labels are those of the splits."""


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
    """Fit and answer on every split at once, with a leading split axis.

    Parameters
    ----------
    method
        The aggregator.
    votes, labels
        All items, class indices, -1 where unknown.
    splits
        The splits.
    fit_on
        Whether a fit sees the votes of the calibration items only or of all items. It has no
        default: it is a scientific choice.
    loss
        The loss matrix of the decisions; absolute error by default (P1 eq 6).
    seed
        Seed of the random restarts and draws, split by split.
    devices
        Devices to divide the splits between, `jax.devices()` say: also those of other processes
        (`jax.distributed`), each of which then makes this call and gets the whole answer. Then it
        comes as NumPy arrays: no device has the whole of it.
    batch_size
        How many splits to fit at once: memory grows with it. As many as suit the memory of this
        machine if not given. Answers do not depend on it beyond rounding.
    checkpoint
        A folder in which the answers of every batch are kept as soon as they are there. The same
        call, in a later process too, takes them from it: after a kill it goes on, and ends with the
        same bits. Methods of your own count by name (`judgebayes.compiled.digest`).

    Raises
    ------
    JudgeBayesError
        If `fit_on` is neither of the two, a split points at an item that does not exist, or the
        folder cannot be written to: what is in it stays.
    """
    batches = over_splits(
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
    """Fit an aggregator once per split and several calibrators behind it, by name.

    Each answer is that of `Calibrated(method, calibrator, share, cross_fit)`, at the price of one
    aggregator. Parameters are those of `evaluate_splits` and `Calibrated`.

    Raises
    ------
    JudgeBayesError
        As `evaluate_splits`, and if the share or the number of folds is impossible.
    """
    batches = over_splits(
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
    `calibrator`; each aggregator is fitted once per split, as `Calibrated` says for `share` and
    `cross_fit`, and serves every calibrator. With `checkpoint`, a sweep that was killed goes on where
    it was, method by method and batch by batch. The other parameters are those of `evaluate_splits`;
    `methods` are named aggregators, `metrics` names from `METRICS` or functions of an `Evaluation`
    of your own. `progress` shows a bar with the time left, method by method, in a terminal or a
    notebook. Seed, number of splits and version are in the `attrs` of the table.

    Examples
    --------
    >>> import numpy as np
    >>> import judgebayes as jb
    >>> counts = [[0, 1, 7], [1, 6, 1], [6, 2, 0], [1, 4, 3], [2, 6, 0], [8, 0, 0]]
    >>> votes = jb.from_counts(np.array(counts))
    >>> labels = np.array([2, 1, 0, 1, 1, 0])
    >>> parts = jb.random_splits(6, splits=4, calibration=3)
    >>> methods = {"sc": jb.MajorityVote(), "best-constant": jb.BaseRate()}
    >>> found = jb.sweep(methods, votes, labels, parts, fit_on="calibration", metrics=["mae"])
    >>> print(found.groupby("method")["value"].mean())
    method
    best-constant    0.916667
    sc               0.000000
    Name: value, dtype: float64
    """
    chosen = dict(metrics) if isinstance(metrics, Mapping) else metrics_named(metrics)
    tables = []
    with tracked(methods.items(), "methods", progress) as following:
        for name, method in following:
            batches = over_splits(
                method, votes, labels, splits, fit_on, loss, seed, devices, batch_size, checkpoint
            )
            if calibrators is None:
                (found,) = _measured(_plan(method, fit_on), batches, chosen)
                tables.append(_tidy(found, {"method": name}))
                continue
            plan = _plan_of_maps(method, calibrators, share, cross_fit, fit_on)
            for calibrator, found in zip(plan.names, _measured(plan, batches, chosen), strict=True):
                tables.append(_tidy(found, {"method": name, "calibrator": calibrator}))
    table = pd.concat(tables, ignore_index=True)
    table.attrs = {"seed": seed, "splits": len(splits), "judgebayes": __version__}
    return table


class _Measured(NamedTuple):
    """Numbers of each split."""

    status: Int[np.ndarray, " split"]
    metrics: dict[str, Float[np.ndarray, " split"]]


def _measured(
    plan: Plan, batches: list[OverSplits], metrics: Mapping[str, Metric]
) -> list[_Measured]:
    """Return what a sweep has to keep: far less than the answers."""

    def one(over: OverSplits) -> Float[np.ndarray, "map column split"]:
        def make() -> dict[str, np.ndarray]:
            rows = [
                [np.asarray(found.status, float), *measure(found, metrics).values()]
                for found in map(over.trimmed, plan.run(over))
            ]
            return {"values": np.array(rows, float)}

        if over.folder is None:
            return make()["values"]
        # Ours by their names, which this package's source defines.
        told = [(n, None if METRICS.get(n) is metric else metric) for n, metric in metrics.items()]
        return kept_part(over.folder, over.name(plan, *told), make)["values"]

    joined = np.concatenate([one(over) for over in batches], axis=2)
    return [
        _Measured(status.astype(np.int32), dict(zip(metrics, values, strict=True)))
        for status, *values in joined
    ]


def _tidy(found: _Measured, names: Mapping[str, str]) -> pd.DataFrame:
    parts = [
        pd.DataFrame(
            {
                **names,
                "split": np.arange(len(found.status)),
                "metric": metric,
                "value": values,
                "status": found.status,
            }
        )
        for metric, values in found.metrics.items()
    ]
    return pd.concat(parts, ignore_index=True)


def _plan(method: Aggregator, fit_on: FitOn) -> Plan:
    if isinstance(method, Calibrated):  # its map is compiled once, for all aggregators
        maps = {"": method.calibrator}
        return _plan_of_maps(method.aggregator, maps, method.share, method.cross_fit, fit_on)

    def run(over: OverSplits) -> list[Evaluation]:
        if not is_jax(method):
            data = (over.votes, over.labels, *over.splits, over.loss)
            return [evaluated_by_loop(method, *data, fit_on, over.n_items)]
        args = (method, over.votes, over.labels, over.loss, over.weight, over.splits)
        return [over.run(_evaluate_all, args, fit_on=fit_on, at_once=over.at_once)]

    return Plan(run, ("",), method, fit_on)


def _plan_of_maps(
    method: Aggregator,
    calibrators: Mapping[str, Calibrator],
    share: Scalar | None,
    cross_fit: int | None,
    fit_on: FitOn,
) -> Plan:
    def run(over: OverSplits) -> list[Evaluation]:
        stage = over.run(
            _answer_all,
            (method, share, over.votes, over.labels, over.weight, over.splits),
            cross_fit=cross_fit,
            fit_on=fit_on,
            at_once=over.at_once,
        )
        # Maps go side by side also behind a method that has its splits in turns.
        at_once = over.at_once if over.at_once > 1 else len(stage.status)

        def mapped(calibrator: Calibrator) -> Evaluation:
            args = (calibrator, stage, over.labels, over.loss, over.splits)
            return over.run(_map_all, args, at_once=at_once)

        return [mapped(calibrator) for calibrator in calibrators.values()]

    made_of = (method, share, tuple(calibrators.values()))
    return Plan(run, tuple(calibrators), made_of, (fit_on, cross_fit))


def _answers(plan: Plan, batches: "list[OverSplits]") -> dict[str, Evaluation]:
    """Return the answers on all splits, batch by batch, or what is kept of them."""

    def kept_answers(over: OverSplits, folder: Path) -> list[Evaluation]:
        def make() -> dict[str, np.ndarray]:
            return {
                f"{place} {field}": np.asarray(getattr(found, field))
                for place, found in enumerate(map(over.gathered, plan.run(over)))
                for field in ANSWERS
            }

        arrays = kept_part(folder, over.name(plan, ANSWERS), make)
        items = np.asarray(over.splits[1])[: over.n_splits]
        labels = np.where(items >= 0, np.asarray(over.labels)[np.maximum(items, 0)], MISSING)
        found = [
            Evaluation(items, labels, *(arrays[f"{place} {field}"] for field in ANSWERS))
            for place in range(len(plan.names))
        ]
        return found if over.mesh is not None else jax.device_put(found)

    def answers(over: OverSplits) -> list[Evaluation]:
        if over.folder is not None:
            return kept_answers(over, over.folder)
        return [over.gathered(found) for found in plan.run(over)]

    def joined(*parts: Array | np.ndarray) -> Array | np.ndarray:
        host = isinstance(parts[0], np.ndarray)
        return np.concatenate(parts) if host else jnp.concatenate(parts)

    first, *rest = map(answers, batches)
    found = [jax.tree.map(joined, *f) for f in zip(first, *rest, strict=True)] if rest else first
    return dict(zip(plan.names, found, strict=True))


@partial(jax.jit, static_argnames=("fit_on", "at_once", "mesh"))
def _evaluate_all(
    method: Aggregator,
    votes: Votes,
    labels: Int[Array, " item"],
    loss: Float[Array, "action class"],
    weight: Float[Array, " item"] | None,
    splits: "SplitArrays",
    fit_on: FitOn,
    at_once: int,
    mesh: Mesh | None,
) -> Evaluation:
    """Evaluate a method on every split."""

    def one(shared: Pytree, split: SplitArrays) -> Evaluation:
        method, votes, labels, loss, weight = shared
        calibration, evaluation, key = split
        return evaluate(method, votes, labels, calibration, evaluation, loss, key, fit_on, weight)

    return each_split(one, (method, votes, labels, loss, weight), splits, at_once, mesh)


@partial(jax.jit, static_argnames=("cross_fit", "fit_on", "at_once", "mesh"))
def _answer_all(
    method: Aggregator,
    share: Scalar | None,
    votes: Votes,
    labels: Int[Array, " item"],
    weight: Float[Array, " item"] | None,
    splits: "SplitArrays",
    cross_fit: int | None,
    fit_on: FitOn,
    at_once: int,
    mesh: Mesh | None,
) -> Stage:
    """Fit an aggregator on every split, for the calibrators behind it."""

    def one(shared: Pytree, split: SplitArrays) -> Stage:
        method, share, votes, labels, weight = shared
        return aggregate_split(method, share, cross_fit, votes, labels, *split, fit_on, weight)

    return each_split(one, (method, share, votes, labels, weight), splits, at_once, mesh)


@partial(jax.jit, static_argnames=("at_once", "mesh"))
def _map_all(
    calibrator: Calibrator,
    stage: Stage,
    labels: Int[Array, " item"],
    loss: Float[Array, "action class"],
    splits: "SplitArrays",
    at_once: int,
    mesh: Mesh | None,
) -> Evaluation:
    """Fit a calibrator on every split: one program, whatever aggregator stands before it."""

    def one(shared: Pytree, split: Pytree) -> Evaluation:
        calibrator, labels, loss = shared
        stage, (calibration, evaluation, _) = split
        return map_split(calibrator, stage, labels, calibration, evaluation, loss)

    return each_split(one, (calibrator, labels, loss), (stage, splits), at_once, mesh)
