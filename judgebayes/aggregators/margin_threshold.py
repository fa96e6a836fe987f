"""A baseline of the audit: a tie unless the margin of the votes is large enough."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from judgebayes.aggregators.base import Training, VoteMethod, certain
from judgebayes.arrays import ItemCodes, LogProbs, Scalar
from judgebayes.compiled.float64 import in_float64
from judgebayes.compiled.jit_inline import jit_inline
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.registry import aggregator, in_files
from judgebayes.inference.status import Status
from judgebayes.inference.summary import summary
from judgebayes.measures.decide import absolute_loss
from judgebayes.measures.scores import average, labelled_weight
from judgebayes.votes.array import Votes

TIED = 1e-12
"""Errors closer than this count as equal, so that rounding does not choose the threshold."""


@aggregator("margin-threshold", rule=True, compared="baseline", n_classes=3, place=80)
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class MarginThreshold(VoteMethod["FittedMarginThreshold"]):
    r"""Decide "tie unless :math:`|c^+ - c^-| \ge k`", with k estimated from the labelled items.

    k is the threshold from 1 (ties only where the margin is 0) to n + 1 (always a tie) with the
    least mean absolute error; of several, the lowest. Ternary votes only. It has one parameter and
    no probabilities: P1's method reduced to a calibrated tie boundary.

    Parameters
    ----------
    label_noise
        The known share e of the labels that are wrong, any other class alike. The error against
        such labels favours ties, which are never two steps off. Therefore the fit minimises an
        unbiased estimate of the error against the true labels from the observed labels z
        (Natarajan et al. 2013, eq 1, for K classes):

        .. math:: \tilde L(a, z) = \frac{L(a, z) - e' \sum_k L(a, k)}{1 - e - e'},
                  \qquad e' = \frac{e}{K - 1}

    Examples
    --------
    >>> import numpy as np
    >>> import judgebayes as jb
    >>> counts = [[0, 1, 7], [1, 6, 1], [6, 2, 0], [1, 4, 3], [2, 6, 0], [8, 0, 0]]
    >>> votes = jb.from_counts(np.array(counts))
    >>> labels = np.array([2, 1, 0, 1, 1, 0])
    >>> fit = jb.MarginThreshold().fit(votes, labels)
    >>> jb.bayes_action(fit(votes), jb.absolute_loss(3)).tolist()
    [2, 1, 0, 1, 1, 0]
    """

    labelled_only = False
    label_noise: float = 0.0

    def _fitted(self, data: Training) -> "FittedMarginThreshold":
        votes = data.votes
        if votes.n_classes != 3:
            raise JudgeBayesError(
                f"The margin threshold needs ternary votes; these have {votes.n_classes} classes."
            )
        most = votes.n_judges * votes.n_samples
        thresholds = jnp.arange(1, most + 2)
        losses = _noisy_loss(self.label_noise)[:, jnp.maximum(data.labels, 0)]
        used = labelled_weight(data.labels, data.weight)

        def error(threshold: Int[Array, ""]) -> Float[Array, ""]:
            decisions = _decide(votes, threshold)
            return average(jnp.take_along_axis(losses, decisions[None], 0)[0], used)

        errors = jax.vmap(error)(thresholds)
        return FittedMarginThreshold(
            threshold=thresholds[jnp.argmax(errors <= errors.min() + TIED)],
            status=jnp.where(used.sum() > 0, int(Status.CONVERGED), int(Status.DEGENERATE)),
        )


@in_files
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FittedMarginThreshold:
    """The rule "tie unless the margin reaches the threshold"."""

    threshold: Int[Array, "*batch"]
    status: Int[Array, "*batch"]

    __repr__ = summary

    @in_float64
    def __call__(self, votes: Votes) -> LogProbs:
        """Return the items' decisions as log-probabilities, certain of one class."""
        return certain(_decide(votes, self.threshold), 3)


def _noisy_loss(noise: Scalar) -> Float[Array, "action label"]:
    """Return the loss by observed label whose mean, given the true label, is the absolute loss."""
    loss = jnp.asarray(absolute_loss(3))
    flip_rate = jnp.asarray(noise) / 2
    return (loss - flip_rate * loss.sum(1, keepdims=True)) / (1 - noise - flip_rate)


@jit_inline()
def _decide(votes: Votes, threshold: Int[Array, ""]) -> ItemCodes:
    counts = votes.pooled_counts()
    margin = counts[:, 2] - counts[:, 0]
    return jnp.where(jnp.abs(margin) >= threshold, 1 + jnp.sign(margin), 1)
