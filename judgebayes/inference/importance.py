"""Posterior draws by weighing draws from the prior: slow to converge, but nothing to get stuck in."""

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpyro
from jaxtyping import Array, Float, Int, PRNGKeyArray
from numpyro.infer.util import log_density

from judgebayes.inference.numpyro_lock import alone
from judgebayes.inference.problem import Problem, Result, Sites
from judgebayes.inference.status import Status, when

__all__ = ["PriorImportance", "systematic"]

LEAST_ESS = 100.0


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PriorImportance:
    r"""Draw parameters from the prior, and keep them by their likelihood.

    .. math:: \theta_m \sim \pi, \quad w_m \propto \prod_i p_{\theta_m}(y_i | x_i)^{w_i},
              \quad \mathrm{ESS} = 1 / \sum_m w_m^2

    For models of few parameters and few labels, where the weights do not fall to a handful of draws:
    `status` is UNMIXED where the effective sample size is below 100. No mode is missed, and under
    `vmap` over item weights the draws and what the model says under each are shared by all
    posteriors, so that hundreds of them cost little more than one.

    Parameters
    ----------
    draws
        From the prior.
    kept
        How many are returned: resampled in proportion to their weights, at even spacing.
    """

    draws: int = field(default=2**15, metadata={"static": True})
    kept: int = field(default=1000, metadata={"static": True})

    @alone
    def solve(self, problem: Problem, key: PRNGKeyArray) -> Result:
        """Return the kept draws; their `objective` is minus the log marginal likelihood."""

        def drawn(key: PRNGKeyArray) -> Sites:
            seeded = numpyro.handlers.seed(problem.prior, key)
            trace = numpyro.handlers.trace(seeded).get_trace()
            return {name: trace[name]["value"] for name in problem.latent}

        def log_likelihood(sites: Sites) -> Float[Array, ""]:
            joint, prior = (
                log_density(m, (), {}, sites)[0] for m in (problem.joint, problem.prior)
            )
            return joint - prior

        sites = jax.vmap(drawn)(jax.random.split(key, self.draws))
        found = jax.vmap(log_likelihood)(sites)
        weight = jax.nn.softmax(jnp.where(jnp.isfinite(found), found, -jnp.inf))
        ess = 1 / (weight**2).sum()
        chosen = systematic(weight, self.kept)
        evidence = jax.nn.logsumexp(found) - jnp.log(self.draws)
        return Result(
            draws=jax.tree.map(lambda x: x[chosen], sites),
            status=jnp.maximum(
                when(ess < LEAST_ESS, Status.UNMIXED),
                when(~jnp.isfinite(evidence), Status.NONFINITE),
            ),
            objective=-evidence,
            projected_gradient=jnp.asarray(jnp.nan),
            chains=None,
        )


def systematic(weight: Float[Array, " draw"], kept: int) -> Int[Array, " kept"]:
    """Return draws in proportion to their weights: those at even steps of the cumulated weight."""
    steps = (jnp.arange(kept) + 0.5) / kept
    return jnp.searchsorted(jnp.cumsum(weight), steps).clip(0, weight.shape[0] - 1)
