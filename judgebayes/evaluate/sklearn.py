"""Calibration maps as scikit-learn classifiers, for pipelines, cross-validation and grid searches."""

from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from judgebayes.calibrators.maps import Beta
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fit import Fitted, Method

Scale = Literal["probability", "logit"]
"""The scale of predictions: probabilities, or log-odds (logits for more than two classes)."""

ROUNDING = 1e-3
"""Tolerance of the sum of a row of probabilities."""


class SklearnCalibrator(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A calibration map with the interface of a scikit-learn classifier.

    Use `fit(p, y)`, then `predict_proba(p)`. Unlike the maps themselves, it is changed by `fit`, like
    scikit-learn's estimators.

    Parameters
    ----------
    calibrator
        The map; `judgebayes.Beta()` by default. A grid search takes several maps, such as
        `{"calibrator": [Beta(penalty=1e-3), Beta(penalty=1e-2)]}`.
    scale
        The scale of X, "probability" or "logit".
    column
        The column of X with the prediction for the second of two classes, if X has other columns too;
        None if X contains only predictions.

    Attributes
    ----------
    classes_
        The classes, sorted; the columns of `predict_proba`.
    fitted_
        The fitted map of `judgebayes.calibrators`.

    Notes
    -----
    X is a vector (or one column) of predictions for the second of two classes, or a column per class, in
    the order of `classes_`.
    """

    def __init__(
        self,
        calibrator: Method | None = None,
        scale: Scale = "probability",
        column: int | None = None,
    ) -> None:
        self.calibrator = calibrator
        self.scale = scale
        self.column = column

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "SklearnCalibrator":  # noqa: N803
        """Fit the map to predictions and labels; a weight of 0 equals a dropped row.

        Raises
        ------
        ValueError
            If there are fewer than two classes, or X does not match them.
        """
        X, y = validate_data(self, self._table(X), y, dtype=np.float64)  # noqa: N806
        check_classification_targets(y)
        answers = self._answers(X)
        weight = None if sample_weight is None else _check_sample_weight(sample_weight, X)
        self.classes_, labels = np.unique(y, return_inverse=True)
        weighing = labels if weight is None else labels[weight > 0]
        if len(np.unique(weighing)) < 2:
            raise JudgeBayesError(
                "y has only one class; a calibration map needs labels of two or more."
            )
        if answers.shape[1] not in (len(self.classes_), 3 - len(self.classes_)):
            raise JudgeBayesError(
                "Only binary classification is supported with one column of X. The type of the "
                f"target is {type_of_target(y)}: X has {answers.shape[1]} column(s), y has "
                f"{len(self.classes_)} classes; pass a column per class."
            )
        log_probs = self._log_probs(answers)
        fitted: Fitted = self._map().fit(log_probs, labels, weight=weight)
        self.fitted_ = jax.tree.map(np.asarray, fitted)  # JAX would unpickle in single precision
        return self

    @in_float64
    def predict_proba(self, X: Any) -> np.ndarray:  # noqa: N803
        """Return the calibrated probabilities, a column per class.

        Raises
        ------
        ValueError
            If X has another number of columns than in `fit`.
        """
        check_is_fitted(self)
        X = validate_data(self, self._table(X), reset=False, dtype=np.float64)  # noqa: N806
        answers = self._answers(X)
        log_probs = np.asarray(self.fitted_(self._log_probs(answers)), float)
        probs = np.exp(log_probs)
        return probs / probs.sum(1, keepdims=True)

    def predict(self, X: Any) -> np.ndarray:  # noqa: N803
        """Return the most probable class of each row."""
        probs = self.predict_proba(X)
        return self.classes_[probs.argmax(1)]

    def __sklearn_tags__(self) -> Tags:
        """Declare that, with `column`, only two classes are supported and scores may be poor."""
        tags = super().__sklearn_tags__()
        if self.column is not None:
            tags.classifier_tags.multi_class = False
            tags.classifier_tags.poor_score = True
        return tags

    def _map(self) -> Method:
        return Beta() if self.calibrator is None else self.calibrator

    def _table(self, X: Any) -> Any:  # noqa: N803
        """Return a vector of predictions as a column, and other input unchanged."""
        is_vector = self.column is None and np.ndim(X) == 1
        return np.asarray(X)[:, None] if is_vector else X

    def _answers(self, X: np.ndarray) -> np.ndarray:  # noqa: N803
        """Return the columns of X with predictions."""
        if self.scale not in get_args(Scale):
            raise JudgeBayesError(f"scale={self.scale!r}; choose one of: 'probability', 'logit'.")
        if self.column is not None and not -X.shape[1] <= self.column < X.shape[1]:
            raise JudgeBayesError(f"column={self.column}, but X has {X.shape[1]} columns.")
        answers = X if self.column is None else X[:, [self.column]]
        if self.scale == "probability":
            _check_probabilities(answers)
        return answers

    @in_float64
    def _log_probs(self, answers: np.ndarray) -> np.ndarray:
        if self.scale == "logit":
            logits = (
                np.hstack([np.zeros_like(answers), answers]) if answers.shape[1] == 1 else answers
            )
            return np.asarray(log_softmax(jnp.asarray(logits)))
        probs = np.hstack([1 - answers, answers]) if answers.shape[1] == 1 else answers
        with np.errstate(divide="ignore"):
            return np.log(probs / probs.sum(1, keepdims=True))


def _check_probabilities(answers: np.ndarray) -> None:
    bad = (answers < 0) | (answers > 1)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise JudgeBayesError(
            f"Row {row}, column {column} of X is {answers[row, column]:g}, which is not a probability; "
            "for log-odds use scale='logit'."
        )
    total = answers.sum(1)
    if answers.shape[1] > 1 and (np.abs(total - 1) > ROUNDING).any():
        row = int(np.argmax(np.abs(total - 1)))
        raise JudgeBayesError(
            f"Row {row} of X sums to {total[row]:g}; probabilities of all classes sum to 1."
        )
