"""A sequence of calibration maps: P2's steps 2 and 3."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from judgebayes.arrays import AnyArray
from judgebayes.calibrators.calibrator import Calibrator
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fit import Fitted
from judgebayes.inference.status import summary, worst


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Chain:
    """Fit each map to the output of the previous one, all on the same labelled items.

    `Chain((Platt(), Beta()))` is P2's pipeline of a residual bias correction and a distribution
    calibration (sections 2.2 and 2.3).
    """

    calibrators: tuple[Calibrator, ...]

    @in_float64
    def fit(
        self,
        log_probs: Float[AnyArray, "item class"],
        labels: Int[AnyArray, " item"],
        *,
        weight: Float[AnyArray, " item"] | None = None,
    ) -> "FittedChain":
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
        fitted: list[Fitted] = []
        for calibrator in self.calibrators:
            fitted.append(calibrator.fit(log_probs, labels, weight=weight))
            log_probs = fitted[-1](log_probs)
        return FittedChain(tuple(fitted))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FittedChain:
    """Fitted maps, in the order in which they are applied."""

    maps: tuple[Fitted, ...]

    __repr__ = summary

    @property
    @in_float64
    def status(self) -> Int[Array, "*batch"]:
        """The worst status of the maps."""
        return worst(*(fitted.status for fitted in self.maps))

    @in_float64
    def __call__(self, log_probs: Float[AnyArray, "item class"]) -> Float[Array, "item class"]:
        """Return the calibrated log-probabilities of each item."""
        result = jnp.asarray(log_probs, dtype=float)
        for fitted in self.maps:
            result = fitted(result)
        return result
