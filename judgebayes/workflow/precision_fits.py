"""What a method of `judgebayes precision` returns: estimates, and intervals and draws if it has any."""

from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Array, Float, Int
from scipy.special import ndtri

from judgebayes.arrays import Key
from judgebayes.generators.clusters import normal_draws
from judgebayes.generators.posterior import Posterior


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
class Normal(Posterior):
    """Normal estimates, each from its generator's own items; NaN where a generator has none."""

    values: Float[np.ndarray, " generator"]
    covariance: Float[np.ndarray, "generator generator"]
    """NaN where a generator has no interval; not 0 between generators with the same groups of items."""
    status: Int[Array, ""]

    def estimate(self) -> Float[np.ndarray, " generator"]:
        """Return the values."""
        return self.values

    def quantile(self, level: float) -> Float[np.ndarray, " generator"]:
        """Return a normal quantile of each value, which is not clipped to [0, 1]."""
        return self.values + float(ndtri(level)) * np.sqrt(np.diag(self.covariance))

    def sample(
        self, n_draws: int = 4000, key: Key | None = None
    ) -> Float[np.ndarray, "draw generator"]:
        """Return joint draws; NaN where a generator has no interval."""
        key = jax.random.key(0) if key is None else key
        known = np.flatnonzero(np.isfinite(np.diag(self.covariance)))
        draws = np.full((n_draws, len(self.values)), np.nan)
        draws[:, known] = self.values[known] + normal_draws(
            self.covariance[np.ix_(known, known)], n_draws, key
        )
        return draws


PrecisionFit = Points | Posterior
"""An estimate of each generator's share of valid items, NaN where the method has none; with intervals
and joint draws if it is a posterior."""
