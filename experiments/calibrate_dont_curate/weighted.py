"""Votes weighted by the judges' accuracies, or by their log-odds.

The uncalibrated baselines of P2 (section 4.1, Table 1). The paper does not specify the smoothing, so
it is a parameter here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from judgebayes.aggregators.vote_rules import log_share
from judgebayes.arrays import LogProbs, Scalar
from judgebayes.inference.fast import one_coin_counts
from judgebayes.inference.fast.log_softmax import log_softmax
from judgebayes.inference.fast.one_coin_counts import agreement
from judgebayes.inference.fit import Fit, JaxMethod, Training
from judgebayes.inference.problem import Sites, one_draw, require
from judgebayes.inference.registry import in_files
from judgebayes.inference.status import degenerate_status
from judgebayes.votes.array import Votes


@in_files
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class AccuracyWeighted(JaxMethod):
    r"""Predict the share of the votes, weighted by the judges' accuracies.

    .. math:: p(k) \propto a + \sum_{j: v_j = k} \hat r_j, \qquad
              \hat r_j = \frac{\text{correct}_j + s}{\text{correct}_j + \text{wrong}_j + 2 s}

    Parameters
    ----------
    smoothing
        s of the accuracies; with 1 they are P2's posterior means. With 0, a judge without votes on
        labelled items has 1/2, the limit.
    pseudo_count
        a of the share.
    label_noise
        The known share of the labels that are wrong.
    """

    smoothing: float = 1.0
    pseudo_count: float = 0.5
    label_noise: float = 0.0
    saved: ClassVar[tuple[str, ...]] = ("pseudo_count",)
    sums_items: ClassVar[bool] = True
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {"accuracy": ("judge",)}

    def _fitted(self, data: Training) -> Fit:
        alpha, beta, status = _posterior(data, self.smoothing, self.label_noise)
        total = alpha + beta
        accuracy = jnp.where(total > 0, alpha / jnp.where(total > 0, total, 1.0), 0.5)
        return Fit(self, one_draw({"accuracy": accuracy}), status)

    def predict(self, values: Sites, given: Votes) -> LogProbs:
        """Return the log of the weighted shares."""
        return log_share(_weighted_count(given, values["accuracy"]), self.pseudo_count)


@in_files
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class LogOddsWeighted(JaxMethod):
    r"""Sum the votes, weighted by the log-odds of the judges' estimated accuracies.

    .. math:: \log p(k) = \sum_{j: v_j = k} \log \frac{(K - 1)\, \hat r_j}{1 - \hat r_j}
              + \text{const}

    The plug-in counterpart of `OneCoin`; both are equal at `smoothing=1` if every judge votes once on
    an item. The default, one half, is the usual correction of a sample log-odds.

    Parameters
    ----------
    smoothing
        As in `AccuracyWeighted`, but above 0: the log-odds of a judge that is always right would be
        infinite.
    label_noise
        The known share of the labels that are wrong.
    """

    smoothing: float = 0.5
    label_noise: float = 0.0
    sums_items: ClassVar[bool] = True
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {"log_odds": ("judge",)}

    def _fitted(self, data: Training) -> Fit:
        require("smoothing", self.smoothing, self.smoothing > 0, "a number above 0")
        alpha, beta, status = _posterior(data, self.smoothing, self.label_noise)
        log_odds = one_coin_counts.log_odds(alpha, beta, data.given.n_classes)
        return Fit(self, one_draw({"log_odds": log_odds}), status)

    def predict(self, values: Sites, given: Votes) -> LogProbs:
        """Return the items' log-probabilities; an item without votes is uniform."""
        return log_softmax(_weighted_count(given, values["log_odds"]))


def _posterior(
    data: Training, smoothing: Scalar, noise: Scalar
) -> tuple[Float[Array, " judge"], Float[Array, " judge"], Int[Array, ""]]:
    """Return the posterior of each judge's accuracy, Beta(alpha, beta), and the status."""
    votes, labels, weight, _ = data
    correct, wrong = agreement(votes, labels, weight)
    prior = (smoothing, smoothing)
    beta = one_coin_counts.posterior(correct, wrong, prior, noise, n_classes=votes.n_classes)
    return *beta, degenerate_status(labels, weight, votes.n_classes, 1)


@jax.jit
def _weighted_count(votes: Votes, weight: Float[Array, " judge"]) -> LogProbs:
    counted = [
        (votes.index == k).sum(2).astype(weight.dtype) @ weight for k in range(votes.n_classes)
    ]
    return jnp.stack(counted, axis=1)
