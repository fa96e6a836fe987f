"""Evaluate methods that are not JAX code, split by split, without compilation."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from judgebayes.arrays import AnyArray, Labels, LogProbs
from judgebayes.errors import JudgeBayesError
from judgebayes.evaluate.one_split import Evaluation, FitOn
from judgebayes.inference.status import Status
from judgebayes.measures.decide import bayes_action
from judgebayes.votes.array import MISSING, Votes

SUM_TOLERANCE = 1e-6


@dataclass(frozen=True)
class PlainFit:
    """A fit that is not JAX code, with checked predictions and a status."""

    inner: Any
    status: Int[Array, ""]

    def __call__(self, votes: Votes) -> LogProbs:
        """Return the items' log-probabilities.

        Raises
        ------
        JudgeBayesError
            If they have another shape, are not numbers, or their exponentials do not sum to one.
        """
        return predict_checked(self.inner, votes)


def fit_plain(method: Any, votes: Votes, labels: Labels, key: Array) -> PlainFit:
    """Fit a method that is not JAX code; a fit without a status counts as converged."""
    inner = method.fit(votes, labels, key=key)
    return PlainFit(inner, jnp.asarray(int(getattr(inner, "status", Status.CONVERGED))))


def evaluate_by_loop(
    method: Any,
    votes: Votes,
    labels: Labels,
    calibration: Int[AnyArray, "split calibration"],
    evaluation: Int[AnyArray, "split evaluation"],
    keys: Array,
    loss: Float[AnyArray, "action class"],
    fit_on: FitOn,
    n_items: int,
) -> Evaluation:
    """Fit and evaluate every split in turn; the results have a leading split axis.

    `n_items` is the number of items without padding.
    """
    labels, rows = np.asarray(labels), []
    for calibration_items, evaluation_items, key in zip(
        np.asarray(calibration), np.asarray(evaluation), keys, strict=True
    ):
        calibration_items, fit_labels = (
            calibration_items[calibration_items >= 0],
            np.full(n_items, MISSING),
        )
        fit_labels[calibration_items] = labels[calibration_items]
        fit_items = np.arange(n_items) if fit_on == "all" else calibration_items
        fitted = fit_plain(method, votes.take(fit_items), fit_labels[fit_items], key)
        rows.append((fitted(votes.take(np.maximum(evaluation_items, 0))), fitted.status))
    log_probs, status = (jnp.asarray(np.stack(each)) for each in zip(*rows, strict=True))
    items = jnp.asarray(evaluation)
    return Evaluation(
        items=items,
        labels=jnp.where(items >= 0, jnp.asarray(labels)[jnp.maximum(items, 0)], MISSING),
        log_probs=log_probs,
        decisions=bayes_action(log_probs, jnp.asarray(loss)),
        status=status,
    )


def predict_checked(fitted: Any, votes: Votes) -> LogProbs:
    """Return the log-probabilities of every item's classes from a fit, after checks.

    Raises
    ------
    JudgeBayesError
        If they have another shape, are not numbers, or their exponentials do not sum to one.
    """
    name = type(fitted).__name__
    predicted = np.asarray(fitted(votes), float)
    expected = (votes.n_items, votes.n_classes)
    if predicted.shape != expected:
        raise JudgeBayesError(
            f"{name} returns an array of shape {predicted.shape}; expected the log-probabilities "
            f"of {expected[0]} items and {expected[1]} classes."
        )
    with np.errstate(over="ignore"):
        total = np.exp(predicted).sum(1)
    if not (np.abs(total - 1) < SUM_TOLERANCE).all():
        item = int(np.argmax(~(np.abs(total - 1) < SUM_TOLERANCE)))
        raise JudgeBayesError(
            f"{name} returns {predicted[item]} for item {item}. The exponentials of "
            f"log-probabilities sum to 1, but these sum to {total[item]:g}."
        )
    return jnp.asarray(predicted)
