"""Evaluation on one split: fit, answer, decide, and measure what came of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeGuard

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from judgebayes.aggregators.base import Aggregator, ByAgreement, FittedAggregator, training
from judgebayes.aggregators.calibrated import first_stage
from judgebayes.arrays import AnyArray, Scalar
from judgebayes.calibrators.base import Calibrator
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fast.agreement import (
    DIGIT_LIMIT,
    Agreement,
    agreement_of_array,
    packed_agreement,
)
from judgebayes.inference.status import worst
from judgebayes.inference.summary import summary
from judgebayes.measures import scores
from judgebayes.measures.decide import bayes_action
from judgebayes.votes.array import MISSING, Votes

__all__ = [
    "METRICS",
    "Evaluation",
    "FitOn",
    "Metric",
    "Stage",
    "aggregate_split",
    "evaluate",
    "map_split",
    "measure",
    "metrics_named",
]

FitOn = Literal["calibration", "all"]
"""Which votes a fit sees: those of the calibration items, or of the evaluation items too."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Evaluation:
    """What a method answered on the evaluation items of a split, beside the truth."""

    items: Int[AnyArray, "*split item"]
    """Which items these are; -1 fills up shorter parts and counts for nothing."""
    labels: Int[AnyArray, "*split item"]
    log_probs: Float[AnyArray, "*split item class"]
    decisions: Int[AnyArray, "*split item"]
    status: Int[AnyArray, "*split"]

    __repr__ = summary

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
    if _by_agreement(method, votes, fit_on):
        fitted, all_items = _from_agreement(method, votes, labels, calibration, weight)
        log_probs = all_items[jnp.maximum(evaluation, 0)]
    else:
        fitted = method.fit(**_shown(votes, labels, calibration, fit_on, weight), key=key)
        there = jnp.maximum(evaluation, 0)
        # Over many splits all items are answered from the same votes: no copies of most of them.
        most = 2 * len(evaluation) >= votes.n_items
        log_probs = fitted(votes)[there] if most else fitted(votes.take(there))
    return _answered(log_probs, fitted.status, labels, evaluation, loss)


def _by_agreement(method: Aggregator, votes: Votes, fit_on: FitOn) -> TypeGuard[ByAgreement]:
    """Tell whether a method can be fitted to all items, those outside a split with weight 0."""
    return fit_on == "calibration" and votes.n_samples == 1 and isinstance(method, ByAgreement)


def _from_agreement(
    method: ByAgreement,
    votes: Votes,
    labels: Int[Array, " item"],
    calibration: Int[Array, " calibration"],
    weight: Float[AnyArray, " item"] | None,
) -> tuple[FittedAggregator, Float[Array, "item class"]]:
    """Return the fit and its answers on all items, the same votes whatever the split."""
    # How often each item is in the part.
    counted = jnp.float32 if len(calibration) < DIGIT_LIMIT else float
    often = jnp.zeros(labels.shape, counted).at[jnp.maximum(calibration, 0)].add(calibration >= 0)
    if weight is None:
        used = often.astype(float)
        counts = packed_agreement(votes.index[..., 0], labels, often)
    else:
        used = jnp.asarray(weight) * often
        counts = agreement_of_array(votes.index, labels, used)
    fitted = method.from_agreement(Agreement(*counts, labels, used, votes.n_classes))
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


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Stage:
    """An aggregator's answers on a split: what calibrators learn from, and what they map."""

    log_probs: Float[Array, "*split calibration class"]
    weight: Float[Array, "*split calibration"]
    raw: Float[Array, "*split evaluation class"]
    status: Int[Array, "*split"]


def aggregate_split(
    method: Aggregator,
    share: Scalar | None,
    cross_fit: int | None,
    votes: Votes,
    labels: Int[Array, " item"],
    calibration: Int[Array, " calibration"],
    evaluation: Int[Array, " evaluation"],
    key: PRNGKeyArray,
    fit_on: FitOn,
    weight: Float[AnyArray, " item"] | None,
) -> Stage:
    """Fit the aggregator once on one split and answer the items that calibrators need, no others."""
    shown = _shown(votes, labels, calibration, fit_on, weight)
    data = training(**shown, key=key, labelled_only=False)
    both_steps = share is None and cross_fit is None  # all labels serve both
    here, there = jnp.maximum(calibration, 0), jnp.maximum(evaluation, 0)
    if both_steps and _by_agreement(method, votes, fit_on):
        fitted, answers = _from_agreement(method, votes, labels, calibration, weight)
        return Stage(answers[here], data.weight, answers[there], fitted.status)
    first = first_stage(method, data, share, cross_fit)
    log_probs, learnt = first.log_probs, first.weight
    if fit_on == "all":  # labels are known on the calibration items only
        log_probs, learnt = log_probs[here], jnp.where(calibration >= 0, learnt[here], 0.0)
    return Stage(log_probs, learnt, first.aggregator(votes.take(there)), first.aggregator.status)


def map_split(
    calibrator: Calibrator,
    stage: Stage,
    labels: Int[Array, " item"],
    calibration: Int[Array, " calibration"],
    evaluation: Int[Array, " evaluation"],
    loss: Float[Array, "action class"],
) -> Evaluation:
    """Fit a calibrator to an aggregator's answers on one split and evaluate it."""
    known = jnp.where(calibration >= 0, labels[jnp.maximum(calibration, 0)], MISSING)
    mapped = calibrator.fit(stage.log_probs, known, weight=stage.weight)
    status = worst(stage.status, mapped.status)
    return _answered(mapped(stage.raw), status, labels, evaluation, loss)


@in_float64
def measure(
    evaluation: Evaluation, metrics: Sequence[str] | Mapping[str, Metric]
) -> dict[str, Float[np.ndarray, " split"]]:
    """Return metrics of every split, by name."""
    chosen = dict(metrics) if isinstance(metrics, Mapping) else metrics_named(metrics)
    found = _measure_all(evaluation, tuple(chosen.values()))
    return {name: np.asarray(values) for name, values in zip(chosen, found, strict=True)}


@partial(jax.jit, static_argnames="metrics")
def _measure_all(
    evaluation: Evaluation, metrics: tuple[Metric, ...]
) -> list[Float[Array, " split"]]:
    return [jax.vmap(metric)(evaluation) for metric in metrics]


def metrics_named(metrics: Sequence[str]) -> dict[str, Metric]:
    """Return metrics by their names.

    Raises
    ------
    JudgeBayesError
        If there is none of a name.
    """
    for name in metrics:
        if name not in METRICS:
            raise JudgeBayesError(f"There is no metric {name!r}; there are {', '.join(METRICS)}.")
    return {name: METRICS[name] for name in metrics}
