"""Counts of the agreement of judges with the labels."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from judgebayes.arrays import ItemCodes, ItemValues
from judgebayes.votes.array import Votes


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
