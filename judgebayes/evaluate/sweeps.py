"""Evaluation over repeated splits, vectorised; a sweep returns a tidy table."""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import jax
import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from judgebayes import __version__
from judgebayes.aggregators.base import Aggregator
from judgebayes.arrays import Labels
from judgebayes.calibrators.calibrator import Calibrator
from judgebayes.compiled.float64 import in_float64
from judgebayes.evaluate.batches import Plan, SplitBatch, split_data
from judgebayes.evaluate.one_split import Evaluation, FitOn, Metric, measure, metrics_named
from judgebayes.evaluate.plans import answers, evaluate_data, plan_of, plan_of_maps
from judgebayes.evaluate.splits import Splits
from judgebayes.progress import Progress, followed, tracked
from judgebayes.votes.array import Votes

THREADS = 4
"""The largest number of methods to fit at the same time, because each needs memory."""


@in_float64
def evaluate_splits(
    method: Aggregator,
    votes: Votes,
    labels: Labels,
    splits: Splits,
    *,
    fit_on: FitOn,
    loss: Float[np.ndarray, "action class"] | None = None,
    seed: int = 0,
    devices: Sequence[jax.Device] | None = None,
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

    Raises
    ------
    JudgeBayesError
        If `fit_on` is neither of the two, or a split contains an item that does not exist.
    """
    data = split_data(votes, labels, splits, loss, seed, devices)
    return evaluate_data(method, data, fit_on)


def methods_at_once() -> int:
    """Return how many methods are fitted at a time: one per core, up to four."""
    return min(os.cpu_count() or 1, THREADS)


def evaluate_methods(
    methods: Mapping[str, Aggregator],
    votes: Votes,
    labels: Labels,
    splits: Splits,
    *,
    fit_on: Mapping[str, FitOn],
    loss: Float[np.ndarray, "action class"] | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> dict[str, Evaluation]:
    """Evaluate several methods on the same splits, several at a time, as `evaluate_splits` does.

    The parameters are those of `evaluate_splits`; `methods` and `fit_on` go by name. The caller has
    64-bit arithmetic.
    """
    data = split_data(votes, labels, splits, loss, seed)

    def one(name: str) -> Evaluation:
        with jax.enable_x64(True):  # the setting is a thread's own
            return evaluate_data(methods[name], data, fit_on[name], progress=progress, name=name)

    what = f"methods held out on {len(splits.calibration)} splits"
    # Threads let one method compile while another runs; more than there are cores only compete.
    with ThreadPoolExecutor(methods_at_once()) as pool:
        evaluations = pool.map(one, methods)
        return dict(zip(followed(methods, what, progress), evaluations, strict=True))


@in_float64
def evaluate_calibrators(
    method: Aggregator,
    calibrators: Mapping[str, Calibrator],
    votes: Votes,
    labels: Labels,
    splits: Splits,
    *,
    fit_on: FitOn,
    share: float | None = 0.7,
    cross_fit: int | None = None,
    loss: Float[np.ndarray, "action class"] | None = None,
    seed: int = 0,
    devices: Sequence[jax.Device] | None = None,
) -> dict[str, Evaluation]:
    """Fit an aggregator once per split, and several calibrators on its output, by name.

    Each result equals that of `Calibrated(method, calibrator, share, cross_fit)`, at the cost of one
    aggregator fit. The parameters are those of `evaluate_splits` and `Calibrated`.

    Raises
    ------
    JudgeBayesError
        As `evaluate_splits`, and if the share or the number of folds is impossible.
    """
    data = split_data(votes, labels, splits, loss, seed, devices)
    plan = plan_of_maps(method, calibrators, share, cross_fit, fit_on)
    return answers(plan, data.batches(method, fit_on))


@in_float64
def sweep(
    methods: Mapping[str, Aggregator],
    votes: Votes,
    labels: Labels,
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
    progress: bool = False,
) -> pd.DataFrame:
    """Run methods on splits and return a tidy table: a row per method, split and metric.

    With `calibrators`, there is a row per method, calibrator, split and metric, and a column
    `calibrator`; each aggregator is fitted once per split for all calibrators, with `share` and
    `cross_fit` as in `Calibrated`. The other parameters are those of `evaluate_splits`;
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
    data = split_data(votes, labels, splits, loss, seed, devices)
    tables = []
    with tracked(methods.items(), "methods", progress) as named_methods:
        for name, method in named_methods:
            batches = data.batches(method, fit_on)
            if calibrators is None:
                (scores,) = _score_splits(plan_of(method, fit_on), batches, chosen)
                tables.append(_tidy(scores, {"method": name}))
                continue
            plan = plan_of_maps(method, calibrators, share, cross_fit, fit_on)
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
        rows = [
            [np.asarray(evaluation.status, float), *measure(evaluation, metrics).values()]
            for evaluation in map(batch.without_padding, plan.run(batch))
        ]
        return np.array(rows, float)

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
