"""The likelihood of the 2PL model by counts of votes (P2, section 2.5)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from judgebayes.arrays import ItemCodes, ItemValues, Labels, LogProbs, Scalar
from judgebayes.compiled.jit_inline import jit_inline
from judgebayes.inference.problem import Problem, Sites
from judgebayes.models.base import PanelData
from judgebayes.models.irt import ItemResponseModel, ItemResponsePrior, Parameters, link
from judgebayes.models.label_noise import noise_matrix
from judgebayes.votes.array import MISSING, Votes


class ResponseEvidence(NamedTuple):
    """The votes of all judges on labelled items, possibly missing, by counts."""

    votes: Float[Array, "item judge class"]
    """How many votes of each judge are for each class."""
    log_error: LogProbs
    """log p(observed label | true class)."""
    weight: ItemValues
    """0 where the label is unknown."""

    def joint(self, logits: Float[Array, "item judge"]) -> LogProbs:
        """Return log p(votes, label | true class), up to a term that all classes share."""
        each = logits + np.log(self.votes.shape[-1] - 1)
        return self.log_error + jnp.einsum("ijk,ij->ik", self.votes, each)

    def log_likelihood(self, logits: Float[Array, "item judge"]) -> Float[Array, ""]:
        """Return the log-likelihood of votes and labels, true classes summed out, up to a constant."""
        shared = (self.votes.sum(2) * jnp.logaddexp(0.0, logits)).sum(1)
        each = jax.nn.logsumexp(self.joint(logits), axis=1) - shared
        return jnp.sum(self.weight * each)


@jit_inline()
def evidence(
    votes: Int[Array, "item judge class"],
    labels: ItemCodes,
    weight: ItemValues,
    noise: Scalar = 0.0,
) -> ResponseEvidence:
    """Return counts of votes with labels, of which a known share is wrong."""
    error = jnp.log(noise_matrix(noise, votes.shape[-1]))[:, jnp.maximum(labels, 0)].T
    return ResponseEvidence(votes.astype(weight.dtype), error, jnp.where(labels >= 0, weight, 0.0))


def by_counts(
    votes: Votes,
    labels: Labels,
    weight: ItemValues | None,
    prior: ItemResponsePrior,
    noise: Scalar = 0.0,
) -> Problem:
    """Return the problem for NUTS: the program with these data, and its likelihood by counts."""
    index = jnp.maximum(jnp.asarray(votes.index, int), MISSING)
    data = PanelData(index, jnp.asarray(labels), weight)
    weight = jnp.ones(votes.n_items) if weight is None else weight
    given = evidence(votes.counts(), data.labels, weight, noise)

    def likelihood(sites: Sites) -> Float[Array, ""]:
        return given.log_likelihood(link(Parameters(**sites)))

    return Problem(
        ItemResponseModel(votes.n_classes, prior, noise), data, log_likelihood=likelihood
    )
