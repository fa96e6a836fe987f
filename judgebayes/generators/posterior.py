"""The posterior of each generator's share of valid items, and grids of the spreads it depends on."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from judgebayes.arrays import Key, Scalar
from judgebayes.inference.status import Status, when, worst


class Posterior(ABC):
    """The posterior of each generator's share of valid items: of NumPy's or of JAX's arrays."""

    status: Any
    """The status of the fit, a `Status` as a number."""

    def quantile(self, level: float) -> Any:
        """Return a quantile of each generator's share: of its draws, if it has no form of its own."""
        return np.quantile(np.asarray(self.sample()), level, axis=0)

    @abstractmethod
    def sample(self, n_draws: int = 4000, key: Key | None = None) -> Any:
        """Return joint draws (draw, generator); errors that generators share cancel in differences."""

    def estimate(self) -> Any:
        """Return the posterior medians."""
        return self.quantile(0.5)

    def interval(self, level: float = 0.9) -> tuple[Any, Any]:
        """Return the ends of the central intervals."""
        return self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)


def overall_precision(of: Any, g: Array) -> Array:
    """Return the share of valid items among all, with the probability g for the unlabelled ones.

    `of` has the numbers `valid`, `invalid` and `unlabelled` of each generator; g is (..., generator).
    """
    total = of.valid + of.invalid + of.unlabelled
    share = (of.valid + of.unlabelled * g) / jnp.where(total > 0, total, 1.0)
    return jnp.where(total > 0, share, g)


def spread_grid(
    priors: Sequence[tuple[Scalar, Scalar]], points: Sequence[int], span: float
) -> tuple[list[Array], Array]:
    """Return spreads at the points of a grid, by normal priors of their logs, and the log-density there.

    The grid reaches `span` standard deviations to either side of each prior's location.
    """
    each = [np.linspace(-span, span, n) for n in points]
    z = np.stack([a.ravel() for a in np.meshgrid(*each, indexing="ij")])
    spreads = [
        jnp.exp(location + scale * row) for (location, scale), row in zip(priors, z, strict=True)
    ]
    return spreads, -0.5 * jnp.asarray((z**2).sum(0))


def grid_status(mean: Array, covariance: Array, unfinished: Array) -> Int[Array, ""]:
    """Return the status of a mixture of normals, each found by a search that may be unfinished."""
    finite = jnp.isfinite(mean).all() & jnp.isfinite(covariance).all()
    return worst(when(~finite, Status.NONFINITE), when(unfinished, Status.MAX_STEPS))
