"""The identity map, the baseline for all other maps."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from judgebayes.arrays import AnyProbs, LogProbs
from judgebayes.calibrators.base import CalibrationData, Map
from judgebayes.compiled.float64 import in_float64
from judgebayes.inference.registry import in_files
from judgebayes.inference.status import Status
from judgebayes.inference.summary import summary


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Identity(Map["FittedIdentity"]):
    """Return the log-probabilities unchanged, including infinite ones."""

    def _fitted(self, data: CalibrationData) -> "FittedIdentity":  # noqa: ARG002
        return FittedIdentity(jnp.asarray(int(Status.CONVERGED)))


@in_files
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FittedIdentity:
    """The identity."""

    status: Int[Array, "*batch"]

    __repr__ = summary

    @in_float64
    def __call__(self, log_probs: AnyProbs) -> LogProbs:
        """Return the log-probabilities."""
        return jnp.asarray(log_probs, dtype=float)
