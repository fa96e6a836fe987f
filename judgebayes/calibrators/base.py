"""What every calibrator has in common: log-probabilities and labels in, a map out."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from judgebayes.arrays import AnyArray, Scalar
from judgebayes.compiled.jit_inline import fused
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fast.log_softmax import log_softmax_by_class
from judgebayes.measures.scores import known

__all__ = ["CLIP", "CalibrationData", "Calibrator", "FittedCalibrator", "calibration_data"]

CLIP = 1e-6
"""Probabilities below this count as this much: a certain answer that is wrong costs 13.8 nats."""
NO_POSTERIOR = (
    "{} has no posterior, and its probabilities no interval; Temperature, Platt and Beta have one: "
    "right would be BayesianMap(Platt())."
)


@runtime_checkable
class FittedCalibrator(Protocol):
    """A fitted map: log-probabilities of the classes -> better ones."""

    @property
    def status(self) -> Int[Array, "*batch"]:
        """How the fit ended, a `Status` as a number."""
        ...

    def __call__(self, log_probs: Float[AnyArray, "item class"]) -> Float[Array, "item class"]:
        """Return the calibrated log-probabilities of each item."""
        ...


@runtime_checkable
class Calibrator(Protocol):
    """Hyper-parameters of a map; `fit` returns a fitted one and changes nothing.

    `labels` are class indices, -1 where unknown; a `weight` of 0 equals a dropped item. Items
    without a label or with weight 0 may hold anything, NaN too.
    """

    def fit(
        self,
        log_probs: Float[AnyArray, "item class"],
        labels: Int[AnyArray, " item"],
        *,
        weight: Float[AnyArray, " item"] | None = None,
    ) -> FittedCalibrator:
        """Learn the map from an aggregator's answers and the labels."""
        ...


class CalibrationData(NamedTuple):
    """What a map is learnt from, checked and as arrays; items that do not count weigh 0."""

    log_probs: Float[Array, "item class"]
    labels: Int[Array, " item"]
    weight: Float[Array, " item"]


def calibration_data(log_probs: Any, labels: Any, weight: Any) -> CalibrationData:
    """Return log-probabilities, labels and weights as arrays, checked against each other.

    Raises
    ------
    JudgeBayesError
        If lengths differ, a label is not a class index, a weight is negative, or the
        log-probabilities of a labelled item are NaN or above 0.
    """
    log_probs, labels = jnp.asarray(log_probs, dtype=float), jnp.asarray(labels)
    n_items, n_classes = log_probs.shape
    weight = jnp.ones(n_items) if weight is None else jnp.asarray(weight, dtype=float)
    for name, array in (("labels", labels), ("weight", weight)):
        if array.shape != (n_items,):
            raise JudgeBayesError(
                f"The {name} have the shape {array.shape}; there are log-probabilities of "
                f"{n_items} items, so right would be ({n_items},)."
            )
    if not jnp.issubdtype(labels.dtype, jnp.integer):
        raise JudgeBayesError(
            f"The labels are of type {labels.dtype}; right would be class indices (integers), -1 "
            "where unknown."
        )
    if not any(isinstance(x, jax.core.Tracer) for x in (log_probs, labels, weight)):
        _check(np.asarray(log_probs), np.asarray(labels), np.asarray(weight), n_classes)
    return _used_only(log_probs, labels, weight)


@fused()
def _used_only(
    log_probs: Float[Array, "item class"],
    labels: Int[Array, " item"],
    weight: Float[Array, " item"],
) -> CalibrationData:
    """Return the data with weight 0 and all classes alike where the label is unknown."""
    used = known(labels, weight)
    n_classes = log_probs.shape[1]
    uniform = jnp.full(n_classes, -jnp.log(n_classes))
    return CalibrationData(jnp.where(used[:, None] > 0, log_probs, uniform), labels, used)


def require(name: str, value: Any, holds: bool | Array, right: str) -> None:
    """Check a hyper-parameter where its value is known, outside compiled code.

    Raises
    ------
    JudgeBayesError
        If it does not hold.
    """
    if isinstance(value, (int, float)) and not holds:
        raise JudgeBayesError(f"{name}={value}; right would be {right}.")


def _check(log_probs: np.ndarray, labels: np.ndarray, weight: np.ndarray, n_classes: int) -> None:
    if not (weight >= 0).all():
        raise JudgeBayesError("A weight is negative or NaN; weights are numbers from 0.")
    if (labels >= n_classes).any():
        raise JudgeBayesError(
            f"A label is {labels.max()}; with {n_classes} classes the highest index is "
            f"{n_classes - 1}."
        )
    bad = ((labels >= 0) & (weight > 0))[:, None] & ~(log_probs <= 1e-6)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise JudgeBayesError(
            f"Item {row}, class {column} has the log-probability {log_probs[row, column]:g}; right "
            "would be a number up to 0, or -inf."
        )


def clipped(log_probs: Float[Array, "item class"], clip: Scalar) -> Float[Array, "item class"]:
    r"""Return log-probabilities with every probability at least `clip`, summing to 1 again.

    Of two classes, this is clipping to [clip, 1 - clip]. Certain answers become finite, and answers
    within the limits stay as they are.
    """
    return jnp.stack(clipped_by_class(log_probs, clip), axis=1)


@fused()
def clipped_by_class(
    log_probs: Float[Array, "item class"], clip: Scalar
) -> list[Float[Array, " item"]]:
    """Return the same class by class (`log_softmax.log_softmax_by_class` says why)."""
    given = list(log_probs.T)
    if len(given) == 2:  # no exponential: what compilers take for cheap they take for each use anew
        return [jnp.clip(own, jnp.log(clip), jnp.log1p(-clip)) for own in given]
    raised = [jnp.maximum(own, jnp.log(clip)) for own in given]
    above = [r > own for r, own in zip(raised, given, strict=True)]
    changed = jnp.stack(above).any(0)
    again = log_softmax_by_class(raised)
    return [jnp.where(changed, new, own) for new, own in zip(again, given, strict=True)]
