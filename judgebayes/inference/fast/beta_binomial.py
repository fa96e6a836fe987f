"""The likelihood of counts of correct votes as one product with the items' weights.

Over many sets of weights, bootstrap samples say, what the items' counts say is computed once.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from judgebayes.models.beta_binomial import CountData, Parameters
from judgebayes.models.distributions import CorrectVotes

__all__ = ["log_likelihood"]


def log_likelihood(
    theta: Parameters, member: Int[Array, " item"], data: CountData, most: int
) -> Float[Array, ""]:
    """Return the weighted sum of log P(S = correct) over items whose count is known.

    `theta` has a leading axis of data sets, and `member` says of which an item is.
    """
    votes = CorrectVotes(theta.share, theta.mean, theta.dispersion, member, data.given, most)
    weight = jnp.ones(data.correct.shape) if data.weight is None else data.weight
    used = jnp.where(data.correct >= 0, weight, 0.0)
    return votes.log_prob(jnp.maximum(data.correct, 0)) @ used
