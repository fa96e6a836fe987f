"""Draws from the normal at the posterior's mode."""

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int

from judgebayes.arrays import Key
from judgebayes.inference.point import MAP
from judgebayes.inference.problem import Problem, Result, log_density, numpyro_lock
from judgebayes.inference.status import Status, when

LEAST_ESS = 100.0


def systematic(weight: Float[Array, " draw"], kept: int) -> Int[Array, " kept"]:
    """Return indices of draws in proportion to their weights, by systematic resampling."""
    steps = (jnp.arange(kept) + 0.5) / kept
    return jnp.searchsorted(jnp.cumsum(weight), steps).clip(0, weight.shape[0] - 1)


LEAST_CURVATURE = 1e-10
FREEDOM = 5.0
"""Degrees of freedom of weighted draws."""
AT_ONCE = 128
"""Draws whose density is computed side by side: more would not fit into a cache."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class NormalAtMode:
    r"""Draw from the Laplace approximation of the posterior.

    .. math:: \theta \sim \mathrm{Normal}(\hat\theta, H^{-1}), \qquad
              H = -\nabla^2 \log \pi(\hat\theta | \text{data})

    For models whose parameters are unbounded and whose posterior is nearly normal: thousands of times
    faster than `NUTS`, with which the approximation can be checked. `status` is that of the mode, and
    DEGENERATE where the density is not concave there.

    Where few data leave the posterior skewed, or at the boundary of its support, use `weighted`: the
    proposals come from Student's t with 5 degrees of freedom at the mode, which is wider than the
    normal; they are weighted by the ratio of the posterior density to theirs (0 outside the support) and
    resampled systematically. `status` is then UNMIXED where the effective sample size is below 100.
    """

    draws: int = field(default=1000, metadata={"static": True})
    starts: int = field(default=1, metadata={"static": True})
    max_steps: int = field(default=200, metadata={"static": True})
    weighted: bool = field(default=False, metadata={"static": True})

    @numpyro_lock
    def solve(self, problem: Problem, key: Key) -> Result:
        """Return draws around the mode."""
        mode = MAP(starts=self.starts, max_steps=self.max_steps).solve(problem, key)
        low, high, _, _, unravel = problem.box()
        centre = ravel_pytree(jax.tree.map(lambda a: a[0], mode.draws))[0]

        def density(x: Float[Array, " parameter"]) -> Float[Array, ""]:
            return log_density(problem.joint, unravel(x))

        curvature, axes = jnp.linalg.eigh(-jax.hessian(density)(centre))
        # The symmetric root: it does not depend on the signs and the order of the eigenvectors.
        spread = axes / jnp.sqrt(jnp.maximum(curvature, LEAST_CURVATURE)) @ axes.T
        status = jnp.maximum(mode.status, when(curvature[0] <= 0, Status.DEGENERATE))
        size, freedom = (self.draws, len(centre)), FREEDOM / 2
        if not self.weighted:
            samples = centre + jax.random.normal(key, size) @ spread
            return Result(jax.vmap(unravel)(samples), status, mode.details)
        normal, gamma = jax.random.split(key)
        squared = 2 * jax.random.gamma(gamma, freedom, size[:1]) / FREEDOM
        t = jax.random.normal(normal, size) / jnp.sqrt(squared)[:, None]
        proposed = centre + t @ spread
        inside = ((proposed >= low) & (proposed <= high)).all(1)
        log_proposal = -(freedom + len(centre) / 2) * jnp.log1p((t**2).sum(1) / FREEDOM)
        log_weight = jax.lax.map(density, proposed, batch_size=AT_ONCE) - log_proposal
        weight = jax.nn.softmax(jnp.where(inside & jnp.isfinite(log_weight), log_weight, -jnp.inf))
        status = jnp.maximum(status, when(1 / (weight**2).sum() < LEAST_ESS, Status.UNMIXED))
        samples = proposed[systematic(weight, self.draws)]
        return Result(jax.vmap(unravel)(samples), status, mode.details)
