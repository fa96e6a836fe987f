"""The results of a method on a split, or on many, and their metrics."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from judgebayes.arrays import AnyArray
from judgebayes.compiled.float64 import in_float64, inside
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.status import summary
from judgebayes.measures import scores

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
