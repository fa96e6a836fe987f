"""The results of a method on a split, or on many, and their metrics.

**One fit at a time**, outside of the program of all splits: long fits, and methods that are no JAX code.
A sweep usually fits many splits in one vectorised program. For a long fit that has two costs: the
program takes many seconds to compile, and then again for the single fit to all labels; and every split
waits for the one that needs the most steps. On a CPU, where one fit keeps a core busy, such splits are
therefore fitted one by one. The items are padded to the number of all labels, so that the fit to all of
them is the same program.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from judgebayes.aggregators.base import cost_of
from judgebayes.aggregators.wrapped import Calibrated
from judgebayes.arrays import AnyArray, ItemInts, Key, Labels, LogProbs, Weights
from judgebayes.compiled.backend import on_accelerator, on_cpu
from judgebayes.compiled.float64 import in_float64, inside
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fit import Fitted, Method
from judgebayes.inference.nuts import NUTS
from judgebayes.inference.status import summary
from judgebayes.measures import scores
from judgebayes.votes.array import MISSING, Votes

SUM_TOLERANCE = 1e-6
LONG_FIT = 3e6
"""The operations from which a fit takes much longer than its call."""


def check_answers(log_probs: AnyArray, votes: Votes, name: str) -> None:
    """Refuse answers that are not the log-probabilities of every item's classes, whatever made them.

    Raises
    ------
    JudgeBayesError
        If they have another shape, are not numbers, or their exponentials do not sum to one.
    """
    predicted, expected = np.asarray(log_probs, float), (votes.n_items, votes.n_classes)
    if predicted.shape != expected:
        raise JudgeBayesError(
            f"{name} returns an array of shape {predicted.shape}; expected the log-probabilities "
            f"of {expected[0]} items and {expected[1]} classes."
        )
    with np.errstate(over="ignore"):
        total = np.exp(predicted).sum(1)
    wrong = ~(np.abs(total - 1) < SUM_TOLERANCE)
    if wrong.any():
        item = int(np.argmax(wrong))
        raise JudgeBayesError(
            f"{name} returns {predicted[item]} for item {item}. The exponentials of "
            f"log-probabilities sum to 1, but these sum to {total[item]:g}."
        )


def predict_checked(fitted: Any, votes: Votes) -> LogProbs:
    """Return the log-probabilities of every item's classes from a fit, after checks.

    Raises
    ------
    JudgeBayesError
        As `check_answers`.
    """
    predicted = np.asarray(fitted(votes), float)
    check_answers(predicted, votes, type(fitted).__name__)
    return jnp.asarray(predicted)


def is_jax(method: Any) -> bool:
    """Tell whether a method or a fit is a pytree, usable in compiled code."""
    return not jax.tree_util.all_leaves([method])


def layers(method: Method) -> list[Any]:
    """Return a method and those inside it, around which it is (a map, a panel), the innermost last."""
    inner = getattr(method, "aggregator", None)
    return [method] if inner is None else [method, *layers(inner)]


def is_sampled(method: Method) -> bool:
    """Tell whether a method, or the one inside it, is fitted by draws."""
    return isinstance(getattr(layers(method)[-1], "inference", None), NUTS)


def is_sequential(method: Method) -> bool:
    """Tell whether splits are fitted sequentially, as each already runs many panels or chains.

    Many chains fill an accelerator only together.
    """
    curators = [getattr(each, "curator", None) for each in layers(method)]
    searches = any(hasattr(curator, "criterion") for curator in curators)
    return searches or (is_sampled(method) and not on_accelerator())


def is_long(method: Method, votes: Votes, items: int) -> bool:
    """Tell whether a fit to this many items is long, by the method's own cost, and runs on a CPU."""
    # The folds of a map's cross-fitting depend on the number of items, with padding.
    declared = any(hasattr(each, "cost") for each in layers(method))
    if not declared or isinstance(method, Calibrated) or is_sequential(method):
        return False
    return cost_of(method, items, votes).operations >= LONG_FIT and not on_accelerator()


def bucket_size(size: int) -> int:
    """Return the size rounded up to 8, 12, 16, 24, 32, 48, ..., for few shapes and compilations."""
    bucket = 8
    while bucket < size:
        bucket = bucket * 3 // 2 if bucket & (bucket - 1) == 0 else bucket * 4 // 3
    return bucket


def fit_one(method: Method, votes: Votes, labels: ItemInts, key: Key, n_items: int = 0) -> Fitted:
    """Return one fit, compiled unless the method is no JAX code.

    Items without votes and of weight 0 are added up to `n_items`, and up to a `bucket_size`, so that
    fits to about as many items are one program.
    """
    if not is_jax(method):
        return method.fit(votes, labels, key=key)
    rows = bucket_size(max(n_items, len(labels)))
    rest = rows - len(labels)
    padded = np.pad(labels, (0, rest), constant_values=MISSING)
    weight = np.pad(np.ones(len(labels)), (0, rest))
    fit = on_cpu(_fit) if is_sampled(method) else _fit
    return fit(method, votes.padded(rows), padded, weight, key)


@jax.jit
def _fit(method: Method, votes: Votes, labels: Labels, weight: Weights, key: Key) -> Fitted:
    return method.fit(votes, labels, weight=weight, key=key)


def predict(fitted: Fitted, votes: Votes) -> LogProbs:
    """Return the answers of a fit: by compiled code if it is JAX code, else checked."""
    return _predict(fitted, votes) if is_jax(fitted) else predict_checked(fitted, votes)


@jax.jit
def _predict(fitted: Fitted, votes: Votes) -> LogProbs:
    return fitted(votes)


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


def scores_of(
    evaluation: Evaluation, metrics: tuple[Metric, ...]
) -> tuple[Int[AnyArray, ""], Float[Array, " metric"]]:
    """Return the status and the metrics of one split."""
    return evaluation.status, jnp.stack([jnp.asarray(each(evaluation), float) for each in metrics])


@in_float64
def measure(
    evaluation: Evaluation, metrics: Sequence[str] | Mapping[str, Metric]
) -> dict[str, Float[np.ndarray, " split"]]:
    """Return metrics of every split, by name."""
    chosen = metrics_named(metrics)
    _, values = score_all(evaluation, tuple(chosen.values()))
    return dict(zip(chosen, np.asarray(values).T, strict=True))


@partial(jax.jit, static_argnames="metrics")
def score_all(
    evaluation: Evaluation, metrics: tuple[Metric, ...]
) -> tuple[Int[AnyArray, " split"], Float[Array, "split metric"]]:
    """Return the status and metrics of every split."""
    return jax.vmap(partial(scores_of, metrics=metrics))(evaluation)


def metrics_named(metrics: Sequence[str] | Mapping[str, Metric]) -> dict[str, Metric]:
    """Return metrics by their names, or as they are given.

    Raises
    ------
    JudgeBayesError
        If a metric is unknown.
    """
    if isinstance(metrics, Mapping):
        return dict(metrics)
    for name in metrics:
        if name not in METRICS:
            raise JudgeBayesError(
                f"There is no metric {name!r}; choose one of: {', '.join(METRICS)}."
            )
    return {name: METRICS[name] for name in metrics}
