"""P3's baseline: votes that are independent, whatever the item."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from judgebayes.arrays import ItemValues, Weights
from judgebayes.compiled.float64 import in_float64
from judgebayes.inference.status import Status, when
from judgebayes.majority import Counts, FittedDistribution
from judgebayes.majority.counts import labelled_weight, prepare
from judgebayes.models.beta_binomial import Parameters


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Binomial:
    r"""Treat all votes as independent with the same probability of being correct (eqs 2, 3).

    .. math:: \hat p = \sum_i w_i S_i / \sum_i w_i k_i

    It gives only a point estimate: an interval from independent votes would be far too
    narrow.
    """

    @in_float64
    def fit(self, counts: Counts, *, weight: Weights | None = None) -> FittedDistribution:
        """Return the Binomial with the share of correct votes."""
        return _share_correct(self, *prepare(counts, weight))


@jax.jit
def _share_correct(method: Binomial, counts: Counts, weight: ItemValues) -> FittedDistribution:
    item_weight = labelled_weight(counts, weight)
    n_votes = (item_weight * counts.given).sum()
    p = jnp.where(n_votes > 0, (item_weight * counts.correct).sum() / n_votes, 0.5)
    one = jnp.ones((1, 1))
    draws = Parameters(one, p * one, 0 * one)._asdict()
    status = when(n_votes == 0, Status.DEGENERATE)
    return FittedDistribution(method, draws, status, most=counts.most)
