"""Evaluation on one split: fit, predict, decide and compute metrics."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeGuard

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from judgebayes.aggregators.base import Aggregator, ByAgreement, training
from judgebayes.aggregators.wrapped import first_stage
from judgebayes.arrays import AnyArray, ItemCodes, Key, LogProbs, Scalar, Weights
from judgebayes.calibrators.calibrator import Calibrator
from judgebayes.compiled.float64 import in_float64, inside
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fast.agreement import (
    DIGIT_LIMIT,
    Agreement,
    agreement_of_array,
    packed_agreement,
)
from judgebayes.inference.fit import Fitted
from judgebayes.inference.status import summary, worst
from judgebayes.measures import scores
from judgebayes.measures.decide import bayes_action
from judgebayes.votes.array import MISSING, Votes

FitOn = Literal["calibration", "all"]
"""The votes that a fit uses: those of the calibration items, or also of the evaluation items."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Evaluation:
    """The results of a method on the evaluation items of a split, with the labels."""

    items: Int[AnyArray, "*split item"]
    """Indices of the items; -1 pads shorter parts and is ignored."""
    labels: Int[AnyArray, "*split item"]
    log_probs: Float[AnyArray, "*split item class"]
    decisions: Int[AnyArray, "*split item"]
    status: Int[AnyArray, "*split"]

    __repr__ = summary

    def losses(self, loss: Float[np.ndarray, "action class"]) -> Float[np.ndarray, "*split item"]:
        """Return the losses of the decisions, NaN where the label is unknown."""
        labels = np.asarray(self.labels)
        each = np.asarray(loss)[np.asarray(self.decisions), np.maximum(labels, 0)]
        return np.where(labels >= 0, each, np.nan)

    def nll(self) -> Float[np.ndarray, "*split item"]:
        """Return minus the log-probability of each item's label, NaN where it is unknown."""
        labels, log_probs = np.asarray(self.labels), np.asarray(self.log_probs)
        own = np.take_along_axis(log_probs, np.maximum(labels, 0)[..., None], -1)[..., 0]
        return np.where(labels >= 0, -own, np.nan)


Metric = Callable[[Evaluation], Float[Array, ""]]

_mae, _accuracy = inside(scores.mae), inside(scores.accuracy)
_mean_score = inside(scores.mean_score)
_ece, _ece_debiased = inside(scores.ece), inside(scores.ece_debiased)
_bayes_action = inside(bayes_action)

METRICS: dict[str, Metric] = {
    "mae": lambda e: _mae(e.decisions, e.labels),
    "accuracy": lambda e: _accuracy(e.decisions, e.labels),
    "nll": lambda e: _mean_score(scores.nll, e.log_probs, e.labels),
    "brier": lambda e: _mean_score(scores.brier, e.log_probs, e.labels),
    "drps": lambda e: _mean_score(scores.drps, e.log_probs, e.labels),
    "ece": lambda e: _ece(e.log_probs, e.labels),
    "ece_debiased": lambda e: _ece_debiased(e.log_probs, e.labels),
}
"""Metrics of one split by name; `mae` and `accuracy` are of decisions, the others of probabilities."""


def evaluate(
    method: Aggregator,
    votes: Votes,
    labels: ItemCodes,
    calibration: Int[Array, " calibration"],
    evaluation: Int[Array, " evaluation"],
    loss: Float[Array, "action class"],
    key: Key,
    fit_on: FitOn,
    weight: Weights | None = None,
) -> Evaluation:
    """Fit on the calibration part of one split and predict its evaluation part.

    Indices of -1 are padding; `weight` contains the weights of all items in the fit.
    """
    if fits_from_agreement(method, votes, fit_on):
        fitted, all_items = _fit_from_agreement(method, votes, labels, calibration, weight)
        log_probs = all_items[jnp.maximum(evaluation, 0)]
    else:
        fitted = method.fit(**_training_data(votes, labels, calibration, fit_on, weight), key=key)
        evaluation_index = jnp.maximum(evaluation, 0)
        # If most items are evaluated, predict all from the shared votes, without copies per split.
        mostly_evaluated = 2 * len(evaluation) >= len(labels)
        log_probs = (
            fitted(votes)[evaluation_index]
            if mostly_evaluated
            else fitted(votes.take(evaluation_index))
        )
    return _evaluation(log_probs, fitted.status, labels, evaluation, loss)


def fits_from_agreement(method: Aggregator, votes: Votes, fit_on: FitOn) -> TypeGuard[ByAgreement]:
    """Tell whether a method can be fitted from agreement counts, with weight 0 outside a split."""
    return fit_on == "calibration" and isinstance(method, ByAgreement) and votes.n_samples == 1


def _fit_from_agreement(
    method: ByAgreement,
    votes: Votes,
    labels: ItemCodes,
    calibration: Int[Array, " calibration"],
    weight: Weights | None,
) -> tuple[Fitted, LogProbs]:
    """Return the fit and its predictions for all items, from the same votes for every split."""
    # How often each item occurs in the calibration part.
    count_dtype = jnp.float32 if len(calibration) < DIGIT_LIMIT else float
    n_occurrences = (
        jnp.zeros(labels.shape, count_dtype).at[jnp.maximum(calibration, 0)].add(calibration >= 0)
    )
    if weight is None:
        used = n_occurrences.astype(float)
        counts = packed_agreement(votes.index[..., 0], labels, n_occurrences)
    else:
        used = jnp.asarray(weight) * n_occurrences
        counts = agreement_of_array(votes.index, labels, used)
    fitted = method.from_agreement(Agreement(*counts, labels, used, votes.n_classes))
    return fitted, fitted(votes)


def _training_data(
    votes: Votes,
    labels: ItemCodes,
    calibration: Int[Array, " calibration"],
    fit_on: FitOn,
    weight: Weights | None,
) -> dict[str, Any]:
    """Return the votes, labels and weights for the fit on a split."""
    weight = jnp.ones(labels.shape, float) if weight is None else weight
    calibration_index = jnp.maximum(calibration, 0)
    if fit_on == "calibration":
        return {
            "votes": votes.take(calibration_index),
            "labels": labels[calibration_index],
            "weight": jnp.where(calibration >= 0, weight[calibration_index], 0.0),
        }
    in_calibration = jnp.zeros(labels.shape, bool).at[calibration_index].max(calibration >= 0)
    return {"votes": votes, "labels": jnp.where(in_calibration, labels, MISSING), "weight": weight}


def _evaluation(
    log_probs: Float[Array, "evaluation class"],
    status: Int[Array, ""],
    labels: ItemCodes,
    evaluation: Int[Array, " evaluation"],
    loss: Float[Array, "action class"],
) -> Evaluation:
    return Evaluation(
        items=evaluation,
        labels=jnp.where(evaluation >= 0, labels[jnp.maximum(evaluation, 0)], MISSING),
        log_probs=log_probs,
        decisions=_bayes_action(log_probs, loss),
        status=status,
    )


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class AggregatorOutput:
    """An aggregator's output on a split: the training data and the input of calibrators."""

    log_probs: Float[Array, "*split calibration class"]
    weight: Float[Array, "*split calibration"]
    raw: Float[Array, "*split evaluation class"]
    status: Int[Array, "*split"]


def aggregate_split(
    method: Aggregator,
    share: Scalar | None,
    cross_fit: int | None,
    votes: Votes,
    labels: ItemCodes,
    calibration: Int[Array, " calibration"],
    evaluation: Int[Array, " evaluation"],
    key: Key,
    fit_on: FitOn,
    weight: Weights | None,
) -> AggregatorOutput:
    """Fit the aggregator once on one split, and predict only the items that calibrators need."""
    training_data = _training_data(votes, labels, calibration, fit_on, weight)
    data = training(**training_data, key=key, labelled_only=False)
    both_steps = share is None and cross_fit is None  # all labels are used in both steps
    calibration_index, evaluation_index = jnp.maximum(calibration, 0), jnp.maximum(evaluation, 0)
    if both_steps and fits_from_agreement(method, votes, fit_on):
        fitted, answers = _fit_from_agreement(method, votes, labels, calibration, weight)
        return AggregatorOutput(
            answers[calibration_index], data.weight, answers[evaluation_index], fitted.status
        )
    first = first_stage(method, data, share, cross_fit)
    log_probs, map_weight = first.log_probs, first.weight
    if fit_on == "all":  # only the calibration items have labels
        log_probs, map_weight = (
            log_probs[calibration_index],
            jnp.where(calibration >= 0, map_weight[calibration_index], 0.0),
        )
    return AggregatorOutput(
        log_probs,
        map_weight,
        first.aggregator(votes.take(evaluation_index)),
        first.aggregator.status,
    )


def map_split(
    calibrator: Calibrator,
    output: AggregatorOutput,
    labels: ItemCodes,
    calibration: Int[Array, " calibration"],
    evaluation: Int[Array, " evaluation"],
    loss: Float[Array, "action class"],
) -> Evaluation:
    """Fit a calibrator to an aggregator's output on one split, and evaluate it."""
    calibration_labels = jnp.where(calibration >= 0, labels[jnp.maximum(calibration, 0)], MISSING)
    mapped = calibrator.fit(output.log_probs, calibration_labels, weight=output.weight)
    status = worst(output.status, mapped.status)
    return _evaluation(mapped(output.raw), status, labels, evaluation, loss)


@in_float64
def measure(
    evaluation: Evaluation, metrics: Sequence[str] | Mapping[str, Metric]
) -> dict[str, Float[np.ndarray, " split"]]:
    """Return metrics of every split, by name."""
    chosen = dict(metrics) if isinstance(metrics, Mapping) else metrics_named(metrics)
    values_of_metric = _measure_all(evaluation, tuple(chosen.values()))
    return {name: np.asarray(values) for name, values in zip(chosen, values_of_metric, strict=True)}


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
        If a metric is unknown.
    """
    for name in metrics:
        if name not in METRICS:
            raise JudgeBayesError(
                f"There is no metric {name!r}; choose one of: {', '.join(METRICS)}."
            )
    return {name: METRICS[name] for name in metrics}
