"""Counts of the agreement of judges with the labels."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from judgebayes.arrays import ItemCodes, ItemValues
from judgebayes.votes.array import Votes

DIGIT_LIMIT = 2**12
"""Two whole numbers below this limit fit exactly into one float32, as two digits."""


class Agreement(NamedTuple):
    """The data of methods that learn only from how often each judge agrees with the labels."""

    correct: Float[Array, " judge"]
    wrong: Float[Array, " judge"]
    """Weighted numbers of each judge's votes that are and are not the item's label."""
    labels: ItemCodes
    weight: ItemValues
    n_classes: int


def agreement(votes: Votes, labels: ItemCodes, weight: ItemValues) -> Agreement:
    """Return how often each judge agrees with the labels."""
    correct, wrong = _of_array(votes.index, labels, weight)
    return Agreement(correct, wrong, labels, weight, votes.n_classes)


def agreement_of_array(
    index: Int[Array, "item judge sample"], labels: ItemCodes, weight: ItemValues
) -> tuple[Float[Array, " judge"], Float[Array, " judge"]]:
    """Return the weighted numbers of each judge's votes that are and are not the item's label.

    Missing votes and items without a label are ignored.
    """
    used = jnp.where(labels >= 0, weight, 0.0)
    truth = labels[:, None, None].astype(index.dtype)
    # Products with the weights: under `vmap` over weights, one matrix product.
    correct = used @ (index == truth).astype(float).sum(2)
    cast = used @ (index >= 0).astype(float).sum(2)
    return correct, cast - correct


def packed_agreement(
    index: Int[Array, "item judge"], labels: ItemCodes, multiplicity: ItemValues
) -> tuple[Float[Array, " judge"], Float[Array, " judge"]]:
    """Return the counts of `agreement_of_array` for one vote per judge and whole-number weights.

    One product computes both counts, packed as two digits of one number. `multiplicity`, the weights,
    may be float32 if its sum is below `DIGIT_LIMIT`: a quarter of the work of two products in float64.
    """
    none, one = jnp.zeros((), multiplicity.dtype), jnp.ones((), multiplicity.dtype)
    base = 2.0 ** ((np.finfo(multiplicity.dtype).nmant + 1) // 2) * one
    used = jnp.where(labels >= 0, multiplicity, none)
    truth = labels[:, None].astype(index.dtype)
    digits = jnp.where(index >= 0, jnp.where(index == truth, base + one, base), none)
    # Without "highest", accelerators would round the factors to fewer bits.
    both = jnp.matmul(used, digits, precision="highest")
    cast = jnp.floor(both / base)
    correct = both - base * cast
    return correct.astype(float), (cast - correct).astype(float)


_of_array = jax.jit(agreement_of_array)
