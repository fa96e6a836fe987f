"""Posterior draws by importance sampling from the prior: slow to converge, but it misses no mode."""

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from judgebayes.arrays import Key
from judgebayes.inference.laplace import LEAST_ESS, systematic
from judgebayes.inference.problem import Problem, Result, Sites, log_density, numpyro_lock
from judgebayes.inference.status import Status, when


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PriorImportance:
    r"""Draw parameters from the prior and resample them in proportion to their likelihood.

    .. math:: \theta_m \sim \pi, \quad w_m \propto \prod_i p_{\theta_m}(y_i | x_i)^{w_i},
              \quad \mathrm{ESS} = 1 / \sum_m w_m^2

    For models with few parameters and few labels, where the weights do not concentrate on a handful of
    draws: `status` is UNMIXED where the effective sample size is below 100. No mode is missed. Under
    `vmap` over item weights, all posteriors share the draws and the predictions of the model, so that
    hundreds of posteriors cost little more than one.

    Parameters
    ----------
    draws
        Number of draws from the prior.
    kept
        Number of draws returned, by systematic resampling.
    """

    draws: int = field(default=2**15, metadata={"static": True})
    kept: int = field(default=1000, metadata={"static": True})

    @numpyro_lock
    def solve(self, problem: Problem, key: Key) -> Result:
        """Return the resampled draws; `objective` is minus the log marginal likelihood."""

        def log_likelihood(sites: Sites) -> Float[Array, ""]:
            joint, prior = (log_density(m, sites) for m in (problem.joint, problem.prior))
            return joint - prior

        sites = jax.vmap(problem.draw_prior)(jax.random.split(key, self.draws))
        log_weight = jax.vmap(log_likelihood)(sites)
        weight = jax.nn.softmax(jnp.where(jnp.isfinite(log_weight), log_weight, -jnp.inf))
        ess = 1 / (weight**2).sum()
        chosen = systematic(weight, self.kept)
        evidence = jax.nn.logsumexp(log_weight) - jnp.log(self.draws)
        return Result(
            draws=jax.tree.map(lambda x: x[chosen], sites),
            status=jnp.maximum(
                when(ess < LEAST_ESS, Status.UNMIXED),
                when(~jnp.isfinite(evidence), Status.NONFINITE),
            ),
            details={"objective": -evidence},
        )
