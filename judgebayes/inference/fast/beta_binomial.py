"""The likelihood of counts of correct votes as one product with the items' weights.

For many sets of weights, such as bootstrap samples, the items' terms are computed only once.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from judgebayes.arrays import ItemCodes
from judgebayes.models.beta_binomial import CountData, Parameters
from judgebayes.models.distributions import CorrectVotes


def log_likelihood(
    theta: Parameters, member: ItemCodes, data: CountData, most: int
) -> Float[Array, ""]:
    """Return the weighted sum of log P(S = correct) over items with an observed count.

    `theta` has a leading axis of data sets; `member` is the data set of each item.
    """
    votes = CorrectVotes(theta.share, theta.mean, theta.dispersion, member, data.given, most)
    weight = jnp.ones(data.correct.shape) if data.weight is None else data.weight
    used = jnp.where(data.correct >= 0, weight, 0.0)
    return votes.log_prob(jnp.maximum(data.correct, 0)) @ used
