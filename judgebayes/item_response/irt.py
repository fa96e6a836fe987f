"""Abilities of judges and difficulties of items: a 2PL item response model (P2, section 2.5).

It is a diagnostic of the panel, not an aggregator, because it uses the labels of its items.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from judgebayes.aggregators.base import Training, VoteMethod
from judgebayes.arrays import AnyArray, ItemValues, Labels, Weights
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fast.agreement import agreement
from judgebayes.inference.fast.irt import evidence, problem
from judgebayes.inference.nuts import NUTS
from judgebayes.inference.problem import Chains, Problem, Sites, UsesPrior
from judgebayes.inference.sampled import Sampled
from judgebayes.inference.summary import summary
from judgebayes.item_response.mode import Table, empirical_bayes_mode, joint_mode
from judgebayes.models.base import PanelData
from judgebayes.models.irt import ItemResponseModel, Prior
from judgebayes.votes.array import MISSING, Votes


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ItemResponse(UsesPrior, VoteMethod["FittedItemResponse"]):
    """Fit the 2PL model to whether votes are right.

    Parameters
    ----------
    prior
        Priors of difficulties and log-discriminations; with None their locations and scales are
        estimated from the votes (`empirical_bayes_mode`), for many items.
    inference
        None for the joint mode of all parameters (fast at any size; difficulties of items with few
        votes are shrunk), or `NUTS()` for draws (small sets).
    label_noise
        The known share e of the labels that are wrong, any other class alike: the true class is
        summed out (`judgebayes.models.irt`). Without it, a wrong label looks like an item on which
        able judges do worst, and shrinks the differences between abilities.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import judgebayes as jb
    >>> panel = {"ann": [1, 1, 0, 0, 1, 0], "ben": [1, 1, 0, 1, 1, 0], "cy": [0, 1, 1, 0, 0, 1]}
    >>> votes, _ = jb.encode_wide(pd.DataFrame(panel).rename_axis("item"))
    >>> labels = np.array([1, 1, 0, 0, -1, -1])
    >>> fit = jb.ItemResponse().fit(votes, labels)
    >>> print(fit.mean("ability").round(1))
    [ 0.8  0.3 -0.4]
    """

    labelled_only = False
    prior: Prior | None = field(default_factory=Prior)
    inference: NUTS | None = None
    label_noise: float = 0.0

    @jax.jit
    def _fitted(self, data: Training) -> "FittedItemResponse":
        if self.prior is None and self.inference is not None:
            raise JudgeBayesError(
                "NUTS needs given priors; pass a `prior`, such as Prior(), or omit `inference` "
                "to estimate the priors."
            )
        votes, labels, weight, key = data
        votes_and_labels = evidence(votes.counts(), labels, weight, self.label_noise)
        used = (votes_and_labels.votes.sum((1, 2)) > 0) & (votes_and_labels.weight > 0)
        if self.inference is None:
            if self.prior is None:
                mode, _, status = empirical_bayes_mode(Table(votes_and_labels), used)
            else:
                mode, status = joint_mode(Table(votes_and_labels), self.prior)
            at_mode = {name: x[None] for name, x in mode._asdict().items()}
            return FittedItemResponse(at_mode, used, status, None)

        result = self.inference.solve(self.problem(votes, labels, weight), key)
        return FittedItemResponse(result.draws, used, result.status, result.chains)

    def problem(self, votes: Votes, labels: Labels, weight: ItemValues | None = None) -> Problem:
        """Return the problem for NUTS: the program with these data."""
        prior = Prior() if self.prior is None else self.prior
        program = ItemResponseModel(votes.n_classes, prior, self.label_noise)
        index = jnp.maximum(jnp.asarray(votes.index, int), MISSING)
        return problem(program, PanelData(index, jnp.asarray(labels), weight))


class Shares(NamedTuple):
    """Shares of the variance of the logits; the first three sum to 1."""

    judge: float
    """Abilities: the main effect of the judges."""
    item: float
    """Difficulties, on the scale of their discrimination: the main effect of the items."""
    interaction: float
    """Unequal discriminations: items on which abilities matter more or less."""
    judge_of_two: float
    """Var(theta) / (Var(theta) + Var(b)), without discriminations."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FittedItemResponse(Sampled):
    """A fitted 2PL model: one draw for the mode, or many of the posterior."""

    draws: Sites
    """`ability` (draw, judge), `difficulty` and `log_discrimination` (draw, item)."""
    used: Bool[Array, "*batch item"]
    """Whether each item has a label and a vote."""
    status: Int[Array, "*batch"]
    chains: Chains | None

    __repr__ = summary

    def mean(self, name: str) -> Float[np.ndarray, " *shape"]:
        """Return a parameter's mean over the draws."""
        return np.asarray(self.draws[name]).mean(0)

    def shares(self) -> Shares:
        """Return the variance shares (P2 eq 7), averaged over the draws."""
        used = np.asarray(self.used)
        each = [
            variance_shares(
                ability, np.asarray(difficulty)[used], np.asarray(log_discrimination)[used]
            )
            for ability, difficulty, log_discrimination in zip(
                self.draws["ability"],
                self.draws["difficulty"],
                self.draws["log_discrimination"],
                strict=True,
            )
        ]
        return Shares(*np.mean(each, axis=0).tolist())

    @in_float64
    def rank_correlation(self, votes: Votes, labels: Labels) -> float:
        """Return Spearman's correlation of the judges' abilities with their raw accuracies."""
        from scipy.stats import spearmanr

        truth = jnp.asarray(labels)
        right, wrong = map(np.asarray, agreement(votes, truth, jnp.ones(votes.n_items))[:2])
        cast = right + wrong
        accuracy = right[cast > 0] / cast[cast > 0]
        return float(spearmanr(self.mean("ability")[cast > 0], accuracy).statistic)


def variance_shares(
    ability: Float[AnyArray, " judge"], difficulty: Weights, log_discrimination: Weights
) -> Shares:
    r"""Return the shares of judges and items in the variance of the logits (P2 eq 7).

    The formula is missing from our copy of the text, which describes it as the shares of judge
    heterogeneity and of item difficulty in the variance of the logits. Over all judges and items,

    .. math:: a_i(\theta_j - b_i) = \bar a(\theta_j - \bar\theta) + a_i(\bar\theta - b_i)
              + (a_i - \bar a)(\theta_j - \bar\theta)

    and the three terms are orthogonal, so that their variances sum to the total:
    :math:`\bar a^2 \mathrm{Var}(\theta)`, :math:`\mathrm{Var}(a_i(\bar\theta - b_i))` and
    :math:`\mathrm{Var}(a)\mathrm{Var}(\theta)`. The simpler interpretation without discriminations is
    `judge_of_two`. Both leave out the noise of a single vote, :math:`\pi^2/3` on this scale.
    """
    ability, difficulty = np.asarray(ability), np.asarray(difficulty)
    a = np.exp(np.asarray(log_discrimination))
    judge = a.mean() ** 2 * ability.var()
    item = (a * (ability.mean() - difficulty)).var()
    both = a.var() * ability.var()
    total = judge + item + both
    without_discrimination = ability.var() / (ability.var() + difficulty.var())
    return Shares(judge / total, item / total, both / total, without_discrimination)
