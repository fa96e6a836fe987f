"""What a method of `judgebayes precision` returns: estimates, and intervals and draws if it has any."""

from dataclasses import dataclass
from typing import Protocol, TypeGuard, runtime_checkable

import jax
import numpy as np
from jaxtyping import Array, Float, Int
from scipy.special import ndtri

from judgebayes.arrays import AnyArray, Key
from judgebayes.generators.clusters import normal_draws

Shares = Float[AnyArray, " generator"]


@runtime_checkable
class PrecisionFit(Protocol):
    """An estimate of each generator's share of valid items; NaN where the method has none."""

    @property
    def status(self) -> Int[AnyArray, "*batch"]:
        """How the fit ended."""

    def estimate(self) -> Shares:
        """Return the estimates."""


@runtime_checkable
class Posterior(PrecisionFit, Protocol):
    """A fit with intervals, and with joint draws that compare generators."""

    def interval(self, level: float = 0.9) -> tuple[Shares, Shares]:
        """Return the ends of the intervals."""

    def draws(
        self, n_draws: int = 4000, key: Key | None = None
    ) -> Float[AnyArray, "draw generator"]:
        """Return joint draws."""


def has_draws(fit: PrecisionFit) -> TypeGuard[Posterior]:
    """Return whether a fit has intervals and draws."""
    return isinstance(fit, Posterior)


@dataclass(frozen=True)
class Points:
    """Point estimates without intervals."""

    values: Float[np.ndarray, " generator"]
    status: Int[Array, ""]
    raw: bool = False
    """Whether they are the mean votes, without any correction."""

    def estimate(self) -> Float[np.ndarray, " generator"]:
        """Return the values."""
        return self.values


@dataclass(frozen=True)
class Normal:
    """Normal estimates, each from its generator's own items; NaN where a generator has none."""

    values: Float[np.ndarray, " generator"]
    covariance: Float[np.ndarray, "generator generator"]
    """NaN where a generator has no interval; not 0 between generators with the same groups of items."""
    status: Int[Array, ""]

    def estimate(self) -> Float[np.ndarray, " generator"]:
        """Return the values."""
        return self.values

    def interval(
        self, level: float = 0.9
    ) -> tuple[Float[np.ndarray, " generator"], Float[np.ndarray, " generator"]]:
        """Return the normal intervals, which are not clipped to [0, 1]."""
        half = float(ndtri((1 + level) / 2)) * np.sqrt(np.diag(self.covariance))
        return self.values - half, self.values + half

    def draws(
        self, n_draws: int = 4000, key: Key | None = None
    ) -> Float[np.ndarray, "draw generator"]:
        """Return joint draws."""
        key = jax.random.key(0) if key is None else key
        known = np.flatnonzero(np.isfinite(np.diag(self.covariance)))
        draws = np.full((n_draws, len(self.values)), np.nan)
        draws[:, known] = self.values[known] + normal_draws(
            self.covariance[np.ix_(known, known)], n_draws, key
        )
        return draws
