"""The baseline for every method: the labels' frequencies, independent of the votes."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from judgebayes.aggregators.base import Training, VoteMethod
from judgebayes.arrays import LogProbs
from judgebayes.compiled.float64 import in_float64
from judgebayes.inference.registry import aggregator, in_files
from judgebayes.inference.status import Status, when
from judgebayes.inference.summary import summary
from judgebayes.measures.scores import labelled_weight
from judgebayes.votes.array import Votes


@aggregator("best-constant", compared="baseline", place=90)
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class BaseRate(VoteMethod["FittedBaseRate"]):
    r"""Predict the label frequencies of the labelled items for every item.

    .. math:: p(k) = \frac{a + \sum_i w_i 1\{y_i = k\}}{K a + \sum_i w_i}

    with a pseudo-count a; without labels and pseudo-count it is uniform. Its Bayes action is the best
    constant under any loss: the median label for MAE, the most frequent label for accuracy.

    Parameters
    ----------
    pseudo_count
        a.
    label_noise
        The known share e of the labels that are wrong, any other class alike: frequencies are
        corrected, :math:`(p - e') / (1 - e - e')` with :math:`e' = e / (K - 1)`, and clipped at 0.

    Examples
    --------
    >>> import numpy as np
    >>> import judgebayes as jb
    >>> counts = [[0, 1, 7], [1, 6, 1], [6, 2, 0], [1, 4, 3], [2, 6, 0], [8, 0, 0]]
    >>> votes = jb.from_counts(np.array(counts))
    >>> labels = np.array([2, 1, 0, 1, 1, 0])
    >>> print(np.exp(jb.BaseRate().fit(votes, labels)(votes))[0].round(3))
    [0.333 0.5   0.167]
    """

    labelled_only = False
    pseudo_count: float = 0.0
    label_noise: float = 0.0

    def _fitted(self, data: Training) -> "FittedBaseRate":
        n_classes = data.votes.n_classes
        used = labelled_weight(data.labels, data.weight)
        mass = used @ jax.nn.one_hot(data.labels, n_classes, dtype=used.dtype)
        share = mass + self.pseudo_count
        share = jnp.where(share.sum() > 0, share, 1.0)  # uniform without labels
        flip_rate = self.label_noise / (n_classes - 1)
        corrected = jnp.maximum(
            (share / share.sum() - flip_rate) / (1 - self.label_noise - flip_rate), 0.0
        )
        return FittedBaseRate(
            jnp.log(corrected / corrected.sum()), when(used.sum() == 0, Status.DEGENERATE)
        )


@in_files
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FittedBaseRate:
    """The label frequencies, as log-probabilities."""

    log_rates: Float[Array, "*batch class"]
    status: Int[Array, "*batch"]

    __repr__ = summary

    @in_float64
    def __call__(self, votes: Votes) -> LogProbs:
        """Return the same log-probabilities for every item."""
        return jnp.broadcast_to(self.log_rates, (votes.n_items, self.log_rates.shape[-1]))
