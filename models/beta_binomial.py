r"""The number of correct votes on an item: a Beta-Binomial, or a mixture of two.

Source: *Efficient MAP estimation of LLM judgment performance with prior transfer* (P3), section 4.

The story. Of the k votes on an item, S are correct. Items differ in difficulty: an item's chance
theta of a correct vote is Beta(alpha, beta), and given theta the votes are independent::

    S | k ~ w BB(k, alpha_1, beta_1) + (1 - w) BB(k, alpha_2, beta_2)               (eq 4)

Component 1 holds the hard items, component 2 the easy ones. We state a component by its mean
mu = alpha / (alpha + beta) and its dispersion d = 1 / (alpha + beta), in which the Beta-Binomial
needs no Beta function and has the Binomial as its value at d = 0::

    P(S = s) = C(k, s) prod_{i<s} (mu + i d) prod_{i<k-s} (1 - mu + i d) / prod_{i<k} (1 + i d)

k may differ from item to item.

Identification. The components are ordered by their means: with logit mu = centre -+ gap / 2 and
gap >= 0 the first is never the easier one. Two independent Normal(m, s^2) logits, put in order,
have exactly the independent centre and gap below, so that the order costs no information. Samplers
run on the two logits without their order (`signed`), and put each draw in order (`ordered`)::

    centre ~ Normal(m, s^2 / 2),  gap ~ HalfNormal(sqrt(2) s)      m = 1, s = 1.5
    share  ~ Beta(2, 2)                                            w, of the hard items
    log_dispersion_j ~ Normal(-1, 1.25^2)
    (one component: centre ~ Normal(m, s^2), no gap and no share)

All priors are proper and the likelihood is bounded, so the posterior is proper, and its mode
finite, whatever the data: no item at all, S = 0 on every item, or S = k on every item.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax.scipy.special import gammaln
from jaxtyping import Array, Float, Int

__all__ = [
    "Parameters",
    "Prior",
    "component_log_pmf",
    "log_pmf",
    "majority_error",
    "model",
    "ordered",
    "parameters",
]


LEAST = -1e30
"""The log-likelihood of what cannot be."""


class Parameters(NamedTuple):
    """Share, mean and dispersion of each component, the hard items first."""

    share: Float[Array, "*draw component"]
    mean: Float[Array, "*draw component"]
    dispersion: Float[Array, "*draw component"]

    @property
    def alpha(self) -> Float[Array, "*draw component"]:
        """The first parameter of each Beta, infinite for a Binomial."""
        return self.mean / self.dispersion

    @property
    def beta(self) -> Float[Array, "*draw component"]:
        """The second parameter of each Beta, infinite for a Binomial."""
        return (1 - self.mean) / self.dispersion


class Prior(NamedTuple):
    """Location and scale of the normal priors, and the Beta prior of the share."""

    logit_mean: tuple[float, float] = (1.0, 1.5)
    log_dispersion: tuple[float, float] = (-1.0, 1.25)
    share: tuple[float, float] = (2.0, 2.0)


@partial(jax.jit, static_argnames="most", inline=True)
def component_log_pmf(
    mean: Float[Array, "set component"],
    dispersion: Float[Array, "set component"],
    member: Int[Array, " item"],
    correct: Int[Array, " item"],
    given: Int[Array, " item"],
    most: int,
) -> Float[Array, "item component"]:
    """Return log P(S = correct | k = given) under the components of each item's data set.

    It is -inf where S > k. `most` is the largest k, a size: the sums over i < k are made once, for
    all items.
    """
    s, f = jnp.clip(correct, 0, given), jnp.clip(given - correct, 0, given)
    steps = jnp.arange(most) * dispersion[..., None]

    def rising(start: Array, i: Array) -> Array:
        sums = jnp.cumsum(jnp.log(start[..., None] + steps), axis=-1)
        return jnp.pad(sums, ((0, 0), (0, 0), (1, 0)))[member, :, i]

    each = rising(mean, s) + rising(1 - mean, f) - rising(jnp.ones_like(mean), given)
    return jnp.where((correct <= given)[:, None], each + log_choose(given, s)[:, None], -jnp.inf)


def log_choose(n: Int[Array, "*any"], s: Int[Array, "*any"]) -> Float[Array, "*any"]:
    """Return the log of the binomial coefficient."""
    return gammaln(n + 1.0) - gammaln(s + 1.0) - gammaln(n - s + 1.0)


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


def parameters(sites: dict[str, Array]) -> Parameters:
    """Return one draw of the sites as the components' parameters."""
    dispersion = jnp.exp(sites["log_dispersion"])
    if "gap" not in sites:
        one = jnp.ones((1,), dispersion.dtype)
        return Parameters(one, jax.nn.sigmoid(sites["centre"])[None], dispersion)
    logits = sites["centre"] + sites["gap"] * jnp.array([-0.5, 0.5])
    share = jnp.stack([sites["share"], 1 - sites["share"]])
    return Parameters(share, jax.nn.sigmoid(logits), dispersion)


def model(
    correct: Int[Array, " item"],
    given: Int[Array, " item"],
    weight: Float[Array, " item"] | None = None,
    *,
    most: int,
    components: int = 2,
    prior: Prior = Prior(),
    signed: bool = False,
) -> None:
    """Sample the parameters from their priors, and score the counts of correct votes.

    Parameters
    ----------
    correct
        How many of an item's votes are correct, -1 where its label is unknown.
    given
        How many votes it has.
    weight
        Non-negative item weights, the powers to which the items' likelihoods are raised.
    most
        The largest number of votes, a size.
    components
        1 or 2.
    signed
        Let the gap have either sign: two unordered components, each with its own half.
    """
    location, scale = prior.logit_mean
    if components == 1:
        sites = {"centre": numpyro.sample("centre", dist.Normal(location, scale))}
    else:
        sites = {
            "centre": numpyro.sample("centre", dist.Normal(location, scale / jnp.sqrt(2.0))),
            "gap": numpyro.sample("gap", gap_prior(scale, signed)),
            "share": numpyro.sample("share", dist.Beta(*prior.share)),
        }
    with numpyro.plate("component", components):
        sites["log_dispersion"] = numpyro.sample(
            "log_dispersion", dist.Normal(*prior.log_dispersion)
        )
    each = mixture_log_pmf(parameters(sites), jnp.maximum(correct, 0), given, most)
    score_counts(each, correct, weight)


def gap_prior(scale: Float[Array, ""] | float, signed: bool) -> dist.Distribution:
    """Return the prior of the gap between two logits of this scale."""
    wide = scale * jnp.sqrt(2.0)
    return dist.Normal(0.0, wide) if signed else dist.HalfNormal(wide)


def ordered(sites: dict[str, Array]) -> dict[str, Array]:
    """Return one draw of the unordered components' sites with the harder component first."""
    turn = sites["gap"] < 0
    return sites | {
        "gap": jnp.abs(sites["gap"]),
        "share": jnp.where(turn, 1 - sites["share"], sites["share"]),
        "log_dispersion": jnp.where(turn, sites["log_dispersion"][::-1], sites["log_dispersion"]),
    }


def score_counts(
    log_likelihood: Float[Array, " item"],
    correct: Int[Array, " item"],
    weight: Float[Array, " item"] | None,
) -> None:
    """Add the items' weighted log-likelihoods; unknown counts (-1) and weight 0 add nothing."""
    weight = jnp.ones(correct.shape[0]) if weight is None else weight
    # Finite, so that weight 0 makes it 0; a product, so that many weights share what it is made of.
    each = jnp.where(correct >= 0, jnp.maximum(log_likelihood, LEAST), 0.0)
    numpyro.factor("counts", each @ weight)
