"""Undecided votes as evidence: how often each judge is undecided on items of each class."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import betaln, xlogy
from jaxtyping import Array, Float, Int

from judgebayes.aggregators.base import Aggregator, FittedAggregator, Training, VoteMethod
from judgebayes.arrays import ItemCodes, ItemValues, LogProbs
from judgebayes.compiled.float64 import in_float64
from judgebayes.inference.registry import in_files
from judgebayes.inference.summary import summary
from judgebayes.votes.array import UNDECIDED, Votes

STRENGTHS = (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""The grid of m: how many items a judge's common rate counts as, beside those of a class."""
ALIKE = 0.5
"""The prior probability that a judge's rate is the same for every class."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class WithUndecided(VoteMethod["FittedWithUndecided"]):
    r"""Add to an aggregator what undecided votes say about the label.

    .. math:: \log p(y = k \mid \text{votes}) = \log p_0(k \mid \text{decided votes}) + \sum_j \bigl[
              u_j \log \rho_{jk} + (g_j - u_j) \log(1 - \rho_{jk}) \bigr] + \text{const}

    where judge j gave votes on the item (:math:`g_j` = 1, else 0), of which a share :math:`u_j` is
    undecided, and :math:`\rho_{jk}` is its rate of undecided votes on items of class k. With
    :math:`U_{jk}` undecided votes on :math:`N_{jk}` items and the judge's rate
    :math:`\rho_j = (U_j + 1/2) / (N_j + 1)`,

    .. math:: \rho_{jk} \sim (1 - a)\, \mathrm{Beta}(m \rho_j, m (1 - \rho_j)) + a\, \delta(\rho_j)

    and its posterior mean, averaged over m (one for all judges, 3 to 1,000), is used. The shares of m
    and a = 1/2 follow the labels: where the rates hardly differ between classes, so do the
    probabilities. A judge without an undecided vote on a labelled item adds nothing.

    The decided votes and the undecided ones are taken as independent given the label. For two
    responses that could be swapped, an undecided vote is for neither, and this factor is not needed.
    Stacking needs none either: its free form has a weight for each judge without a vote.

    Parameters
    ----------
    aggregator
        The aggregator of the decided votes.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import judgebayes as jb
    >>> vote = ["no", "no", "unsure", "yes", "yes", "yes"]
    >>> table = pd.DataFrame({"item": range(6), "judge": "ann", "vote": vote})
    >>> votes, _ = jb.encode(table, undecided=["unsure"])
    >>> labels = np.array([0, 0, 0, 1, 1, 1])
    >>> method = jb.WithUndecided(jb.OneCoin())
    >>> print(np.exp(method.fit(votes, labels)(votes))[:, 1].round(2))
    [0.15 0.15 0.48 0.86 0.86 0.86]
    """

    labelled_only = False
    aggregator: Aggregator

    def _fitted(self, data: Training) -> "FittedWithUndecided":
        votes, labels, weight, key = data
        fitted = self.aggregator.fit(votes, labels, weight=weight, key=key)
        rate = _rates(votes, labels, weight)
        return FittedWithUndecided(fitted, *rate)


@in_files
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FittedWithUndecided:
    """A fitted aggregator, and the log-odds of undecided votes by judge and class."""

    aggregator: FittedAggregator
    log_undecided: Float[Array, "*batch judge class"]
    """log rho, 0 for a judge whose rate is not known."""
    log_decided: Float[Array, "*batch judge class"]
    """log(1 - rho), 0 for a judge whose rate is not known."""

    __repr__ = summary

    @property
    def status(self) -> Int[Array, "*batch"]:
        """The status of the aggregator's fit."""
        return self.aggregator.status

    @in_float64
    def __call__(self, votes: Votes) -> LogProbs:
        """Return the items' log-probabilities."""
        log_probs = self.aggregator(votes)
        return _with_evidence(log_probs, votes.index, self.log_undecided, self.log_decided)

    def reliability(self, level: float = 0.9) -> Any:
        """Return the reliability of each judge's decided votes, as the aggregator does."""
        return self.aggregator.reliability(level)  # type: ignore[attr-defined]


def _shares(
    index: Int[Array, "item judge sample"],
) -> tuple[Float[Array, "item judge"], Float[Array, "item judge"]]:
    """Return the share of undecided votes, and whether there is a vote at all."""
    none = (index == UNDECIDED).sum(-1)
    given = none + (index >= 0).sum(-1)
    return none.astype(float) / jnp.maximum(given, 1), (given > 0).astype(float)


@jax.jit
def _rates(
    votes: Votes, labels: ItemCodes, weight: ItemValues
) -> tuple[Float[Array, "judge class"], Float[Array, "judge class"]]:
    """Return log rho and log(1 - rho) of every judge and class."""
    share, given = _shares(votes.index)
    used = jnp.where(labels >= 0, weight, 0.0)
    of_class = used[:, None] * (labels[:, None] == jnp.arange(votes.n_classes))
    undecided, total = share.T @ of_class, given.T @ of_class
    common = (undecided.sum(1) + 0.5) / (total.sum(1) + 1.0)
    known = (undecided.sum(1) > 0)[:, None]
    rate = _posterior_mean(undecided, total, common, known)
    none = jnp.where(known, jnp.log(rate), 0.0)
    return none, jnp.where(known, jnp.log1p(-rate), 0.0)


def _posterior_mean(
    undecided: Float[Array, "judge class"],
    total: Float[Array, "judge class"],
    common: Float[Array, " judge"],
    known: Any,
) -> Float[Array, "judge class"]:
    """Return the posterior mean of each rate, averaged over the strength m."""
    m = jnp.asarray(STRENGTHS)[:, None, None]
    a, b = m * common[:, None], m * (1 - common[:, None])
    decided = total - undecided
    apart = betaln(a + undecided, b + decided) - betaln(a, b)
    alike = xlogy(undecided, common[:, None]) + xlogy(decided, 1 - common[:, None])
    log_weight = jnp.append(
        jnp.where(known, apart, 0.0).sum((1, 2)) + np.log((1 - ALIKE) / len(STRENGTHS)),
        jnp.where(known, alike, 0.0).sum() + np.log(ALIKE),
    )
    weight = jax.nn.softmax(log_weight)
    own = (a + undecided) / (a + b + total)
    return jnp.tensordot(weight[:-1], own, 1) + weight[-1] * common[:, None]


@jax.jit
def _with_evidence(
    log_probs: LogProbs,
    index: Int[Array, "item judge sample"],
    log_undecided: Float[Array, "judge class"],
    log_decided: Float[Array, "judge class"],
) -> LogProbs:
    share, given = _shares(index)
    evidence = share @ log_undecided + (given - share) @ log_decided
    return jax.nn.log_softmax(log_probs + evidence, axis=-1)
