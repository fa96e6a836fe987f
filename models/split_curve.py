r"""The split curve: how the votes on an item split says how probably their plurality is right.

A model of the label given the votes, for the error of a majority vote (P3) where some items have no
label: the split is known on every item, so only the curve must be learnt from labels. The paper does
not have it. The story, with x_c the share of an item's votes for class c, d_c the mean distance of its
votes from c on the scale of the classes (length 1), T the classes with the most votes, and
z = (most - next most) / k, the margin of T ::

    log p(c) = beta r(k) x_c + [c in T] (alpha + h(z)) - gamma d_c + delta_l(c) + const
    r(k) = max(1, (1 + 7 / 11) / (1 + 7 / k))

With two classes this is logit p(plurality right) = alpha + beta r z + h(z), plus or minus
delta_1 - delta_0 by the plurality's class; gamma, which favours classes near the votes where the order
means something, enters with more than two. h is a bend, a Gaussian process with the squared exponential
kernel, approximated by `TERMS` eigenfunctions on [-1, 1] around z = 1/2 (Solin and Saerkkae 2020, eq 8;
against the kernel itself at most .01 of the variance). Each class has its own offset delta; in pairs
whose order is arbitrary, classes at the same distance from the middle share one, so that swapping the
ends swaps the probabilities exactly. If judges are right on an
item with a probability that is Beta(a, b) over items, the log-odds that a plurality of k is right are
near a tie 2 (a - b) z k / (k + a + b - 1): the curve is steeper with more votes. Hence r, with
a + b - 1 = 7; it is 1 for up to 11 votes, for which the prior was set.

Priors: leaning to monotone, since beta is positive with probability .88 ::

    alpha ~ Normal(0, .5),   beta ~ Normal(3, 2.5),   gamma ~ Normal(0, 2),   h: sd .5, length .3
    delta_l = sigma d_l,   d_l ~ Normal(0, 1),   log sigma ~ Normal(log .5, .7)
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
from jaxtyping import Array, Bool, Float, Int, Shaped
from numpyro.contrib.hsgp.laplacian import eigenfunctions
from numpyro.contrib.hsgp.spectral_densities import diag_spectral_density_squared_exponential

from judgebayes.models.base import Scalar, Traits, observe_label
from judgebayes.models.distributions import LEAST

TERMS = 10
HALF_LENGTH = 1.0
"""Half of the interval outside which the bend is 0; margins are within 1/2 of its middle."""
FEW_VOTES = 11
"""Up to this many votes, the slope does not depend on their number."""
CONCENTRATION = 7.0
"""a + b - 1, which says by how much more votes make the curve steeper."""


class SplitCurvePrior(NamedTuple):
    """Priors of the curve and of the classes' offsets."""

    level: tuple[Scalar, Scalar] = (0.0, 0.5)
    """Location and scale of alpha, in log-odds."""
    slope: tuple[Scalar, Scalar] = (3.0, 2.5)
    """Location and scale of beta, in log-odds per share of votes."""
    bend: tuple[Scalar, Scalar] = (0.5, 0.3)
    """Standard deviation of h, in log-odds, and its length, in units of the margin."""
    order: tuple[Scalar, Scalar] = (0.0, 2.0)
    """Location and scale of gamma, in log-odds per length of the scale (more than two classes)."""
    log_spread: tuple[Scalar, Scalar] = (math.log(0.5), 0.7)
    """Location and scale of log sigma, the spread of the classes' offsets."""


class SplitData(NamedTuple):
    """The splits, which are given, and the labels."""

    share: Float[Array, "item class"]
    """The share of the item's votes for each class."""
    top: Bool[Array, "item class"]
    """Whether no other class has more votes."""
    margin: Float[Array, " item"]
    """The share of a class of `top`, less the next share; 0 where two classes have the most votes."""
    distance: Float[Array, "item class"]
    """The mean distance of the item's votes from the class, the scale of all classes having length 1."""
    steepness: Float[Array, " item"]
    """r(k), by the number of the item's votes."""
    labels: Int[Array, " item"] = None  # type: ignore[assignment]
    """Positions among these classes, -1 where unknown."""
    weight: Float[Array, " item"] | None = None
    """Powers to which the items' likelihoods are raised; 0 equals a dropped item."""


def split_data(
    given: Shaped[Array, "item class"],
    labels: Int[Array, " item"] = None,  # type: ignore[assignment]
    weight: Float[Array, " item"] | None = None,
    label_classes: tuple[int, ...] | None = None,
) -> SplitData:
    """Return the data from the number of votes for each class.

    Parameters
    ----------
    given
        The votes for each class.
    labels, weight
        As in `SplitData`.
    label_classes
        The classes that a label can be, by default all; votes for others count in the shares only.
    """
    n_classes, total = given.shape[1], given.sum(1)
    possible = list(range(n_classes)) if label_classes is None else list(label_classes)
    every = given / jnp.maximum(total, 1)[:, None]
    steps = np.abs(np.arange(n_classes)[:, None] - np.array(possible)) / (n_classes - 1)
    share = every[:, np.array(possible)]
    two = jax.lax.top_k(share, 2)[0]
    top = (share == two[:, :1]) & (total > 0)[:, None]
    return SplitData(
        share, top, two[:, 0] - two[:, 1], every @ steps, steepness(total), labels, weight
    )


def steepness(votes: Shaped[Array, " item"]) -> Float[Array, " item"]:
    """Return r(k), the slope at k votes relative to that at up to `FEW_VOTES`."""
    reliability = votes / (votes + CONCENTRATION)
    return jnp.maximum(reliability * (1 + CONCENTRATION / FEW_VOTES), 1.0)


def bend(
    weights: Float[Array, " term"], margin: Float[Array, " item"], prior: SplitCurvePrior
) -> Float[Array, " item"]:
    """Return h at each margin."""
    deviation, length = prior.bend
    density = diag_spectral_density_squared_exponential(deviation**2, length, HALF_LENGTH, TERMS, 1)
    return eigenfunctions(margin - 0.5, HALF_LENGTH, TERMS) @ (jnp.sqrt(density) * weights)


@dataclass(frozen=True)
class SplitCurveModel:
    """The program: the curve, then the label of each labelled item given its votes.

    Sites: `alpha`, `beta`, `bend` (term); `gamma` with more than two classes; with more than one level
    `log_spread` and `offset` (level, in units of the spread); `label` (item).
    """

    n_classes: int
    by_class: bool
    """Whether each class has its own offset; False where swapping the ends must swap the answers."""
    prior: SplitCurvePrior = SplitCurvePrior()
    noise: Scalar = 0.0
    """The known share of the labels that are wrong."""
    traits: ClassVar[Traits] = Traits(("label",), "labelled items")

    @property
    def levels(self) -> tuple[int, ...]:
        """The offset of each class: its own, or that of the classes as far from the middle."""
        last = self.n_classes - 1
        return tuple(c if self.by_class else min(c, last - c) for c in range(self.n_classes))

    def __call__(self, data: SplitData) -> None:
        """Sample the curve, then each item's label given its split."""
        sites = {
            "alpha": numpyro.sample("alpha", dist.Normal(*self.prior.level)),
            "beta": numpyro.sample("beta", dist.Normal(*self.prior.slope)),
        }
        with numpyro.plate("term", TERMS):
            sites["bend"] = numpyro.sample("bend", dist.Normal())
        if self.n_classes > 2:
            sites["gamma"] = numpyro.sample("gamma", dist.Normal(*self.prior.order))
        if len(set(self.levels)) > 1:
            spread = dist.Normal(*self.prior.log_spread)
            sites["log_spread"] = numpyro.sample("log_spread", spread)
            with numpyro.plate("level", len(set(self.levels))):
                sites["offset"] = numpyro.sample("offset", dist.Normal())
        observe_label(self.predict(sites, data), data.labels, data.weight, self.noise)

    def predict(self, sites: Mapping[str, Array], data: SplitData) -> Float[Array, "item class"]:
        """Return log p(c) of every item."""
        plurality = sites["alpha"] + bend(sites["bend"], data.margin, self.prior)
        slope = sites["beta"] * data.steepness
        logit = slope[:, None] * data.share + jnp.where(data.top, plurality[:, None], 0.0)
        if "gamma" in sites:
            logit -= sites["gamma"] * data.distance
        if "offset" in sites:
            logit += jnp.exp(sites["log_spread"]) * sites["offset"][np.array(self.levels)]
        return jnp.maximum(jax.nn.log_softmax(logit, axis=-1), LEAST)

    def quantities(self, sites: Mapping[str, Array], data: SplitData) -> dict[str, Array]:  # noqa: ARG002
        """Return the parameters, with the classes' offsets in log-odds."""
        named = {n: sites[n] for n in ("alpha", "beta", "gamma", "bend") if n in sites}
        if "offset" in sites:
            spread = jnp.exp(sites["log_spread"])
            named |= {"sigma": spread, "offset": spread * sites["offset"]}
        return named
