r"""Variational EM for the pooled model of Dawid and Skene (`judgebayes.models.pooled_dawid_skene`).

The items' classes and the confusion matrices have independent approximate posteriors, the matrices'
with rows Dirichlet(c_k m_k + N_jk), where N_jkl are the expected votes. A step maximises the lower
bound of the log marginal likelihood in turn over the classes, over the shares, mean rows and
concentrations (by a few minorise-maximise steps: Minka, "Estimating a Dirichlet distribution",
2000), and over the matrices, so that the bound never falls. It is exact where every label is known:
then the rows' posterior is that Dirichlet distribution, and the bound is the log marginal density.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import digamma, gammaln
from jaxtyping import Array, Float

from judgebayes.models.pooled_dawid_skene import PooledPrior

__all__ = ["Pooled", "begin", "bound", "expected_log", "improve"]

ROUNDS = 5
"""Minorise-maximise steps of the mean rows and concentrations in one step of EM."""
NEWTON = 8
"""Newton steps to the maximum of a concentration's bound."""


class Pooled(NamedTuple):
    """The parameters, and the pseudo-counts of the rows' posterior."""

    log_pi: Float[Array, " class"]
    mean_row: Float[Array, "class vote"]
    log_concentration: Float[Array, " class"]
    rows: Float[Array, "judge class vote"]
    """The parameters of the rows' Dirichlet posteriors."""


def begin(log_pi: Float[Array, " class"], confusion: Float[Array, "judge class vote"]) -> Pooled:
    """Return the start from class shares and confusion matrices, as if known."""
    large = 1e6
    mean = confusion.mean(0)
    return Pooled(
        log_pi, mean / mean.sum(-1, keepdims=True), jnp.zeros(len(log_pi)), large * confusion
    )


def expected_log(state: Pooled) -> Float[Array, "judge class vote"]:
    """Return the expected log-probabilities of the votes."""
    return digamma(state.rows) - digamma(state.rows.sum(-1, keepdims=True))


def improve(
    state: Pooled,
    share: Float[Array, " class"],
    votes: Float[Array, "judge class vote"],
    prior: PooledPrior,
    *,
    first: bool | Array = False,
) -> Pooled:
    """Return the state after one step, from the expected counts of items and votes.

    At the `first` step the mean rows are the pooled expected votes, and the concentrations the prior's.
    """
    n_classes = len(share)
    pseudo = prior.of_rows(n_classes)
    location, scale = prior.log_concentration
    pooled = votes.sum(0) + pseudo
    pooled = pooled / pooled.sum(-1, keepdims=True)
    mean = jnp.where(first, pooled, state.mean_row)
    log_c = jnp.where(first, location, state.log_concentration)

    def tables(mean: Array, log_c: Array) -> Array:
        alpha = jnp.maximum(jnp.exp(log_c)[:, None] * mean, 1e-300)
        each = alpha * (digamma(alpha + votes) - digamma(alpha))
        return jnp.where(votes > 0, each, 0.0).sum(0)

    def improved(_: Array, now: tuple[Array, Array]) -> tuple[Array, Array]:
        mean, log_c = now
        row = tables(mean, log_c) + pseudo
        mean = row / row.sum(-1, keepdims=True)
        total = tables(mean, log_c).sum(-1)
        c = jnp.exp(log_c)
        slope = (digamma(votes.sum(-1) + c) - digamma(c)).sum(0)

        def newton(_: Array, x: Array) -> Array:
            gradient = total - jnp.exp(x) * slope - (x - location) / scale**2
            curvature = jnp.exp(x) * slope + 1 / scale**2
            return x + jnp.clip(gradient / curvature, -1.0, 1.0)

        return mean, jax.lax.fori_loop(0, NEWTON, newton, log_c)

    mean, log_c = jax.lax.fori_loop(0, ROUNDS, improved, (mean, log_c))
    classes = share + prior.classes
    return Pooled(
        jnp.log(jnp.maximum(classes / classes.sum(), 1e-300)),
        mean,
        log_c,
        votes + jnp.exp(log_c)[:, None] * mean,
    )


def bound(state: Pooled, likelihood: Float[Array, ""], prior: PooledPrior) -> Float[Array, ""]:
    """Return the lower bound of the log marginal density, up to the priors' constants.

    `likelihood` is the weighted sum over items of log sum_k pi_k exp(E log p(votes, label | k)).
    """
    alpha = jnp.exp(state.log_concentration)[:, None] * state.mean_row
    location, scale = prior.log_concentration
    apart = (
        _log_norm(alpha)
        - _log_norm(state.rows)
        + ((state.rows - alpha) * expected_log(state)).sum(-1)
    ).sum()
    log_prior = (prior.of_rows(len(alpha)) * jnp.log(state.mean_row)).sum()
    log_prior -= 0.5 * (((state.log_concentration - location) / scale) ** 2).sum()
    return likelihood - apart + log_prior + (prior.classes * state.log_pi).sum()


def _log_norm(alpha: Float[Array, "*row vote"]) -> Float[Array, "*row"]:
    """Return the log of a Dirichlet distribution's normalising integral."""
    return gammaln(alpha).sum(-1) - gammaln(alpha.sum(-1))
