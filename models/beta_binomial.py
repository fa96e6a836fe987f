r"""The number of correct votes on an item: a Beta-Binomial, or a mixture of two.

Source: *Efficient MAP estimation of LLM judgment performance with prior transfer* (P3), section 4.

The story. Of the k votes on an item, S are correct. Items differ in difficulty: an item's chance
theta of a correct vote is Beta(alpha, beta), and given theta the votes are independent::

    S | k ~ w BB(k, alpha_1, beta_1) + (1 - w) BB(k, alpha_2, beta_2)               (eq 4)

Component 1 has the hard items, component 2 the easy ones. A component is parametrised by its mean
mu = alpha / (alpha + beta) and its dispersion d = 1 / (alpha + beta). In this form the Beta-Binomial
needs no Beta function and equals the Binomial at d = 0::

    P(S = s) = C(k, s) prod_{i<s} (mu + i d) prod_{i<k-s} (1 - mu + i d) / prod_{i<k} (1 + i d)

k may differ from item to item.

Identification. The components are ordered by their means: with logit mu = centre -+ gap / 2 and
gap >= 0 the first is never the easier one. Two independent Normal(m, s^2) logits, put in order,
have exactly the independent centre and gap below, so that the ordering loses no information. Samplers
run on the two logits without an order, and order each draw afterwards (`for_sampler`)::

    centre ~ Normal(m, s^2 / 2),  gap ~ HalfNormal(sqrt(2) s)      m = 1, s = 1.5
    share  ~ Beta(2, 2)                                            w, of the hard items
    log_dispersion_j ~ Normal(-1, 1.25^2)
    (one component: centre ~ Normal(m, s^2), no gap and no share)

All priors are proper and the likelihood is bounded, so the posterior is proper, and its mode
finite, for all data, including no items, S = 0 on every item, or S = k on every item.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float, Int

from judgebayes.models.base import Sites, Traits, observe
from judgebayes.models.distributions import CorrectVotes, component_log_pmf

FAR = 3
"""The largest majority size reported, relative to the observed votes; chains must agree on it."""


class Parameters(NamedTuple):
    """Share, mean and dispersion of each component, the hard items first.

    The parameters of its Beta are mean / dispersion and (1 - mean) / dispersion.
    """

    share: Float[Array, "*draw component"]
    mean: Float[Array, "*draw component"]
    dispersion: Float[Array, "*draw component"]


class BetaBinomialPrior(NamedTuple):
    """Location and scale of the normal priors, and the Beta prior of the share."""

    logit_mean: tuple[float, float] = (1.0, 1.5)
    log_dispersion: tuple[float, float] = (-1.0, 1.25)
    share: tuple[float, float] = (2.0, 2.0)


@partial(jax.jit, static_argnames="most", inline=True)
def mixture_log_pmf(
    theta: Parameters, correct: Int[Array, " item"], given: Int[Array, " item"], most: int
) -> Float[Array, " item"]:
    """Return log P(S = correct | k = given) of every item (eq 4) for one draw."""
    one = jnp.zeros_like(correct)
    each = component_log_pmf(theta.mean[None], theta.dispersion[None], one, correct, given, most)
    return jax.nn.logsumexp(each + jnp.log(theta.share), axis=-1)


@partial(jax.jit, static_argnames="votes", inline=True)
def log_pmf(theta: Parameters, votes: int) -> Float[Array, " count"]:
    """Return log P(S = s) at s = 0 .. k for one draw (eq 4)."""
    counts = jnp.arange(votes + 1)
    return mixture_log_pmf(theta, counts, jnp.full_like(counts, votes), votes)


@partial(jax.jit, static_argnames="votes", inline=True)
def majority_error(theta: Parameters, votes: int) -> Float[Array, ""]:
    """Return P(S < ceil(k / 2)), the error of a majority vote of k, for one draw (eq 5)."""
    return jnp.exp(log_pmf(theta, votes))[: (votes + 1) // 2].sum()


def error_sizes(most: int) -> tuple[int, ...]:
    """Return three odd sizes: one vote, the most votes observed, and far more."""
    return tuple(dict.fromkeys(n - 1 + n % 2 for n in (1, most, FAR * most)))


def majority_errors(theta: Parameters, most: int) -> Float[Array, " size"]:
    """Return the errors of majorities of several sizes (`error_sizes`), for one draw.

    The components themselves are often not identified: with two nearly equal components, the data do
    not determine which is broader, but the errors of majorities are the same.
    """
    return jnp.stack([majority_error(theta, size) for size in error_sizes(most)])


def parameters(sites: Mapping[str, Array]) -> Parameters:
    """Return one draw of the sites as the components' parameters."""
    dispersion = jnp.exp(sites["log_dispersion"])
    if "gap" not in sites:
        one = jnp.ones((1,), dispersion.dtype)
        return Parameters(one, jax.nn.sigmoid(sites["centre"])[None], dispersion)
    logits = sites["centre"] + sites["gap"] * jnp.array([-0.5, 0.5])
    share = jnp.stack([sites["share"], 1 - sites["share"]])
    return Parameters(share, jax.nn.sigmoid(logits), dispersion)


class CountData(NamedTuple):
    """The numbers of votes on items, which are given, and of correct votes."""

    correct: Int[Array, " item"]
    """-1 where the label is unknown, or there are no votes; None where the counts are sampled."""
    given: Int[Array, " item"]
    weight: Float[Array, " item"] | None = None
    """Powers to which the items' likelihoods are raised; 0 equals a dropped item."""


@dataclass(frozen=True)
class BetaBinomialModel:
    """The program: the components, then the number of correct votes on each item.

    Sites: `centre`, `log_dispersion` (component) and, of two components, `gap` and `share`;
    `correct` (item).
    """

    most: int
    """The largest number of votes on an item, a size."""
    components: int = 2
    prior: BetaBinomialPrior = BetaBinomialPrior()
    ordered: bool = True
    """Whether the harder component is the first; otherwise the gap may have either sign."""
    traits: ClassVar[Traits] = Traits(("correct",), "items with a count")
    dims: ClassVar[dict[str, tuple[str, ...]]] = {
        "majority_error": ("votes",),
        "share": ("component",),
        "mean": ("component",),
        "dispersion": ("component",),
    }

    def __call__(self, data: CountData) -> None:
        """Sample the parameters from their priors, then the counts."""
        location, scale = self.prior.logit_mean
        if self.components == 1:
            sites = {"centre": numpyro.sample("centre", dist.Normal(location, scale))}
        else:
            sites = {
                "centre": numpyro.sample("centre", dist.Normal(location, scale / jnp.sqrt(2.0))),
                "gap": numpyro.sample("gap", gap_prior(scale, self.ordered)),
                "share": numpyro.sample("share", dist.Beta(*self.prior.share)),
            }
        with numpyro.plate("component", self.components):
            sites["log_dispersion"] = numpyro.sample(
                "log_dispersion", dist.Normal(*self.prior.log_dispersion)
            )
        one = Parameters(*(x[None] for x in parameters(sites)))
        observe_counts(one, jnp.zeros_like(data.given), data, self.most)

    @property
    def coords(self) -> dict[str, list[str]]:
        """The names along the axes of its quantities."""
        kinds = ["hard items", "easy items"] if self.components == 2 else ["all items"]
        return {"votes": [str(n) for n in error_sizes(self.most)], "component": kinds}

    def quantities(self, sites: Sites, data: CountData) -> dict[str, Array]:  # noqa: ARG002
        """Return the errors of majorities, and share, mean and dispersion of each component."""
        theta = parameters(sites)
        return {"majority_error": majority_errors(theta, self.most), **theta._asdict()}

    def predict(self, sites: Mapping[str, Array], data: CountData) -> Float[Array, "item count"]:
        """Return log P(S = s) of every item at s = 0 .. most."""
        return log_pmfs(parameters(sites), data.given, self.most)

    def for_sampler(
        self,
        data: CountData,  # noqa: ARG002
    ) -> tuple["BetaBinomialModel", Callable[[dict[str, Array]], dict[str, Array]]]:
        """Return the program without the order constraint, and the map that orders its draws."""
        return replace(self, ordered=False), in_order


def observe_counts(
    theta: Parameters,
    member: Int[Array, " item"],
    data: CountData,
    most: int,
) -> None:
    """Sample `correct` of every item, by the components of its data set."""
    votes = CorrectVotes(theta.share, theta.mean, theta.dispersion, member, data.given, most)
    used = None if data.correct is None else data.correct >= 0
    observe("correct", votes, data.correct, used, data.weight)


@partial(jax.jit, static_argnames="most", inline=True)
def log_pmfs(
    theta: Parameters, given: Int[Array, " item"], most: int
) -> Float[Array, "item count"]:
    """Return log P(S = s | k = given) at s = 0 .. most for one draw, -inf beyond k."""
    sizes, counts = (x.ravel() for x in jnp.meshgrid(*[jnp.arange(most + 1)] * 2, indexing="ij"))
    table = mixture_log_pmf(theta, counts, sizes, most).reshape(most + 1, most + 1)
    return table[given]


def gap_prior(scale: Float[Array, ""] | float, ordered: bool) -> dist.Distribution:
    """Return the prior of the gap between two logits: half-normal if ordered, else normal."""
    wide = scale * jnp.sqrt(2.0)
    return dist.HalfNormal(wide) if ordered else dist.Normal(0.0, wide)


def in_order(sites: dict[str, Array]) -> dict[str, Array]:
    """Return one draw of the unordered components' sites with the harder component first."""
    if "gap" not in sites:  # one component
        return sites
    reversed_order = sites["gap"] < 0
    return sites | {
        "gap": jnp.abs(sites["gap"]),
        "share": jnp.where(reversed_order, 1 - sites["share"], sites["share"]),
        "log_dispersion": jnp.where(
            reversed_order, sites["log_dispersion"][::-1], sites["log_dispersion"]
        ),
    }
