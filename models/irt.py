"""The two-parameter logistic model of right votes: abilities, difficulties, discriminations.

Source: *Calibrate, don't curate* (P2), section 2.5 and Appendix H.5; Lord & Novick (1968).

The story. Judge j has an ability theta_j; item i has a difficulty b_i and a discrimination a_i > 0.
Each vote of judge j on item i is right with the probability ::

    logit P(right_ij) = a_i (theta_j - b_i)

The likelihood does not change if abilities and difficulties are shifted together, or scaled while the
discriminations are scaled inversely: the priors fix the scale, ::

    theta_j ~ Normal(0, 1),   b_i ~ Normal(0, 2),   log a_i ~ Normal(0, 0.5)

The paper states no priors. Ours put nearly all discriminations between 1/3 and 3, and allow items that
are too hard for all judges.

Whether a vote is right is known only for labelled items; a missing vote carries no information.

Label noise. A label z may be wrong with probability e, any other class alike. If the true class y is
uniform and summed out, and a wrong vote is any of the K - 1 other classes with equal probability, the
votes of an item have the probability ::

    sum_y p(z | y) prod_j P(right_ij)^n_ijy ((1 - P(right_ij)) / (K - 1))^(n_ij - n_ijy)

where n_ijy of the n_ij votes of judge j are for class y. A wrong label reverses the votes of all judges
on an item: a model without label noise treats it as an item on which able judges do worst.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from judgebayes.models.base import PanelData, PanelProgram, Scalar, Sites, Traits, uniform_class
from judgebayes.models.distributions import CoinVotes

NODES = 121, 15
"""The number of grid points over an item's difficulty and log-discrimination."""
REACH = 4.5, 4.0
"""The half-width of the grid in prior standard deviations."""


class Parameters(NamedTuple):
    """Abilities of the judges, difficulties and log-discriminations of the items."""

    ability: Float[Array, "*draw judge"]
    difficulty: Float[Array, "*draw item"]
    log_discrimination: Float[Array, "*draw item"]


class ItemResponsePrior(NamedTuple):
    """Location and scale of the normal prior of each parameter; abilities are standard normal."""

    difficulty: tuple[Scalar, Scalar] = (0.0, 2.0)
    log_discrimination: tuple[Scalar, Scalar] = (0.0, 0.5)


def link(parameters: Parameters) -> Float[Array, "*draw item judge"]:
    """Return the logit of a right vote, for every item and judge."""
    difference = parameters.ability[..., None, :] - parameters.difficulty[..., :, None]
    return jnp.exp(parameters.log_discrimination)[..., None] * difference


def marginal(
    ability: Float[Array, " judge"],
    right: Float[Array, "item judge"],
    cast: Float[Array, "item judge"],
    *,
    n_classes: int = 2,
    prior: ItemResponsePrior = ItemResponsePrior(),
) -> Float[Array, " item"]:
    r"""Return log p(votes of an item | label, abilities), for one draw of the abilities.

    The item's own two parameters are integrated out of `model`'s likelihood, by sums over a grid:

    .. math:: \log \int\!\!\int \prod_j p(v_{ij} | \theta_j, b, a) \, p(b) p(a) \, da \, db

    so that items are exchangeable given the abilities. A wrong vote is any of the other classes with
    equal probability.

    Parameters
    ----------
    ability
        The abilities of the judges.
    right, cast
        The number of votes of each judge for the label, and of all its votes.
    n_classes
        The number of classes.
    prior
        The prior of the model.
    """
    axes = [
        location + scale * jnp.linspace(-reach, reach, n)
        for (location, scale), reach, n in zip(prior, REACH, NODES, strict=True)
    ]
    difficulty, log_discrimination = (x.ravel() for x in jnp.meshgrid(*axes, indexing="ij"))
    mass = [
        dist.Normal(*of).log_prob(x)
        for of, x in zip(prior, (difficulty, log_discrimination), strict=True)
    ]
    log_mass = jax.nn.log_softmax(mass[0] + mass[1])
    logits = jnp.exp(log_discrimination) * (ability[:, None] - difficulty)  # judge, node
    each = right @ logits - cast @ jnp.logaddexp(0.0, logits) + log_mass
    return jax.nn.logsumexp(each, axis=1) - (cast - right).sum(1) * np.log(n_classes - 1)


@dataclass(frozen=True)
class ItemResponseModel(PanelProgram):
    """The program: abilities, difficulties, discriminations; then labels and right or wrong votes.

    Sites: `ability` (judge), `difficulty` and `log_discrimination` (item); `label` (item), `votes`
    (item, judge, sample). Labels are uniform; only labelled items count.
    """

    n_classes: int = 2
    prior: ItemResponsePrior = ItemResponsePrior()
    noise: Scalar = 0.0
    """The known share of the labels that are wrong."""
    traits: ClassVar[Traits] = Traits(("label", "votes"), "labelled items")
    dims: ClassVar[dict[str, tuple[str, ...]]] = {"discrimination": ("item",)}

    def __call__(self, data: PanelData) -> None:
        """Sample the parameters from their priors, then labels and votes."""
        n_items, n_judges, _ = data.cast.shape
        with numpyro.plate("judge", n_judges):
            ability = numpyro.sample("ability", dist.Normal(0.0, 1.0))
        with numpyro.plate("item", n_items):
            difficulty = numpyro.sample("difficulty", dist.Normal(*self.prior.difficulty))
            log_discrimination = numpyro.sample(
                "log_discrimination", dist.Normal(*self.prior.log_discrimination)
            )
        self.observe(Parameters(ability, difficulty, log_discrimination)._asdict(), data)

    def quantities(self, sites: Sites, data: PanelData) -> dict[str, Array]:  # noqa: ARG002
        """Return abilities, difficulties and discriminations."""
        unchanged = {name: sites[name] for name in ("ability", "difficulty")}
        return unchanged | {"discrimination": jnp.exp(sites["log_discrimination"])}

    def votes(self, sites: Sites, data: PanelData) -> CoinVotes:
        """Return the distribution of the votes; classes are uniform."""
        logits = link(Parameters(**sites))
        right, wrong = jax.nn.log_sigmoid(logits), jax.nn.log_sigmoid(-logits)
        log_class = uniform_class(len(data.cast), self.n_classes)
        return CoinVotes(log_class, right, wrong, data.cast)

    def pointwise(
        self, sites: Mapping[str, Array], data: PanelData
    ) -> dict[str, Float[Array, " item"]]:
        """Return log p(votes | label) of every labelled item, its own parameters integrated out.

        They must be integrated out, because they are fitted to the votes that are left out.
        """
        labels = jnp.maximum(data.labels, 0)[:, None, None]
        right, cast = ((x.sum(2)).astype(float) for x in (data.votes == labels, data.votes >= 0))
        each = marginal(sites["ability"], right, cast, n_classes=self.n_classes, prior=self.prior)
        return {"votes": jnp.where(data.labels >= 0, each, 0.0)}
