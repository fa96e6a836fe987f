"""The number of correct votes on the items of several data sets: partial pooling.

Our answer to P3's prior transfer (its section 6), which averages the Beta parameters of the
components of different data sets. Such an average is not a distribution that either data set
suggests: the components have no order, (alpha, beta) = (2, 2) and (200, 200) have the same mean,
and the mean of the parameters depends on which component is called the first. Here the data sets
share one model instead. In data set g::

    logit share_g = logit_share + tau_1 a_g,   centre_g = centre + tau_2 b_g

with the gap between the components and their dispersions common to all, as in
`judgebayes.models.beta_binomial`. How much data sets differ is learnt, through tau; the deviations
have heavy tails, so that a data set unlike the others is let go instead of being drawn to them::

    a_g, b_g ~ StudentT(3, 0, 1)            log tau_1 ~ Normal(log 0.7, 0.5^2)
    logit_share ~ Normal(0, 1.5^2)          log tau_2 ~ Normal(log 0.5, 0.5^2)

and the other priors as for one data set. Stated by a_g and b_g and not by their products with tau,
the posterior has a mode and no funnel.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float, Int

from judgebayes.models.beta_binomial import (
    Parameters,
    component_log_pmf,
    gap_prior,
    score_counts,
)

__all__ = ["PooledPrior", "model", "ordered", "set_parameters"]


class PooledPrior(NamedTuple):
    """Location and scale of the centres' priors, and how much data sets may differ."""

    logit_mean: tuple[float, float] = (1.0, 1.5)
    log_dispersion: tuple[float, float] = (-1.0, 1.25)
    logit_share: tuple[float, float] = (0.0, 1.5)
    log_tau_share: tuple[float, float] = (math.log(0.7), 0.5)
    log_tau_centre: tuple[float, float] = (math.log(0.5), 0.5)
    df: float = 3.0


def set_parameters(sites: dict[str, Array]) -> Parameters:
    """Return the components' parameters in every data set, for one draw (set, component)."""
    centre = sites["centre"] + jnp.exp(sites["log_tau_centre"]) * sites["centre_by_set"]
    deviation = jnp.exp(sites["log_tau_share"]) * sites["share_by_set"]
    hard = jax.nn.sigmoid(sites["logit_share"] + deviation)
    mean = jax.nn.sigmoid(centre[:, None] + sites["gap"] * jnp.array([-0.5, 0.5]))
    dispersion = jnp.broadcast_to(jnp.exp(sites["log_dispersion"]), mean.shape)
    return Parameters(jnp.stack([hard, 1 - hard], axis=-1), mean, dispersion)


def ordered(sites: dict[str, Array]) -> dict[str, Array]:
    """Return one draw of the unordered components' sites with the harder component first."""
    turn = sites["gap"] < 0
    sign = jnp.where(turn, -1.0, 1.0)
    return sites | {
        "gap": jnp.abs(sites["gap"]),
        "logit_share": sign * sites["logit_share"],
        "share_by_set": sign * sites["share_by_set"],
        "log_dispersion": jnp.where(turn, sites["log_dispersion"][::-1], sites["log_dispersion"]),
    }


def model(
    correct: Int[Array, " item"],
    given: Int[Array, " item"],
    member: Int[Array, " item"],
    weight: Float[Array, " item"] | None = None,
    *,
    n_sets: int,
    most: int,
    prior: PooledPrior = PooledPrior(),
    signed: bool = False,
) -> None:
    """Sample centres and deviations, and score every item's count under its data set.

    Parameters
    ----------
    correct, given, weight, most, signed
        As in `judgebayes.models.beta_binomial`.
    member
        The data set of each item, 0 .. n_sets - 1.
    n_sets
        How many data sets there are.
    """
    location, scale = prior.logit_mean
    sites = {
        "centre": numpyro.sample("centre", dist.Normal(location, scale / jnp.sqrt(2.0))),
        "gap": numpyro.sample("gap", gap_prior(scale, signed)),
        "logit_share": numpyro.sample("logit_share", dist.Normal(*prior.logit_share)),
    }
    with numpyro.plate("component", 2):
        sites["log_dispersion"] = numpyro.sample(
            "log_dispersion", dist.Normal(*prior.log_dispersion)
        )
    for name, tau in (("share", prior.log_tau_share), ("centre", prior.log_tau_centre)):
        sites[f"log_tau_{name}"] = numpyro.sample(f"log_tau_{name}", dist.Normal(*tau))
        with numpyro.plate(f"set_{name}", n_sets):
            sites[f"{name}_by_set"] = numpyro.sample(
                f"{name}_by_set", dist.StudentT(prior.df, 0.0, 1.0)
            )
    theta = set_parameters(sites)
    each = component_log_pmf(
        theta.mean, theta.dispersion, member, jnp.maximum(correct, 0), given, most
    )
    each += jnp.log(theta.share)[member]
    score_counts(jax.nn.logsumexp(each, axis=-1), correct, weight)
