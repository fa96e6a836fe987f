"""Draws from the normal at the posterior's mode."""

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PRNGKeyArray
from numpyro.infer.util import log_density

from judgebayes.inference.alone import alone
from judgebayes.inference.point import MAP
from judgebayes.inference.problem import Problem, Result
from judgebayes.inference.status import Status, when

__all__ = ["NormalAtMode"]

LEAST_CURVATURE = 1e-10


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class NormalAtMode:
    r"""Draw from the Laplace approximation of the posterior.

    .. math:: \theta \sim \mathrm{Normal}(\hat\theta, H^{-1}), \qquad
              H = -\nabla^2 \log \pi(\hat\theta | \text{data})

    For models whose parameters are unbounded, and whose posterior is near normal: thousands of
    times faster than `NUTS`, which tells whether it will do. Status is that of the mode,
    DEGENERATE where the density is not curved downwards there.
    """

    draws: int = field(default=1000, metadata={"static": True})
    starts: int = field(default=1, metadata={"static": True})
    max_steps: int = field(default=200, metadata={"static": True})

    @alone
    def solve(self, problem: Problem, key: PRNGKeyArray) -> Result:
        """Return draws around the mode."""
        mode = MAP(starts=self.starts, max_steps=self.max_steps).solve(problem, key)
        centre, unravel = ravel_pytree(jax.tree.map(lambda a: a[0], mode.draws))

        def density(x: Float[Array, " parameter"]) -> Float[Array, ""]:
            value: Array = log_density(problem.joint, (), {}, unravel(x))[0]
            return value

        curvature, axes = jnp.linalg.eigh(-jax.hessian(density)(centre))
        spread = axes / jnp.sqrt(jnp.maximum(curvature, LEAST_CURVATURE))
        z = jax.random.normal(key, (self.draws, len(centre)))
        return Result(
            draws=jax.vmap(unravel)(centre + z @ spread.T),
            status=jnp.maximum(mode.status, when(curvature[0] <= 0, Status.DEGENERATE)),
            objective=mode.objective,
            projected_gradient=mode.projected_gradient,
            chains=None,
        )
