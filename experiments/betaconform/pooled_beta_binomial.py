"""The number of correct votes on the items of several data sets: partial pooling.

An alternative to P3's prior transfer (its section 6), which averages the Beta parameters of the
components of different data sets. Such an average does not describe either data set: the components
have no order, (alpha, beta) = (2, 2) and (200, 200) have the same mean, and the average depends on
which component is called the first. Here the data sets share one model instead. In data set g::

    logit share_g = logit_share + tau_1 a_g,   centre_g = centre + tau_2 b_g

with the gap between the components and their dispersions common to all, as in
`judgebayes.models.beta_binomial`. The spread tau of the data sets is estimated; the deviations have
heavy tails, so that a data set unlike the others is not shrunk to them::

    a_g, b_g ~ StudentT(3, 0, 1)            log tau_1 ~ Normal(log 0.7, 0.5^2)
    logit_share ~ Normal(0, 1.5^2)          log tau_2 ~ Normal(log 0.5, 0.5^2)

and the other priors as for one data set. With a_g and b_g as parameters, instead of their products
with tau, the posterior has a mode and no funnel.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float, Int

from judgebayes.models.base import Sites, Traits
from judgebayes.models.beta_binomial import (
    CountData,
    Parameters,
    error_sizes,
    gap_prior,
    log_pmfs,
    majority_errors,
    observe_counts,
)


class PooledPrior(NamedTuple):
    """Location and scale of the centres' priors, and how much data sets may differ."""

    logit_mean: tuple[float, float] = (1.0, 1.5)
    log_dispersion: tuple[float, float] = (-1.0, 1.25)
    logit_share: tuple[float, float] = (0.0, 1.5)
    log_tau_share: tuple[float, float] = (math.log(0.7), 0.5)
    log_tau_centre: tuple[float, float] = (math.log(0.5), 0.5)
    df: float = 3.0


def set_parameters(sites: Mapping[str, Array]) -> Parameters:
    """Return the components' parameters in every data set, for one draw (set, component)."""
    centre = sites["centre"] + jnp.exp(sites["log_tau_centre"]) * sites["centre_by_set"]
    deviation = jnp.exp(sites["log_tau_share"]) * sites["share_by_set"]
    hard = jax.nn.sigmoid(sites["logit_share"] + deviation)
    mean = jax.nn.sigmoid(centre[:, None] + sites["gap"] * jnp.array([-0.5, 0.5]))
    dispersion = jnp.broadcast_to(jnp.exp(sites["log_dispersion"]), mean.shape)
    return Parameters(jnp.stack([hard, 1 - hard], axis=-1), mean, dispersion)


def in_order(sites: dict[str, Array]) -> dict[str, Array]:
    """Return one draw of the unordered components' sites with the harder component first."""
    reversed_order = sites["gap"] < 0
    sign = jnp.where(reversed_order, -1.0, 1.0)
    return sites | {
        "gap": jnp.abs(sites["gap"]),
        "logit_share": sign * sites["logit_share"],
        "share_by_set": sign * sites["share_by_set"],
        "log_dispersion": jnp.where(
            reversed_order, sites["log_dispersion"][::-1], sites["log_dispersion"]
        ),
    }


class PooledData(NamedTuple):
    """The number of votes and the data set of each item, which are given, and the correct votes."""

    correct: Int[Array, " item"]
    """-1 where the label is unknown, or there are no votes."""
    given: Int[Array, " item"]
    member: Int[Array, " item"]
    """The data set of each item, 0 .. n_sets - 1."""
    weight: Float[Array, " item"] | None = None
    """Powers to which the items' likelihoods are raised; 0 equals a dropped item."""


@dataclass(frozen=True)
class PooledBetaBinomialModel:
    """The program: centres and deviations, then the number of correct votes on each item.

    Sites: `centre`, `gap`, `logit_share`, `log_dispersion` (component), `log_tau_share`,
    `log_tau_centre`, `share_by_set` and `centre_by_set` (set); `correct` (item).
    """

    n_sets: int
    most: int
    """The largest number of votes on an item, a size."""
    prior: PooledPrior = PooledPrior()
    ordered: bool = True
    """Whether the harder component is the first; otherwise the gap may have either sign."""
    traits: ClassVar[Traits] = Traits(("correct",), "items with a count")
    dims: ClassVar[dict[str, tuple[str, ...]]] = {
        "majority_error": ("set", "votes"),
        "share": ("set", "component"),
        "mean": ("set", "component"),
        "dispersion": ("set", "component"),
    }

    def __call__(self, data: PooledData) -> None:
        """Sample centres and deviations, then every item's count by its data set."""
        prior = self.prior
        location, scale = prior.logit_mean
        sites = {
            "centre": numpyro.sample("centre", dist.Normal(location, scale / jnp.sqrt(2.0))),
            "gap": numpyro.sample("gap", gap_prior(scale, self.ordered)),
            "logit_share": numpyro.sample("logit_share", dist.Normal(*prior.logit_share)),
        }
        with numpyro.plate("component", 2):
            sites["log_dispersion"] = numpyro.sample(
                "log_dispersion", dist.Normal(*prior.log_dispersion)
            )
        for name, tau in (("share", prior.log_tau_share), ("centre", prior.log_tau_centre)):
            sites[f"log_tau_{name}"] = numpyro.sample(f"log_tau_{name}", dist.Normal(*tau))
            with numpyro.plate("set", self.n_sets):
                sites[f"{name}_by_set"] = numpyro.sample(
                    f"{name}_by_set", dist.StudentT(prior.df, 0.0, 1.0)
                )
        counts = CountData(data.correct, data.given, data.weight)
        observe_counts(set_parameters(sites), data.member, counts, self.most)

    @property
    def coords(self) -> dict[str, list[str]]:
        """The names along the axes of its quantities."""
        sizes = [str(n) for n in error_sizes(self.most)]
        return {"votes": sizes, "component": ["hard items", "easy items"]}

    def quantities(self, sites: Sites, data: PooledData) -> dict[str, Array]:  # noqa: ARG002
        """Return every data set's errors of majorities, shares, means and dispersions."""
        theta = set_parameters(sites)
        errors = jax.vmap(lambda own: majority_errors(own, self.most))(theta)
        return {"majority_error": errors, **theta._asdict()}

    def predict(self, sites: Mapping[str, Array], data: PooledData) -> Float[Array, "item count"]:
        """Return log P(S = s) of every item at s = 0 .. most."""
        theta = set_parameters(sites)
        every = jnp.arange(self.most + 1)
        by_set = jax.vmap(lambda one: log_pmfs(one, every, self.most))(theta)
        return by_set[data.member, data.given]

    def for_sampler(
        self,
        data: PooledData,  # noqa: ARG002
    ) -> tuple["PooledBetaBinomialModel", Callable[[dict[str, Array]], dict[str, Array]]]:
        """Return the program without the order constraint, and the map that orders its draws."""
        return replace(self, ordered=False), in_order
