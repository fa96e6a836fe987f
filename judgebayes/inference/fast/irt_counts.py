"""The 2PL model's likelihood from counts of votes, as its Newton steps use it.

`judgebayes.models.irt` has the story, and the formula with label noise.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from judgebayes.arrays import ItemCodes, ItemValues, LogProbs
from judgebayes.inference.problem import Problem, Sites
from judgebayes.models.base import PanelData
from judgebayes.models.irt import ItemResponseModel, Parameters, link
from judgebayes.models.label_noise import noise_matrix


class Evidence(NamedTuple):
    """The votes on labelled items, and the log-likelihood of the label given the true class."""

    votes: Float[Array, "item judge class"]
    """How many votes of each judge are for each class."""
    log_error: LogProbs
    """log p(observed label | true class)."""
    weight: ItemValues
    """0 where the label is unknown."""


@partial(jax.jit, inline=True)
def evidence(
    votes: Int[Array, "item judge class"],
    labels: ItemCodes,
    weight: ItemValues,
    noise: float | Float[Array, ""] = 0.0,
) -> Evidence:
    """Return counts of votes with labels, of which a known share is wrong."""
    error = jnp.log(noise_matrix(noise, votes.shape[-1]))[:, jnp.maximum(labels, 0)].T
    return Evidence(votes.astype(weight.dtype), error, jnp.where(labels >= 0, weight, 0.0))


def _joint(logits: Float[Array, "item judge"], given: Evidence) -> LogProbs:
    """Return log p(votes, label | true class), up to a term that all classes share."""
    each = logits + np.log(given.votes.shape[-1] - 1)
    return given.log_error + jnp.einsum("ijk,ij->ik", given.votes, each)


def class_probabilities(logits: Float[Array, "item judge"], given: Evidence) -> LogProbs:
    """Return the posterior probabilities of the items' true classes."""
    return jax.nn.softmax(_joint(logits, given), axis=1)


def log_likelihood(logits: Float[Array, "item judge"], given: Evidence) -> Float[Array, ""]:
    """Return the log-likelihood of votes and labels, true classes summed out, up to a constant."""
    shared = (given.votes.sum(2) * jnp.logaddexp(0.0, logits)).sum(1)
    each = jax.nn.logsumexp(_joint(logits, given), axis=1) - shared
    return jnp.sum(given.weight * each)


def problem(model: ItemResponseModel, data: PanelData) -> Problem:
    """Return the problem for a sampler, with the likelihood by counts, which are computed once."""
    votes = jnp.stack([(data.votes == k).sum(2) for k in range(model.n_classes)], axis=2)
    weight = jnp.ones(len(data.labels)) if data.weight is None else data.weight
    given = evidence(votes, data.labels, weight, model.noise)

    def likelihood(sites: Sites) -> Float[Array, ""]:
        return log_likelihood(link(Parameters(**sites)), given)

    return Problem(model, data, log_likelihood=likelihood)
