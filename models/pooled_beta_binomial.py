"""The number of correct votes on the items of several data sets: partial pooling.

Our answer to P3's prior transfer (its section 6), which averages the Beta parameters of the
components of different data sets. Such an average is not a distribution that either data set
suggests: the components have no order, (alpha, beta) = (2, 2) and (200, 200) have the same mean,
and the mean of the parameters depends on which component is called the first. Here the data sets
share one model instead. In data set g::

    logit share_g = logit_share + a_g,   centre_g = centre + b_g

with the gap between the components and their dispersions common to all, as in
`judgebayes.models.beta_binomial`. How much data sets differ is learnt: the deviations of one
parameter are Normal(0, tau^2) with tau^2 ~ InverseGamma(df / 2, df scale^2 / 2), and tau is
integrated out by hand, which leaves a multivariate Student t over the data sets, so that the
posterior has a mode and no funnel::

    (a_1 .. a_G), (b_1 .. b_G) ~ MultivariateStudentT(df, 0, scale I)      df = 4, scale = 0.7, 0.5

    logit_share ~ Normal(0, 1.5)                         the other priors as for one data set
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float, Int

from judgebayes.models.beta_binomial import (
    Parameters,
    component_log_pmf,
    score_counts,
)

__all__ = ["PooledPrior", "model", "set_parameters"]


class PooledPrior(NamedTuple):
    """Location and scale of the centres' priors, and how much data sets may differ."""

    logit_mean: tuple[float, float] = (1.0, 1.5)
    log_dispersion: tuple[float, float] = (-1.0, 1.25)
    logit_share: tuple[float, float] = (0.0, 1.5)
    differ_share: float = 0.7
    differ_centre: float = 0.5
    df: float = 4.0


def set_parameters(sites: dict[str, Array]) -> Parameters:
    """Return the components' parameters in every data set, for one draw (set, component)."""
    centre = sites["centre"] + sites["centre_by_set"]
    hard = jax.nn.sigmoid(sites["logit_share"] + sites["logit_share_by_set"])
    mean = jax.nn.sigmoid(centre[:, None] + sites["gap"] * jnp.array([-0.5, 0.5]))
    dispersion = jnp.broadcast_to(jnp.exp(sites["log_dispersion"]), mean.shape)
    return Parameters(jnp.stack([hard, 1 - hard], axis=-1), mean, dispersion)


def model(
    correct: Int[Array, " item"],
    given: Int[Array, " item"],
    member: Int[Array, " item"],
    weight: Float[Array, " item"] | None = None,
    *,
    n_sets: int,
    most: int,
    prior: PooledPrior = PooledPrior(),
) -> None:
    """Sample centres and deviations, and score every item's count under its data set.

    Parameters
    ----------
    correct, given, weight, most
        As in `judgebayes.models.beta_binomial`.
    member
        The data set of each item, 0 .. n_sets - 1.
    n_sets
        How many data sets there are.
    """
    location, scale = prior.logit_mean
    sites = {
        "centre": numpyro.sample("centre", dist.Normal(location, scale / jnp.sqrt(2.0))),
        "gap": numpyro.sample("gap", dist.HalfNormal(scale * jnp.sqrt(2.0))),
        "logit_share": numpyro.sample("logit_share", dist.Normal(*prior.logit_share)),
    }
    with numpyro.plate("component", 2):
        sites["log_dispersion"] = numpyro.sample(
            "log_dispersion", dist.Normal(*prior.log_dispersion)
        )
    for name, differ in (
        ("logit_share_by_set", prior.differ_share),
        ("centre_by_set", prior.differ_centre),
    ):
        spread = differ * jnp.eye(n_sets)
        sites[name] = numpyro.sample(
            name, dist.MultivariateStudentT(prior.df, jnp.zeros(n_sets), spread)
        )
    theta = set_parameters(sites)
    each = component_log_pmf(
        theta.mean, theta.dispersion, member, jnp.maximum(correct, 0), given, most
    )
    each += jnp.log(theta.share)[member]
    score_counts(jax.nn.logsumexp(each, axis=-1), correct, weight)
