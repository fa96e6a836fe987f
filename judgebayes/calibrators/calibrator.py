"""The common interface of calibrators: log-probabilities and labels in, a map out."""

from abc import abstractmethod
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from judgebayes.arrays import AnyProbs, ItemCodes, ItemValues, Labels, LogProbs, Scalar, Weights
from judgebayes.compiled.float64 import in_float64
from judgebayes.compiled.jit_inline import jit_inline
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fast.log_softmax import log_softmax_by_class
from judgebayes.inference.fit import Answering, Fit, Fitted, checked
from judgebayes.measures.scores import labelled_weight

CLIP = 1e-300
"""The least probability that enters a map: no floor in practice, but the logarithm of 0 becomes finite.

A larger value makes extreme answers equal, and models of independent judges give extreme answers: 1e-6
costs a fifth of the NLL on panels of 20 to 150 judges (P2, table11)."""


@runtime_checkable
class Calibrator(Protocol):
    """Hyper-parameters of a map; `fit` returns a fitted map and does not change this object.

    `labels` are class indices, -1 where unknown; a `weight` of 0 equals a dropped item. Items
    without a label or with weight 0 are ignored, even if they contain NaN.
    """

    def fit(self, log_probs: AnyProbs, labels: Labels, *, weight: Weights | None = None) -> Fitted:
        """Fit the map to an aggregator's log-probabilities and the labels."""
        ...


class CalibrationData(NamedTuple):
    """The training data of a map as checked arrays; ignored items have weight 0."""

    log_probs: LogProbs
    labels: ItemCodes
    weight: ItemValues


def calibration_data(log_probs: Any, labels: Any, weight: Any) -> CalibrationData:
    """Return log-probabilities, labels and weights as arrays, checked against each other.

    Raises
    ------
    JudgeBayesError
        If lengths differ, a label is not a class index, a weight is negative, or the
        log-probabilities of a labelled item are NaN or above 0.
    """
    log_probs = jnp.asarray(log_probs, dtype=float)
    labels, weight = checked(labels, weight, *log_probs.shape)
    if not any(isinstance(x, jax.core.Tracer) for x in (log_probs, labels, weight)):
        _check(np.asarray(log_probs), np.asarray(labels), np.asarray(weight))
    return _used_only(log_probs, labels, weight)


class Map(Answering):
    """The base of the library's maps: `fit` checks answers and labels, and `_fitted` fits to them."""

    @in_float64
    def fit(self, log_probs: AnyProbs, labels: Labels, *, weight: Weights | None = None) -> Fit:
        """Return the map fitted to the labelled items.

        Parameters
        ----------
        log_probs
            The aggregator's log-probabilities.
        labels
            Class indices, -1 where unknown.
        weight
            Non-negative item weights; 0 equals a dropped item.

        Raises
        ------
        JudgeBayesError
            If lengths differ, a label is not a class index, a value is NaN, or a setting is impossible.
        """
        return self._fitted(calibration_data(log_probs, labels, weight))

    @abstractmethod
    def _fitted(self, data: CalibrationData) -> Fit:
        """Return the map fitted to checked data."""


@jit_inline()
def _used_only(log_probs: LogProbs, labels: ItemCodes, weight: ItemValues) -> CalibrationData:
    """Return the data with weight 0 and uniform probabilities where the label is unknown."""
    used = labelled_weight(labels, weight)
    n_classes = log_probs.shape[1]
    uniform = jnp.full(n_classes, -jnp.log(n_classes))
    return CalibrationData(jnp.where(used[:, None] > 0, log_probs, uniform), labels, used)


def require(name: str, value: Any, holds: bool | Array, requirement: str) -> None:
    """Check a hyper-parameter that is a plain number, outside compiled code.

    Raises
    ------
    JudgeBayesError
        If the condition `holds` is false; the message states the `requirement`.
    """
    if isinstance(value, (int, float)) and not holds:
        raise JudgeBayesError(f"{name}={value}; it must be {requirement}.")


def _check(log_probs: np.ndarray, labels: np.ndarray, weight: np.ndarray) -> None:
    bad = ((labels >= 0) & (weight > 0))[:, None] & ~(log_probs <= 1e-6)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise JudgeBayesError(
            f"Item {row}, class {column} has the log-probability {log_probs[row, column]:g}; it must "
            "be at most 0; -inf is allowed."
        )


def clipped(log_probs: LogProbs, clip: Scalar) -> LogProbs:
    r"""Return log-probabilities with every probability at least `clip`, renormalised.

    For two classes, this is clipping to [clip, 1 - clip]. Infinite log-probabilities become finite, and
    probabilities within the limits are unchanged.
    """
    return jnp.stack(clipped_by_class(log_probs, clip), axis=1)


@jit_inline()
def clipped_by_class(log_probs: LogProbs, clip: Scalar) -> list[ItemValues]:
    """Return `clipped` class by class (see `log_softmax.log_softmax_by_class`)."""
    log_prob_of_class = list(log_probs.T)
    if len(log_prob_of_class) == 2:  # no exponential, which compilers would recompute for each use
        return [jnp.clip(own, jnp.log(clip), jnp.log1p(-clip)) for own in log_prob_of_class]
    raised = [jnp.maximum(own, jnp.log(clip)) for own in log_prob_of_class]
    is_raised = [r > own for r, own in zip(raised, log_prob_of_class, strict=True)]
    changed = jnp.stack(is_raised).any(0)
    normalised = log_softmax_by_class(raised)
    return [
        jnp.where(changed, new, own) for new, own in zip(normalised, log_prob_of_class, strict=True)
    ]
