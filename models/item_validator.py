"""The share of a generator's items that are valid, from the votes on each item.

The label of an unlabelled item is latent and summed out, and so is an item's leaning z_i ~ Normal(0, 1),
a common effect on all of its judges, which correlates their errors on the item::

    logit P(vote_ij = 1 | label = 1) = alpha_j + tau z_i + w_1g
    logit P(vote_ij = 1 | label = 0) = alpha_j - gap_j + tau z_i + w_0g
    w_yg ~ Normal(follow (eta_g - mu_g), sigma_y),   eta_g ~ Normal(mu_g, 1.5)

with g the item's generator, of whose items a share logit^-1 eta_g is valid: its shifts partly follow its
quality and are partly independent of it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from judgebayes.models.base import PanelData, PanelProgram, Scalar, Sites, Traits
from judgebayes.models.distributions import LeaningVotes

Pair = tuple[Scalar, Scalar]
"""Location and scale."""
POINTS = 15
"""Nodes of the quadrature over an item's leaning."""


def normals(name: str, axis: str, *priors: Pair) -> Array:
    """Sample independent normal values as one site; a common scale stays a plain number."""
    location, scale = zip(*priors, strict=True)
    shared = all(type(x) is float and x == scale[0] for x in scale)
    normal = dist.Normal(jnp.array(location), scale[0] if shared else jnp.array(scale))
    with numpyro.plate(axis, len(priors)):
        sample: Array = numpyro.sample(name, normal)
    return sample


class ItemPrior(NamedTuple):
    """Normal priors, (location, scale), of the item level; spreads are standard deviations."""

    lenience: Pair = (2.0, 1.5)
    """The mean over judges of alpha_j."""
    discernment: Pair = (1.5, 1.0)
    """The mean over judges of gap_j."""
    quality: Pair = (1.5, 1.5)
    """The mean over generators of eta_g."""
    judge_spread: Scalar = 0.7
    """The standard deviation of alpha_j and of gap_j over judges."""
    quality_spread: Scalar = 1.5
    """The standard deviation of eta_g over generators."""
    log_sigma_invalid: Pair = (math.log(0.3), 0.5)
    """sigma_0, of the generators' shifts on invalid items."""
    log_sigma_valid: Pair = (math.log(0.3), 0.5)
    """sigma_1, on valid items."""
    follow: Pair = (0.5, 0.5)
    log_tau: Pair = (0.0, 0.7)
    """log tau, the spread of the leanings; not a parameter if judges are independent given the label."""


class ItemSites(NamedTuple):
    """The item-level parameters, on the logit scale."""

    eta: Float[Array, " generator"]
    alpha: Float[Array, " judge"]
    gap: Float[Array, " judge"]
    tau: Float[Array, ""]
    shift: Float[Array, "class generator"]
    """w, invalid items first."""


def item_sites(sites: Mapping[str, Array], prior: ItemPrior) -> ItemSites:
    """Return the parameters of one draw of `ItemModel`'s sites, which are in units of its prior."""
    eta = sites["centre"][2] + prior.quality_spread * sites["eta"]
    sigma = jnp.exp(sites["log_sigma"])
    shift = sites["follow"] * prior.quality_spread * sites["eta"] + sigma[:, None] * sites["w"]
    return ItemSites(
        eta,
        sites["centre"][0] + prior.judge_spread * sites["alpha"],
        sites["centre"][1] + prior.judge_spread * sites["gap"],
        jnp.exp(sites["log_tau"]) if "log_tau" in sites else jnp.zeros(()),
        shift,
    )


@dataclass(frozen=True)
class ItemModel(PanelProgram):
    """The program of items: labels and leanings are summed out.

    Sites: `alpha`, `gap` (judge), `eta` (generator) and `w` (class, generator), all in units of
    their spread; `centre` (means of alpha, gap, eta), `log_tau` (unless judges are independent
    given the label), `log_sigma` (class), `follow`; `label` (item), `votes` (item, judge, 1).
    """

    n_generators: int
    points: int = POINTS
    """Nodes of the quadrature over an item's leaning; with one there is none, and judges are
    independent given the label."""
    prior: ItemPrior = ItemPrior()
    traits: ClassVar[Traits] = Traits(("label", "votes"), "all items")
    dims: ClassVar[dict[str, tuple[str, ...]]] = {
        "precision": ("generator",),
        "quality": ("generator",),
        "tpr": ("judge",),
        "tnr": ("judge",),
        "lenience": ("judge",),
        "discernment": ("judge",),
        "shift": ("class", "generator"),
    }

    def __call__(self, data: PanelData) -> None:
        """Sample judges, generators and their shifts, then labels and votes."""
        prior = self.prior
        spreads = prior.log_sigma_invalid, prior.log_sigma_valid
        sites = {
            "centre": normals(
                "centre", "mean_of", prior.lenience, prior.discernment, prior.quality
            ),
            "log_sigma": normals("log_sigma", "class", *spreads),
            "follow": numpyro.sample("follow", dist.Normal(*prior.follow)),
        }
        with numpyro.plate("judge", data.cast.shape[1]):
            sites["alpha"] = numpyro.sample("alpha", dist.Normal())
            sites["gap"] = numpyro.sample("gap", dist.Normal())
        with numpyro.plate("generator", self.n_generators):
            sites["eta"] = numpyro.sample("eta", dist.Normal())
            with numpyro.plate("class", 2):
                sites["w"] = numpyro.sample("w", dist.Normal())
        if self.points > 1:
            sites["log_tau"] = numpyro.sample("log_tau", dist.Normal(*prior.log_tau))
        self.observe(sites, data)

    def quantities(self, sites: Sites, data: PanelData) -> dict[str, Array]:  # noqa: ARG002
        """Return qualities and the judges' rates as probabilities, the rest in logits."""
        own = item_sites(sites, self.prior)
        return {
            "quality": jax.nn.sigmoid(own.eta),
            "tpr": self._rate(own.alpha, own.tau),
            "tnr": 1 - self._rate(own.alpha - own.gap, own.tau),
            "leaning": own.tau,
            "lenience": own.alpha,
            "discernment": own.gap,
            "shift": own.shift,
        }

    def _rate(self, base: Float[Array, " judge"], tau: Array) -> Float[Array, " judge"]:
        """Return how often each judge accepts an item of a typical generator, leaning averaged."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(self.points)
        return jax.nn.sigmoid(base[:, None] + tau * nodes) @ jnp.asarray(weights / weights.sum())

    def votes(self, sites: Sites, data: PanelData) -> LeaningVotes:
        """Return the distribution of the votes; the class invalid comes first."""
        at = item_sites(sites, self.prior)
        own = at.eta[data.generator]
        log_class = jnp.stack([jax.nn.log_sigmoid(-own), jax.nn.log_sigmoid(own)], axis=1)
        base = jnp.stack([at.alpha - at.gap, at.alpha])
        return LeaningVotes(
            log_class, base, at.shift, at.tau, data.generator, data.cast, self.points
        )
