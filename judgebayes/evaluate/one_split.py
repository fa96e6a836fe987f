"""Evaluation on one split: fit, predict, decide and compute metrics."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt

from judgebayes.aggregators.base import Aggregator, ByAgreement, training
from judgebayes.aggregators.wrapped import first_stage
from judgebayes.arrays import AnyArray, ItemCodes, Scalar
from judgebayes.calibrators.calibrator import Calibrator
from judgebayes.compiled.float64 import in_float64, inside
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fast.agreement import EXACT, Agreement, agreement_of_array
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


Scored = Evaluation | tuple[Int[AnyArray, "*split"], Float[AnyArray, "*split metric"]]
"""The results of splits: all of them, or only their status and metrics."""


def scored(evaluation: Evaluation, metrics: tuple[Metric, ...] | None) -> Scored:
    """Return all results of a split; with metrics, only what leaves the device."""
    return evaluation if metrics is None else _scores(evaluation, metrics)


def _scores(
    evaluation: Evaluation, metrics: tuple[Metric, ...]
) -> tuple[Int[AnyArray, ""], Float[Array, " metric"]]:
    return evaluation.status, jnp.stack([jnp.asarray(each(evaluation), float) for each in metrics])


class Items(NamedTuple):
    """The items of a cell: padded arrays, the same for all of its splits; of several, stacked."""

    votes: Votes
    labels: Int[AnyArray, "*cell item"]
    weight: Bool[AnyArray, "*cell item"] | Float[AnyArray, "*cell item"]
    """False for padding; or the items' weights."""


class Split(NamedTuple):
    """One split of a cell; of several, stacked. Indices of -1 are padding."""

    calibration: Int[AnyArray, "*split calibration"]
    evaluation: Int[AnyArray, "*split evaluation"]
    key: UInt[AnyArray, "*split word"]
    """The data of a random key."""


def evaluate(
    fit_on: FitOn,
    metrics: tuple[Metric, ...] | None,
    shared: tuple[Aggregator, Float[Array, "action class"]],
    items: Items,
    split: Split,
) -> Scored:
    """Fit a method on the calibration part of one split and predict its evaluation part, for a loss."""
    method, loss = shared
    if isinstance(method, ByAgreement) and fit_on == "calibration":
        fitted: Fitted = method.from_agreement(_agreement(items, split))
    else:
        data = _training_data(items, split, fit_on)
        fitted = method.fit(**data, key=jax.random.wrap_key_data(jnp.asarray(split.key)))
    index = jnp.maximum(split.evaluation, 0)
    # If most items are evaluated, predict all from the shared votes, without copies per split.
    mostly_evaluated = 2 * len(index) >= len(items.labels)
    log_probs = fitted(items.votes)[index] if mostly_evaluated else fitted(items.votes.take(index))
    return scored(evaluation_of(log_probs, fitted.status, items.labels, split, loss), metrics)


def _agreement(items: Items, split: Split) -> Agreement:
    """Return how often each judge agrees with the labels of the calibration items.

    A sum over items is a matrix product of the same votes with the counts of every split.
    """
    votes, labels, weight = items.votes, jnp.asarray(items.labels), jnp.asarray(items.weight)
    exact = weight.dtype == bool and len(split.calibration) * votes.n_samples < EXACT
    count = jnp.zeros(labels.shape, jnp.float32 if exact else float)
    count = count.at[jnp.maximum(split.calibration, 0)].add(split.calibration >= 0) * weight
    counted = agreement_of_array(votes.index, labels, count)
    return Agreement(*counted, labels, count.astype(float), votes.n_classes)


def _training_data(items: Items, split: Split, fit_on: FitOn) -> dict[str, Any]:
    """Return the votes, labels and weights for the fit on a split."""
    votes, labels, weight = items.votes, items.labels, jnp.asarray(items.weight, float)
    index, used = jnp.maximum(split.calibration, 0), split.calibration >= 0
    if fit_on == "all":
        known = jnp.zeros(labels.shape, bool).at[index].max(used)
        return {"votes": votes, "labels": jnp.where(known, labels, MISSING), "weight": weight}
    return {
        "votes": votes.take(index),
        "labels": labels[index],
        "weight": jnp.where(used, weight[index], 0.0),
    }


def evaluation_of(
    log_probs: Float[AnyArray, "*split evaluation class"],
    status: Int[AnyArray, "*split"],
    labels: Int[AnyArray, " item"],
    split: Split,
    loss: Float[AnyArray, "action class"],
) -> Evaluation:
    """Return the results from the answers of one split, or of several splits of a cell."""
    items = split.evaluation
    return Evaluation(
        items=items,
        labels=jnp.where(items >= 0, jnp.asarray(labels)[jnp.maximum(items, 0)], MISSING),
        log_probs=log_probs,
        decisions=_bayes_action(log_probs, loss),
        status=status,
    )


class _Output(NamedTuple):
    """An aggregator's output on a split: the training data and the input of calibrators."""

    log_probs: Float[Array, "*split calibration class"]
    weight: Float[Array, "*split calibration"]
    raw: Float[Array, "*split evaluation class"]
    status: Int[Array, "*split"]


def aggregate(
    fit_on: FitOn,
    cross_fit: int | None,
    shared: tuple[Aggregator, Scalar | None],
    items: Items,
    split: Split,
) -> _Output:
    """Fit an aggregator once on one split, and predict only the items that calibrators need."""
    method, share = shared
    index, evaluation = jnp.maximum(split.calibration, 0), jnp.maximum(split.evaluation, 0)
    inside = split.calibration >= 0
    both_steps = share is None and cross_fit is None  # all labels are used in both
    if both_steps and isinstance(method, ByAgreement) and fit_on == "calibration":
        fitted: Fitted = method.from_agreement(_agreement(items, split))
        answers = fitted(items.votes)
        weight = jnp.where(inside, items.weight[index], 0.0)
        return _Output(answers[index], weight, answers[evaluation], fitted.status)
    data = training(
        **_training_data(items, split, fit_on),
        key=jax.random.wrap_key_data(jnp.asarray(split.key)),
        labelled_only=False,
    )
    fitted, log_probs, weight = first_stage(method, data, share, cross_fit)
    if fit_on == "all":  # maps learn from the calibration items only
        log_probs, weight = log_probs[index], jnp.where(inside, weight[index], 0.0)
    raw = fitted(items.votes.take(evaluation))
    return _Output(log_probs, weight, raw, fitted.status)


def calibrate(
    metrics: tuple[Metric, ...] | None,
    shared: tuple[Calibrator, Float[Array, "action class"]],
    labels: ItemCodes,
    of_split: tuple[_Output, Split],
) -> Scored:
    """Fit a calibrator to an aggregator's output on one split, and evaluate it, for a loss."""
    (calibrator, loss), (output, split) = shared, of_split
    inside = split.calibration >= 0
    known = jnp.where(inside, labels[jnp.maximum(split.calibration, 0)], MISSING)
    mapped = calibrator.fit(output.log_probs, known, weight=output.weight)
    status = worst(output.status, mapped.status)
    return scored(evaluation_of(mapped(output.raw), status, labels, split, loss), metrics)


@in_float64
def measure(
    evaluation: Evaluation, metrics: Sequence[str] | Mapping[str, Metric]
) -> dict[str, Float[np.ndarray, " split"]]:
    """Return metrics of every split, by name."""
    chosen = dict(metrics) if isinstance(metrics, Mapping) else metrics_named(metrics)
    _, values = score_all(evaluation, tuple(chosen.values()))
    return dict(zip(chosen, np.asarray(values).T, strict=True))


@partial(jax.jit, static_argnames="metrics")
def score_all(
    evaluation: Evaluation, metrics: tuple[Metric, ...]
) -> tuple[Int[AnyArray, " split"], Float[Array, "split metric"]]:
    """Return the status and metrics of every split."""
    return jax.vmap(partial(_scores, metrics=metrics))(evaluation)


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
