"""Evaluation over repeated splits, vectorised; a sweep returns a tidy table."""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from itertools import product
from typing import TypeVar

import jax
import joblib
import numpy as np
import pandas as pd
from jaxtyping import Float

from judgebayes import __version__
from judgebayes.aggregators.wrapped import Calibrated
from judgebayes.arrays import Labels
from judgebayes.errors import JudgeBayesError
from judgebayes.evaluate.engine import Cell, Engine, Pytree
from judgebayes.evaluate.one_split import Evaluation, FitOn, Metric, metrics_named
from judgebayes.evaluate.splits import Splits
from judgebayes.inference.fit import Method
from judgebayes.progress import Progress, followed, shown
from judgebayes.votes.array import Votes

T = TypeVar("T")
THREADS = 4
"""The largest number of methods to fit at the same time, because each needs memory."""


def evaluate_splits(
    method: Method,
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
        processes (`jax.distributed`), each of which then makes this call and gets all results.

    Raises
    ------
    JudgeBayesError
        If `fit_on` is neither of the two, or a split contains an item that does not exist.
    """
    (by_map,) = Engine([Cell(votes, labels, splits)], loss, seed, devices)(method, fit_on)
    return by_map[""]


def methods_at_once() -> int:
    """Return how many methods are fitted at a time: one per core, up to four."""
    return min(os.cpu_count() or 1, THREADS)


def evaluate_methods(
    methods: Mapping[str, Method],
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

    The parameters are those of `evaluate_splits`; `methods` and `fit_on` go by name.
    """
    engine = Engine([Cell(votes, labels, splits)], loss, seed)

    def one(name: str) -> Evaluation:
        (by_map,) = engine(methods[name], fit_on[name], progress=progress, name=name)
        return by_map[""]

    what = f"methods held out on {len(splits.calibration)} splits"
    # Threads let one method compile while another runs; more than there are cores only compete.
    with ThreadPoolExecutor(methods_at_once()) as pool:
        evaluations = pool.map(one, methods)
        return dict(zip(followed(methods, what, progress), evaluations, strict=True))


def with_each_map(
    method: Method,
    calibrators: Mapping[str, Method],
    share: float | None = 0.7,
    cross_fit: int | None = None,
) -> dict[str, Calibrated]:
    """Return the method with each calibrator after it, whose fits the engine shares on every split."""
    return {
        name: Calibrated(method, calibrator, share, cross_fit)
        for name, calibrator in calibrators.items()
    }


def sweep(
    methods: Mapping[str, Method],
    votes: Votes | Mapping[str, Votes],
    labels: Labels | Mapping[str, Labels],
    splits: Splits | Mapping[str, Splits],
    *,
    fit_on: FitOn,
    calibrators: Mapping[str, Method] | None = None,
    share: float | None = 0.7,
    cross_fit: int | None = None,
    loss: Float[np.ndarray, "action class"] | None = None,
    metrics: Sequence[str] | Mapping[str, Metric] = ("mae", "accuracy"),
    seed: int = 0,
    devices: Sequence[jax.Device] | None = None,
    n_jobs: int | None = None,
    progress: bool = False,
) -> pd.DataFrame:
    """Run methods on splits and return a tidy table: a row per method, split and metric.

    With `calibrators`, there is a row per method, calibrator, split and metric, and a column
    `calibrator`; each aggregator is fitted once per split for all calibrators, with `share` and
    `cross_fit` as in `Calibrated`. Several data sets (cells) are votes, labels and splits by name, and
    there is a column `cell`: cells of about the same size, with the same judges, samples and classes,
    run in one program, and each has the answers of a sweep of its own. The other parameters are those
    of `evaluate_splits`; `methods` are aggregators by name; `metrics` are names from `METRICS`, or your
    own functions of an `Evaluation` by name. `progress` shows a progress bar over methods with the
    remaining time, in a terminal or a notebook. The table's `attrs` contain the seed, number of splits
    and version.

    `n_jobs` fits each method to each cell as a task of its own, and is joblib's: -1 is one process per
    core, and None is what `joblib.parallel_config` says, which also chooses the back end (processes of
    this machine, Dask, Ray). If that is one job, such as a cluster of one thread, there are no tasks but
    one program, because joblib does not tell whether it was asked for; `n_jobs=1` asks for tasks. The
    table is the same for every number of jobs and back end, to the last bit, on processors of one kind;
    it differs from that of one program by rounding.

    Raises
    ------
    JudgeBayesError
        As `evaluate_splits`, if the cells of votes, labels and splits have other names, or with both
        `devices` and tasks: with any `n_jobs`, also 1, or several jobs of `joblib.parallel_config`.

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
    chosen = metrics_named(metrics)
    cells = _cells(votes, labels, splits)
    with_maps: Mapping[str, Method | Mapping[str, Calibrated]] = methods
    if calibrators:
        with_maps = {
            name: with_each_map(method, calibrators, share, cross_fit)
            for name, method in methods.items()
        }
    in_turn = n_jobs is None and joblib.effective_n_jobs(None) == 1
    if devices is not None and not in_turn:
        raise JudgeBayesError(
            "Devices belong to one program: leave out `devices`, or `n_jobs` and joblib's "
            "`parallel_config`."
        )
    engine = Engine([*cells.values()], loss, seed, devices, tuple(chosen.values()))
    with shown() if progress else nullcontext() as report:
        followed_methods = followed(with_maps.values(), "methods", report)
        if in_turn:
            by_maps = [each for method in followed_methods for each in engine(method, fit_on)]
        else:
            by_maps = joblib.Parallel(n_jobs)(
                joblib.delayed(_of_cell)(method, cell, fit_on, loss, seed, metrics)
                for method in followed_methods
                for cell in engine.cells
            )
    names, results = [], []
    for (name, cell), by_map in zip(product(methods, cells), by_maps, strict=True):
        for calibrator, (status, values) in by_map.items():
            names += [(cell, name, calibrator, metric) for metric in chosen]
            results += [(value, status) for value in values.T]
    table = _tidy(names, results)
    given = {"cell": isinstance(votes, Mapping), "calibrator": calibrators is not None}
    table = table.drop(columns=[column for column, there in given.items() if not there])
    n_splits = max(len(cell.splits) for cell in cells.values())
    table.attrs = {"seed": seed, "splits": n_splits, "judgebayes": __version__}
    return table


def _of_cell(
    method: Method | Mapping[str, Calibrated],
    cell: Cell,
    fit_on: FitOn,
    loss: Float[np.ndarray, "action class"] | None,
    seed: int,
    metrics: Sequence[str] | Mapping[str, Metric],
) -> dict[str, Pytree]:
    """Return the results of a cell by calibrator: a task.

    Metrics arrive by name: a function that is sent is a new one each time, and is compiled each time.
    """
    engine = Engine([cell], loss, seed, None, tuple(metrics_named(metrics).values()))
    (by_map,) = engine(method, fit_on)
    return by_map


def _tidy(
    names: Sequence[tuple[str, str, str, str]], results: Sequence[tuple[np.ndarray, np.ndarray]]
) -> pd.DataFrame:
    """Return a row per split from each cell's, method's, calibrator's and metric's values and status."""
    lengths = [len(value) for value, _ in results]
    cell, method, calibrator, metric = (
        np.repeat(np.array(each, object), lengths) for each in zip(*names, strict=True)
    )
    value, status = (np.concatenate(each) for each in zip(*results, strict=True))
    return pd.DataFrame(
        {
            "cell": cell,
            "method": method,
            "calibrator": calibrator,
            "split": np.concatenate([np.arange(n) for n in lengths]),
            "metric": metric,
            "value": value,
            "status": status,
        }
    )


def _cells(
    votes: Votes | Mapping[str, Votes],
    labels: Labels | Mapping[str, Labels],
    splits: Splits | Mapping[str, Splits],
) -> dict[str, Cell]:
    """Return the cells by name; a single one has none.

    Raises
    ------
    JudgeBayesError
        If the three do not have the same names.
    """
    of_labels: Mapping[str, Labels] = _named(labels)
    of_votes, of_splits = _named(votes), _named(splits)
    names = [sorted(each) for each in (of_votes, of_labels, of_splits)]
    if not names[0] == names[1] == names[2]:
        raise JudgeBayesError(
            "Votes, labels and splits of several cells go by name; here the names are "
            f"{', '.join(map(str, names))}."
        )
    return {name: Cell(one, of_labels[name], of_splits[name]) for name, one in of_votes.items()}


def _named(given: T | Mapping[str, T]) -> Mapping[str, T]:
    return given if isinstance(given, Mapping) else {"": given}
