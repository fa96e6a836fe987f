r"""The split curve: how the votes on an item split says how probably their plurality is right.

A model of the label given the votes, for the error of a majority vote (P3) where some items have no
label: the split is known on every item, so only the curve must be learnt from labels. The paper does
not have it. The story, with x_c the share of an item's votes for class c, T the classes with the most
votes and z = (most - next most) / k, the margin of T ::

    log p(c) = beta x_c + [c in T] (alpha + h(z)) + delta_c + const

With two classes this is logit p(plurality right) = alpha + beta z + h(z), plus or minus
delta_1 - delta_0 by the plurality's class. h is a bend, a Gaussian process with the squared exponential
kernel, approximated by `TERMS` eigenfunctions on [-1, 1] around z = 1/2 (Solin and Saerkkae 2020, eq 8;
against the kernel itself at most .01 of the variance). delta is 0 where classes mean nothing, as in
pairs whose order is arbitrary: swapping classes then swaps the probabilities exactly.

Priors: leaning to monotone, since beta is positive with probability .88 ::

    alpha ~ Normal(0, .5),   beta ~ Normal(3, 2.5),   h: sd .5, length .3
    delta_c = sigma d_c,   d_c ~ Normal(0, 1),   log sigma ~ Normal(log .5, .7)
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Bool, Float, Int, Shaped
from numpyro.contrib.hsgp.laplacian import eigenfunctions
from numpyro.contrib.hsgp.spectral_densities import diag_spectral_density_squared_exponential

from judgebayes.models.base import Traits, observe_label
from judgebayes.models.distributions import LEAST

__all__ = ["Prior", "SplitCurveModel", "SplitData", "bend", "split_data"]

Scalar = float | Float[Array, ""]

TERMS = 10
HALF_LENGTH = 1.0
"""Half of the interval outside which the bend is 0; margins are within 1/2 of its middle."""


class Prior(NamedTuple):
    """Priors of the curve and of the classes' offsets."""

    level: tuple[Scalar, Scalar] = (0.0, 0.5)
    """Location and scale of alpha, in log-odds."""
    slope: tuple[Scalar, Scalar] = (3.0, 2.5)
    """Location and scale of beta, in log-odds per share of votes."""
    bend: tuple[Scalar, Scalar] = (0.5, 0.3)
    """Standard deviation of h, in log-odds, and its length, in units of the margin."""
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
    labels: Int[Array, " item"]
    """Class indices, -1 where unknown."""
    weight: Float[Array, " item"] | None = None
    """Powers to which the items' likelihoods are raised; 0 equals a dropped item."""


def split_data(
    given: Shaped[Array, "item class"],
    total: Shaped[Array, " item"],
    labels: Int[Array, " item"],
    weight: Float[Array, " item"] | None = None,
) -> SplitData:
    """Return the data from the number of votes for each class that a label can be.

    Parameters
    ----------
    given
        The votes for each of these classes.
    total
        All votes on the item; some may be for classes that no label can be.
    labels, weight
        As in `SplitData`.
    """
    share = given / jnp.maximum(total, 1)[:, None]
    two = jax.lax.top_k(share, 2)[0]
    top = (share == two[:, :1]) & (total > 0)[:, None]
    return SplitData(share, top, two[:, 0] - two[:, 1], labels, weight)


def bend(
    weights: Float[Array, " term"], margin: Float[Array, " item"], prior: Prior
) -> Float[Array, " item"]:
    """Return h at each margin."""
    deviation, length = prior.bend
    density = diag_spectral_density_squared_exponential(deviation**2, length, HALF_LENGTH, TERMS, 1)
    return eigenfunctions(margin - 0.5, HALF_LENGTH, TERMS) @ (jnp.sqrt(density) * weights)


@dataclass(frozen=True)
class SplitCurveModel:
    """The program: the curve, then the label of each labelled item given its votes.

    Sites: `alpha`, `beta`, `bend` (term) and, by class, `log_spread`, `offset` (class, in units of the
    spread); `label` (item).
    """

    n_classes: int
    by_class: bool
    """Whether the classes have offsets; False where swapping classes must swap the answers."""
    prior: Prior = Prior()
    noise: Scalar = 0.0
    """The known share of the labels that are wrong."""
    traits: ClassVar[Traits] = Traits(("label",), "labelled items", given=("votes",))
    dims: ClassVar[dict[str, tuple[str, ...]]] = {
        "bend": ("term",),
        "offset": ("class",),
        "label": ("item",),
    }

    def __call__(self, data: SplitData, *, observed: Collection[str] | None = None) -> None:
        """Sample the curve, then each item's label given its split."""
        terms = dist.Normal().expand((TERMS,)).to_event(1)
        sites = {
            "alpha": numpyro.sample("alpha", dist.Normal(*self.prior.level)),
            "beta": numpyro.sample("beta", dist.Normal(*self.prior.slope)),
            "bend": numpyro.sample("bend", terms),
        }
        if self.by_class:
            standard = dist.Normal().expand((self.n_classes,)).to_event(1)
            spread = dist.Normal(*self.prior.log_spread)
            sites["log_spread"] = numpyro.sample("log_spread", spread)
            sites["offset"] = numpyro.sample("offset", standard)
        observe_label(self.predict(sites, data), data.labels, data.weight, observed, self.noise)

    def predict(self, sites: Mapping[str, Array], data: SplitData) -> Float[Array, "item class"]:
        """Return log p(c) of every item."""
        plurality = sites["alpha"] + bend(sites["bend"], data.margin, self.prior)
        logit = sites["beta"] * data.share + jnp.where(data.top, plurality[:, None], 0.0)
        if self.by_class:
            logit += jnp.exp(sites["log_spread"]) * sites["offset"]
        return jnp.maximum(jax.nn.log_softmax(logit, axis=-1), LEAST)

    def quantities(self, sites: Mapping[str, Array], data: SplitData) -> dict[str, Array]:  # noqa: ARG002
        """Return the parameters, with the classes' offsets in log-odds."""
        named = {name: sites[name] for name in ("alpha", "beta", "bend")}
        if self.by_class:
            spread = jnp.exp(sites["log_spread"])
            named |= {"sigma": spread, "offset": spread * sites["offset"]}
        return named
