"""The one-coin model in closed form: conjugate posteriors and weighted votes.

Source: *Calibrate, don't curate* (P2), section 2.1 and eq 1; `judgebayes.models.one_coin` has the
story. On labelled items the posterior of an accuracy r_j is conjugate, ::

    r_j | labels ~ Beta(alpha_j, beta_j),  alpha_j = a + correct_j,  beta_j = b + wrong_j

and a new item's votes, c_k of n for class k, have the probability, with r_j integrated out, ::

    p(votes of j | y = k) = B(alpha_j + c_k, beta_j + n - c_k) / B(alpha_j, beta_j) / (K - 1)^(n - c_k)

For one vote of each judge and K = 2 this is eq 1: the judge adds log(alpha_j / beta_j) to the
log-odds of the class that it votes for. The paper's text is ambiguous about the integrated weight;
this is the reading under which integrating over r_j is exact.

Label noise. An observed label may be wrong with probability e, any other class alike. With the true
class uniform and summed out, a vote equals the label with probability

    s = r (1 - e) + (1 - r) e / (K - 1)

so that m agreements of n have the likelihood s^m (1 - s)^(n - m). That is exact for one judge with
one vote per item. With more judges or votes it is an approximation, because it ignores that they share
the same wrong labels, and differs from the program's own posterior.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import betaln
from jaxtyping import Array, Float, Int

from judgebayes.arrays import ItemCodes, ItemValues
from judgebayes.votes.array import Votes

Scalar = float | Float[Array, ""]

NODES = 128
SPAN = 12.0  # standard deviations to either side that the quadrature covers


@jax.jit
def agreement(
    votes: Votes, labels: ItemCodes, weight: ItemValues
) -> tuple[Float[Array, " judge"], Float[Array, " judge"]]:
    """Return the weighted numbers of each judge's votes that are and are not the item's label.

    Missing votes and items without a label are ignored.
    """
    used = jnp.where(labels >= 0, weight, jnp.zeros((), weight.dtype))
    truth = labels[:, None, None].astype(votes.index.dtype)
    of_votes = (votes.index == truth, votes.index >= 0)
    right, given = (each.astype(weight.dtype).sum(2) for each in of_votes)
    # Products with the weights: under `vmap` over weights, one matrix product. Without "highest",
    # accelerators would round the factors to fewer bits.
    correct, cast = (jnp.matmul(used, each, precision="highest") for each in (right, given))
    return correct.astype(float), (cast - correct).astype(float)


@partial(jax.jit, static_argnames="n_classes", inline=True)
def posterior(
    correct: Float[Array, " judge"],
    wrong: Float[Array, " judge"],
    prior: tuple[Scalar, Scalar] = (1.0, 1.0),
    noise: Scalar = 0.0,
    *,
    n_classes: int = 2,
) -> tuple[Float[Array, " judge"], Float[Array, " judge"]]:
    """Return alpha and beta of each judge's accuracy given its agreement with the labels.

    Without label noise this is the conjugate posterior. With noise the posterior is not a Beta: the
    Beta with the same mean and variance (by quadrature) is returned, so the mean is exact.
    """
    alpha, beta = prior[0] + correct, prior[1] + wrong
    flip_rate = noise / (n_classes - 1)
    stretch = 1 - noise - flip_rate

    def with_noise() -> tuple[Float[Array, " judge"], Float[Array, " judge"]]:
        share = alpha / (alpha + beta)
        spread = SPAN * jnp.sqrt(share * (1 - share) / (alpha + beta + 1)) + SPAN / (alpha + beta)
        low = jnp.clip((share - spread - flip_rate) / stretch, 0.0, 0.9)
        high = jnp.clip((share + spread - flip_rate) / stretch, 0.1, 1.0)
        node, mass = (jnp.asarray(x) for x in np.polynomial.legendre.leggauss(NODES))
        r = (low + high)[:, None] / 2 + (high - low)[:, None] / 2 * node
        s = flip_rate + stretch * r
        log_density = (
            correct[:, None] * jnp.log(s)
            + wrong[:, None] * jnp.log1p(-s)
            + (prior[0] - 1) * jnp.log(r)
            + (prior[1] - 1) * jnp.log1p(-r)
        )
        p = mass * jnp.exp(log_density - log_density.max(1, keepdims=True))
        p = p / p.sum(1, keepdims=True)
        mean = (p * r).sum(1)
        variance = (p * (r - mean[:, None]) ** 2).sum(1)
        total = mean * (1 - mean) / variance - 1
        return mean * total, (1 - mean) * total

    # The quadrature would dominate the time where panels are refitted by the thousand.
    return jax.lax.cond(jnp.asarray(noise) == 0, lambda: (alpha, beta), with_noise)


def log_odds(
    alpha: Float[Array, "*batch judge"], beta: Float[Array, "*batch judge"], n_classes: int
) -> Float[Array, "*batch judge"]:
    """Return the log-odds that one vote of each judge adds to its class (eq 1)."""
    return jnp.log(alpha) - jnp.log(beta) + np.log(n_classes - 1)


@partial(jax.jit, static_argnames="n_classes", inline=True)
def log_votes(
    alpha: Float[Array, "..."],
    beta: Float[Array, "..."],
    own: Int[Array, "..."],
    rest: Int[Array, "..."],
    n_classes: int,
) -> Float[Array, "..."]:
    """Return log p(votes of a judge | class) from the counts for the class and for other classes."""
    return betaln(alpha + own, beta + jnp.maximum(rest, 0)) - rest * np.log(n_classes - 1)


def log_likelihood_by_class(
    index: Int[Array, "item judge sample"],
    alpha: Float[Array, " judge"],
    beta: Float[Array, " judge"],
    *,
    n_classes: int,
) -> list[ItemValues]:
    """Return log p(votes | class) class by class, up to a constant (see `log_softmax_by_class`)."""
    if index.shape[-1] == 1:
        weight = log_odds(alpha, beta, n_classes)
        given = index[..., 0]
        # int8 until the one conversion to float.
        votes_for = [(given == k).astype(jnp.int8) for k in range(n_classes)]
        # Relative to class 0: under `vmap` over weights, one matrix product less.
        over_first = [(own - votes_for[0]).astype(weight.dtype) @ weight for own in votes_for[1:]]
        return [jnp.zeros(len(given), weight.dtype), *over_first]
    cast = (index >= 0).sum(-1)
    votes_for = [(index == k).sum(-1) for k in range(n_classes)]
    return [log_votes(alpha, beta, own, cast - own, n_classes).sum(1) for own in votes_for]
