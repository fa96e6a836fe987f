"""Evaluation over repeated splits: one split is a pure function, a sweep runs many at once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from judgebayes import scores
from judgebayes.aggregate.base import Aggregator
from judgebayes.arrays import AnyArray
from judgebayes.decide import absolute_loss, bayes_action
from judgebayes.errors import JudgeBayesError
from judgebayes.float64 import in_float64
from judgebayes.inference.nuts import NUTS
from judgebayes.splits import Splits
from judgebayes.votes.array import MISSING, Votes

__all__ = ["METRICS", "Evaluation", "FitOn", "evaluate", "evaluate_splits", "sweep"]

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
    weight = jnp.ones(labels.shape, float) if weight is None else weight
    here = jnp.maximum(calibration, 0)
    if fit_on == "calibration":
        fitted = method.fit(
            votes.take(here),
            labels[here],
            weight=jnp.where(calibration >= 0, weight[here], 0.0),
            key=key,
        )
    else:
        inside = jnp.zeros(labels.shape, bool).at[here].max(calibration >= 0)
        known = jnp.where(inside, labels, MISSING)
        fitted = method.fit(votes, known, weight=weight, key=key)
    there = jnp.maximum(evaluation, 0)
    log_probs = fitted(votes.take(there))
    return Evaluation(
        items=evaluation,
        labels=jnp.where(evaluation >= 0, labels[there], MISSING),
        log_probs=log_probs,
        decisions=bayes_action(log_probs, loss),
        status=fitted.status,
    )


@partial(jax.jit, static_argnames=("fit_on", "at_once"))
def _evaluate_all(
    method: Aggregator,
    votes: Votes,
    labels: Int[Array, " item"],
    calibration: Int[Array, "split calibration"],
    evaluation: Int[Array, "split evaluation"],
    loss: Float[Array, "action class"],
    keys: Key[Array, " split"],
    weight: Float[Array, " item"],
    fit_on: FitOn,
    at_once: int,
) -> Evaluation:
    def one(
        split: tuple[Int[Array, " calibration"], Int[Array, " evaluation"], PRNGKeyArray],
    ) -> Evaluation:
        cal, ev, key = split
        return evaluate(method, votes, labels, cal, ev, loss, key, fit_on, weight)

    found: Evaluation = jax.lax.map(one, (calibration, evaluation, keys), batch_size=at_once)
    return found


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

    Raises
    ------
    JudgeBayesError
        If `fit_on` is neither of the two, or a split points at an item that does not exist.
    """
    if fit_on not in ("calibration", "all"):
        raise JudgeBayesError(f"fit_on={fit_on!r}; right would be 'calibration' or 'all'.")
    highest = max(int(splits.calibration.max()), int(splits.evaluation.max()))
    if highest >= votes.n_items:
        raise JudgeBayesError(
            f"The splits speak of item {highest}, but there are {votes.n_items} items."
        )
    n_items = _roomy(votes.n_items)
    extra = n_items - votes.n_items
    return _evaluate_all(
        method,
        votes.padded(n_items),
        jnp.pad(jnp.asarray(labels), (0, extra), constant_values=MISSING),
        _widened(splits.calibration),
        _widened(splits.evaluation),
        jnp.asarray(absolute_loss(votes.n_classes) if loss is None else loss),
        jax.random.split(jax.random.key(seed), len(splits)),
        jnp.pad(jnp.ones(votes.n_items), (0, extra)),
        fit_on,
        _splits_at_once(method, len(splits)),
    )


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
    loss: Float[np.ndarray, "action class"] | None = None,
    metrics: Sequence[str] | Mapping[str, Metric] = ("mae", "accuracy"),
    seed: int = 0,
) -> pd.DataFrame:
    """Run methods on splits and return a tidy table: a row per method, split and metric.

    Parameters are those of `evaluate_splits`; `methods` are named aggregators, `metrics` names
    from `METRICS` or functions of an `Evaluation` of your own.
    """
    rows = []
    for name, method in methods.items():
        found = evaluate_splits(method, votes, labels, splits, fit_on=fit_on, loss=loss, seed=seed)
        for metric, values in measure(found, metrics).items():
            rows.append(
                pd.DataFrame(
                    {
                        "method": name,
                        "split": np.arange(len(splits)),
                        "metric": metric,
                        "value": values,
                        "status": np.asarray(found.status),
                    }
                )
            )
    return pd.concat(rows, ignore_index=True)
