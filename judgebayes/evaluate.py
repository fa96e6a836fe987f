"""Evaluation over repeated splits: one split is a pure function, a sweep runs many at once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from judgebayes import scores
from judgebayes.aggregate.base import Aggregator, FittedAggregator, training
from judgebayes.arrays import AnyArray, Scalar
from judgebayes.calibrate.base import Calibrator
from judgebayes.calibrate.pipeline import Calibrated, FirstStage, first_stage
from judgebayes.curate import Curated
from judgebayes.decide import absolute_loss, bayes_action
from judgebayes.errors import JudgeBayesError
from judgebayes.float64 import in_float64
from judgebayes.inference.nuts import NUTS
from judgebayes.inference.status import worst
from judgebayes.splits import Splits
from judgebayes.votes.array import MISSING, Votes

__all__ = [
    "METRICS",
    "Evaluation",
    "FitOn",
    "evaluate",
    "evaluate_calibrators",
    "evaluate_splits",
    "sweep",
]

SPLIT = "split"
"""The name of the mesh axis over which splits are divided."""

FitOn = Literal["calibration", "all"]
"""Which votes a fit sees: those of the calibration items, or of the evaluation items too."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Evaluation:
    """What a method answered on the evaluation items of a split, beside the truth."""

    items: Int[Array, "*split item"]
    """Which items these are; -1 fills up shorter parts and counts for nothing."""
    labels: Int[Array, "*split item"]
    log_probs: Float[Array, "*split item class"]
    decisions: Int[Array, "*split item"]
    status: Int[Array, "*split"]

    def losses(self, loss: Float[np.ndarray, "action class"]) -> Float[np.ndarray, "*split item"]:
        """Losses of the decisions, NaN where the label is unknown."""
        labels = np.asarray(self.labels)
        each = np.asarray(loss)[np.asarray(self.decisions), np.maximum(labels, 0)]
        return np.where(labels >= 0, each, np.nan)


Metric = Callable[[Evaluation], Float[Array, ""]]

METRICS: dict[str, Metric] = {
    "mae": lambda e: scores.mae(e.decisions, e.labels),
    "accuracy": lambda e: scores.accuracy(e.decisions, e.labels),
    "nll": lambda e: scores.mean_score(scores.nll, e.log_probs, e.labels),
    "brier": lambda e: scores.mean_score(scores.brier, e.log_probs, e.labels),
    "drps": lambda e: scores.mean_score(scores.drps, e.log_probs, e.labels),
    "ece": lambda e: scores.ece(e.log_probs, e.labels),
    "ece_debiased": lambda e: scores.ece_debiased(e.log_probs, e.labels),
}
"""Metrics of one split by name; `mae` and `accuracy` judge decisions, the others probabilities."""


def evaluate(
    method: Aggregator,
    votes: Votes,
    labels: Int[Array, " item"],
    calibration: Int[Array, " calibration"],
    evaluation: Int[Array, " evaluation"],
    loss: Float[Array, "action class"],
    key: PRNGKeyArray,
    fit_on: FitOn,
    weight: Float[AnyArray, " item"] | None = None,
) -> Evaluation:
    """Fit on the calibration part of one split and answer its evaluation part.

    Indices of -1 fill up a part and count for nothing; `weight` weighs all items in the fit.
    """
    if fit_on == "calibration" and _by_sums(method, votes):
        fitted, all_items = _fit_by_sums(method, votes, labels, calibration, key, weight)
        log_probs = all_items[jnp.maximum(evaluation, 0)]
    else:
        fitted = method.fit(**_shown(votes, labels, calibration, fit_on, weight), key=key)
        log_probs = fitted(votes.take(jnp.maximum(evaluation, 0)))
    return _answered(log_probs, fitted.status, labels, evaluation, loss)


def _by_sums(method: Aggregator, votes: Votes) -> bool:
    """Tell whether fit and answers are sums over the items, `by_sums` of the method's class.

    Over many splits they then are products of matrices, the same votes with many weights: far
    cheaper than a copy of each split's votes.
    """
    return getattr(method, "by_sums", False) and votes.n_samples == 1


def _fit_by_sums(
    method: Aggregator,
    votes: Votes,
    labels: Int[Array, " item"],
    calibration: Int[Array, " calibration"],
    key: PRNGKeyArray,
    weight: Float[AnyArray, " item"] | None,
) -> tuple[FittedAggregator, Float[Array, "item class"]]:
    """Fit to all items, those outside the calibration part with weight 0, and answer them all."""
    inside = jnp.zeros(labels.shape).at[jnp.maximum(calibration, 0)].add(calibration >= 0)
    fitted = method.fit(
        votes, labels, weight=inside if weight is None else weight * inside, key=key
    )
    return fitted, fitted(votes)


def _shown(
    votes: Votes,
    labels: Int[Array, " item"],
    calibration: Int[Array, " calibration"],
    fit_on: FitOn,
    weight: Float[AnyArray, " item"] | None,
) -> dict[str, Any]:
    """Return the votes, labels and weights that a fit on a split may see."""
    weight = jnp.ones(labels.shape, float) if weight is None else weight
    here = jnp.maximum(calibration, 0)
    if fit_on == "calibration":
        return {
            "votes": votes.take(here),
            "labels": labels[here],
            "weight": jnp.where(calibration >= 0, weight[here], 0.0),
        }
    inside = jnp.zeros(labels.shape, bool).at[here].max(calibration >= 0)
    return {"votes": votes, "labels": jnp.where(inside, labels, MISSING), "weight": weight}


def _answered(
    log_probs: Float[Array, "evaluation class"],
    status: Int[Array, ""],
    labels: Int[Array, " item"],
    evaluation: Int[Array, " evaluation"],
    loss: Float[Array, "action class"],
) -> Evaluation:
    return Evaluation(
        items=evaluation,
        labels=jnp.where(evaluation >= 0, labels[jnp.maximum(evaluation, 0)], MISSING),
        log_probs=log_probs,
        decisions=bayes_action(log_probs, loss),
        status=status,
    )


def _evaluate_maps(
    method: Aggregator,
    calibrators: dict[str, Calibrator],
    share: Scalar | None,
    cross_fit: int | None,
    votes: Votes,
    labels: Int[Array, " item"],
    calibration: Int[Array, " calibration"],
    evaluation: Int[Array, " evaluation"],
    loss: Float[Array, "action class"],
    key: PRNGKeyArray,
    fit_on: FitOn,
    weight: Float[AnyArray, " item"],
) -> dict[str, Evaluation]:
    """Fit the aggregator once on one split, every calibrator to its answers, and evaluate each."""
    shown = _shown(votes, labels, calibration, fit_on, weight)
    data = training(**shown, key=key, labelled_only=False)
    both_steps = share is None and cross_fit is None  # all labels serve both
    if fit_on == "calibration" and both_steps and _by_sums(method, votes):
        fitted, answers = _fit_by_sums(method, votes, labels, calibration, key, weight)
        first = FirstStage(fitted, answers[jnp.maximum(calibration, 0)], data.weight)
        raw = answers[jnp.maximum(evaluation, 0)]
    else:
        first = first_stage(method, data, share, cross_fit)
        raw = first.aggregator(votes.take(jnp.maximum(evaluation, 0)))
    found = {}
    for name, calibrator in calibrators.items():
        mapped = calibrator.fit(first.log_probs, data.labels, weight=first.weight)
        status = worst(first.aggregator.status, mapped.status)
        found[name] = _answered(mapped(raw), status, labels, evaluation, loss)
    return found


@partial(jax.jit, static_argnames=("cross_fit", "fit_on", "at_once", "mesh"))
def _evaluate_all(
    method: Aggregator,
    calibrators: dict[str, Calibrator] | None,
    share: Scalar | None,
    cross_fit: int | None,
    votes: Votes,
    labels: Int[Array, " item"],
    calibration: Int[Array, "split calibration"],
    evaluation: Int[Array, "split evaluation"],
    loss: Float[Array, "action class"],
    keys: Key[Array, " split"],
    weight: Float[Array, " item"],
    fit_on: FitOn,
    at_once: int,
    mesh: Mesh | None,
) -> Evaluation | dict[str, Evaluation]:
    """Evaluate every split; with a mesh, each device its part of them, without a word between."""

    def part(shared: _Shared, splits: _SplitArrays) -> Evaluation | dict[str, Evaluation]:
        method, calibrators, share, votes, labels, loss, weight = shared

        def one(split: _SplitArrays) -> Evaluation | dict[str, Evaluation]:
            here = (votes, labels, *split[:2], loss, split[2], fit_on, weight)
            if calibrators is None:
                return evaluate(method, *here)
            return _evaluate_maps(method, calibrators, share, cross_fit, *here)

        return jax.lax.map(one, splits, batch_size=at_once)

    shared = (method, calibrators, share, votes, labels, loss, weight)
    splits = (calibration, evaluation, keys)
    if mesh is None:
        return part(shared, splits)
    spread = PartitionSpec(SPLIT)
    return jax.shard_map(
        part, mesh=mesh, in_specs=(PartitionSpec(), spread), out_specs=spread, check_vma=False
    )(shared, splits)


_Shared = tuple[
    Aggregator,
    dict[str, Calibrator] | None,
    Scalar | None,
    Votes,
    Int[Array, " item"],
    Float[Array, "action class"],
    Float[Array, " item"],
]
_SplitArrays = tuple[Array, Array, Array]
"""Calibration items, evaluation items and key of one split, or of several."""


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
        (`jax.distributed`), each of which then makes this call and gets the whole answer.

    Raises
    ------
    JudgeBayesError
        If `fit_on` is neither of the two, or a split points at an item that does not exist.
    """
    found = _over_splits(
        method, None, None, None, votes, labels, splits, fit_on, loss, seed, devices
    )
    assert isinstance(found, Evaluation)
    return found


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
) -> dict[str, Evaluation]:
    """Fit an aggregator once per split and several calibrators behind it, by name.

    Each answer is that of `Calibrated(method, calibrator, share, cross_fit)`, at the price of one
    aggregator. Parameters are those of `evaluate_splits` and `Calibrated`.

    Raises
    ------
    JudgeBayesError
        As `evaluate_splits`, and if the share or the number of folds is impossible.
    """
    maps = dict(calibrators)
    found = _over_splits(
        method, maps, share, cross_fit, votes, labels, splits, fit_on, loss, seed, devices
    )
    assert isinstance(found, dict)
    return {name: found[name] for name in maps}


def _over_splits(
    method: Aggregator,
    calibrators: dict[str, Calibrator] | None,
    share: float | None,
    cross_fit: int | None,
    votes: Votes,
    labels: Int[AnyArray, " item"],
    splits: Splits,
    fit_on: FitOn,
    loss: Float[np.ndarray, "action class"] | None,
    seed: int,
    devices: Sequence[jax.Device] | None,
) -> Evaluation | dict[str, Evaluation]:
    if fit_on not in ("calibration", "all"):
        raise JudgeBayesError(f"fit_on={fit_on!r}; right would be 'calibration' or 'all'.")
    highest = max(int(splits.calibration.max()), int(splits.evaluation.max()))
    if highest >= votes.n_items:
        raise JudgeBayesError(
            f"The splits speak of item {highest}, but there are {votes.n_items} items."
        )
    n_items = _roomy(votes.n_items)
    extra = n_items - votes.n_items
    n_devices = 1 if devices is None else len(devices)
    each = -(-len(splits) // n_devices)
    which = np.arange(each * n_devices) % len(splits)  # the last device's part filled up
    keys = jax.random.split(jax.random.key(seed), len(splits))
    found = _evaluate_all(
        method,
        calibrators,
        share,
        cross_fit,
        votes.padded(n_items),
        jnp.pad(jnp.asarray(labels), (0, extra), constant_values=MISSING),
        _widened(splits.calibration[which]),
        _widened(splits.evaluation[which]),
        jnp.asarray(absolute_loss(votes.n_classes) if loss is None else loss),
        keys[which],
        jnp.pad(jnp.ones(votes.n_items), (0, extra)),
        fit_on,
        _splits_at_once(method, each),
        None if devices is None else Mesh(np.asarray(devices), (SPLIT,)),
    )
    return found if devices is None else _gathered(found, len(splits))


def _gathered(
    found: Evaluation | dict[str, Evaluation], splits: int
) -> Evaluation | dict[str, Evaluation]:
    """Return what the devices of all processes found as arrays of this process."""
    if jax.process_count() > 1:
        from jax.experimental.multihost_utils import process_allgather

        found = process_allgather(found, tiled=True)
    return jax.tree.map(lambda x: jnp.asarray(np.asarray(x)[:splits]), found)


def _roomy(size: int) -> int:
    """Return the next of 8, 12, 16, 24, 32, 48, ...: few shapes, so few compilations."""
    room = 8
    while room < size:
        room = room * 3 // 2 if room & (room - 1) == 0 else room * 4 // 3
    return room


def _widened(part: Int[np.ndarray, "split part"]) -> Int[Array, "split wide"]:
    extra = _roomy(part.shape[1]) - part.shape[1]
    return jnp.asarray(np.pad(part, ((0, 0), (0, extra)), constant_values=-1))


def _splits_at_once(method: Aggregator, splits: int) -> int:
    """Return how many splits to fit side by side: chains are vectorised already."""
    if isinstance(method, Curated) and hasattr(method.curator, "criterion"):
        return 1  # it tries many panels side by side
    if isinstance(method, (Calibrated, Curated)):
        return _splits_at_once(method.aggregator, splits)
    return 1 if isinstance(getattr(method, "inference", None), NUTS) else splits


@in_float64
def measure(
    evaluation: Evaluation, metrics: Sequence[str] | Mapping[str, Metric]
) -> dict[str, Float[np.ndarray, " split"]]:
    """Return metrics of every split, by name."""
    chosen = dict(metrics) if isinstance(metrics, Mapping) else _named(metrics)
    found = _measure_all(evaluation, tuple(chosen.values()))
    return {name: np.asarray(values) for name, values in zip(chosen, found, strict=True)}


@partial(jax.jit, static_argnames="metrics")
def _measure_all(
    evaluation: Evaluation, metrics: tuple[Metric, ...]
) -> list[Float[Array, " split"]]:
    return [jax.vmap(metric)(evaluation) for metric in metrics]


def _named(metrics: Sequence[str]) -> dict[str, Metric]:
    for name in metrics:
        if name not in METRICS:
            raise JudgeBayesError(f"There is no metric {name!r}; there are {', '.join(METRICS)}.")
    return {name: METRICS[name] for name in metrics}


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
) -> pd.DataFrame:
    """Run methods on splits and return a tidy table: a row per method, split and metric.

    With `calibrators`, there is a row per method, calibrator, split and metric, and a column
    `calibrator`; each aggregator is fitted once per split, as `Calibrated` says for `share` and
    `cross_fit`, and serves every calibrator. The other parameters are those of `evaluate_splits`;
    `methods` are named aggregators, `metrics` names from `METRICS` or functions of an `Evaluation`
    of your own.
    """
    tables = []
    for name, method in methods.items():
        if calibrators is None:
            found = evaluate_splits(
                method,
                votes,
                labels,
                splits,
                fit_on=fit_on,
                loss=loss,
                seed=seed,
                devices=devices,
            )
            tables.append(_tidy(found, metrics, {"method": name}))
            continue
        by_map = evaluate_calibrators(
            method,
            calibrators,
            votes,
            labels,
            splits,
            fit_on=fit_on,
            share=share,
            cross_fit=cross_fit,
            loss=loss,
            seed=seed,
            devices=devices,
        )
        for calibrator, found in by_map.items():
            tables.append(_tidy(found, metrics, {"method": name, "calibrator": calibrator}))
    return pd.concat(tables, ignore_index=True)


def _tidy(
    found: Evaluation, metrics: Sequence[str] | Mapping[str, Metric], names: Mapping[str, str]
) -> pd.DataFrame:
    status = np.asarray(found.status)
    parts = [
        pd.DataFrame(
            {
                **names,
                "split": np.arange(len(status)),
                "metric": metric,
                "value": values,
                "status": status,
            }
        )
        for metric, values in measure(found, metrics).items()
    ]
    return pd.concat(parts, ignore_index=True)
