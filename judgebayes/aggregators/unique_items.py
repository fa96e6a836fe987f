"""Items with the same votes and label merged into one weighted item, for samplers."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from judgebayes.aggregators.base import Training
from judgebayes.votes.array import MISSING

STEPS = 4
"""Sizes between one power of two and the next, so that similar panels share a compilation."""


def unique_items(data: Training) -> Training:
    r"""Return one item for every distinct combination of votes and label, with the summed weight.

    A likelihood that is a product over items, with the same factor for the same votes, is unchanged,
    but costs only as much as the distinct items:

    .. math:: \prod_i p(v_i, y_i)^{w_i} = \prod_{(v, y)} p(v, y)^{\sum_{i: v_i = v, y_i = y} w_i}

    The order of a judge's samples does not matter; scores, orders and tasks are dropped. Items with
    weight 0 and without votes pad the result to one of a few sizes. Inside compiled code, where the
    number of distinct items is unknown, the data are returned unchanged.
    """
    votes, labels, weight, key = data
    if any(isinstance(x, jax.core.Tracer) for x in (votes.index, labels, weight)):
        return data
    index, used = np.sort(np.asarray(votes.index), axis=2), np.asarray(weight) > 0
    rows = np.column_stack([index.reshape(len(index), -1), np.asarray(labels)])[used]
    distinct, position = np.unique(rows, axis=0, return_inverse=True)
    extra = _rounded(len(distinct)) - len(distinct)
    if len(distinct) + extra >= votes.n_items:
        return data
    fill = ((0, extra), (0, 0))
    distinct = np.pad(distinct, fill, constant_values=MISSING)
    summed = np.bincount(position.ravel(), np.asarray(weight)[used], len(distinct))
    return Training(
        replace(
            votes,
            index=jnp.asarray(distinct[:, :-1].reshape(-1, *index.shape[1:]), votes.index.dtype),
            score=None,
            order=None,
            task=None,
        ),
        jnp.asarray(distinct[:, -1], labels.dtype),
        jnp.asarray(summed),
        key,
    )


def _rounded(size: int) -> int:
    """Return the next of the sizes, at most a quarter more."""
    step = max(2 ** (max(size, 1).bit_length() - 1) // STEPS, 1)
    return -(-size // step) * step
