"""A sequence of calibration maps: P2's steps 2 and 3."""

from dataclasses import dataclass
from typing import Any

import jax

from judgebayes.arrays import LogProbs
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fit import Fit, JaxMethod, Method, Training, status_of
from judgebayes.inference.status import worst


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Chain(JaxMethod):
    """Fit each map to the output of the previous one, all on the same labelled items.

    `Chain((Platt(), Beta()))` is P2's pipeline of a residual bias correction and a distribution
    calibration (sections 2.2 and 2.3). A fit's `parts` are those of the maps, by their number.
    """

    calibrators: tuple[Method, ...]

    def _fitted(self, data: Training) -> Fit:
        """Return the fitted maps.

        Raises
        ------
        JudgeBayesError
            If there is no map, or a map raises an error for its input.
        """
        if not self.calibrators:
            raise JudgeBayesError(
                "A chain needs at least one calibrator; Identity changes nothing."
            )
        parts, log_probs = {}, data.given
        for number, calibrator in enumerate(self.calibrators):
            fitted = calibrator.fit(log_probs, data.labels, weight=data.weight)
            parts[str(number)] = fitted
            log_probs = fitted(log_probs)
        return Fit(self, {}, worst(*(status_of(fitted) for fitted in parts.values())), parts=parts)

    def answer(self, fit: Fit, given: Any) -> LogProbs:
        """Return the calibrated log-probabilities of each item."""
        for fitted in fit.parts.values():
            given = fitted(given)
        return given
