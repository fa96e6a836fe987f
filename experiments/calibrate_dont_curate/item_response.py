"""The 2PL model with priors of the items learnt from the votes, and its shares of variance (H.5)."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from judgebayes.arrays import AnyArray, Labels, Scalar, Weights
from judgebayes.compiled.float64 import in_float64
from judgebayes.inference.fast.one_coin_counts import agreement
from judgebayes.inference.fit import Fit, JaxMethod, Training
from judgebayes.inference.problem import one_draw
from judgebayes.inference.status import Status, when, worst
from judgebayes.item_response import ResponseEvidence, block_inverses, evidence, joint_mode
from judgebayes.models.irt import ItemResponsePrior, Parameters
from judgebayes.votes.array import Votes

PRIOR_ROUNDS = 200
PRIOR_TOLERANCE = 1e-4
"""Tolerance for changes of locations and scales of the estimated priors between two rounds."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class LearntResponse(JaxMethod):
    """Fit the 2PL model as `ItemResponse` does, with the items' priors learnt from the votes."""

    label_noise: float = 0.0

    @jax.jit
    def _fitted(self, data: Training) -> Fit:
        votes, labels, weight, _ = data
        given = evidence(votes.counts(), labels, weight, self.label_noise)
        used = (given.votes.sum((1, 2)) > 0) & (given.weight > 0)
        mode, _, status = empirical_bayes_mode(given, used)
        return Fit(self, one_draw(mode._asdict()), status)


class _Round(NamedTuple):
    """One round of estimating the priors of the items."""

    prior: ItemResponsePrior
    mode: Parameters
    status: Int[Array, ""]
    change: Float[Array, ""]
    step: Int[Array, ""]


def empirical_bayes_mode(
    given: ResponseEvidence, used: Bool[Array, " item"]
) -> tuple[Parameters, ItemResponsePrior, Int[Array, ""]]:
    r"""Return the joint mode under empirical Bayes priors of the items.

    EM with normal approximations of the items' posteriors at the mode: for n used items with modes
    :math:`m_i`, their mean :math:`\bar m`, and posterior variances :math:`v_i`,

    .. math:: \mu = \bar m, \qquad
              \sigma^2 = \frac{\sigma_0^2 + \sum_i (m_i - \bar m)^2 + v_i}{n + 1}

    where the default scale :math:`\sigma_0` counts as one item, so that no scale goes to 0. The
    location of log-discriminations is fixed, because it sets the unit: if it were free, abilities
    would shrink to 0 while discriminations grow without limit.

    Returns
    -------
    The mode, the estimated priors, and the status.
    """
    usual: ItemResponsePrior = jax.tree.map(jnp.asarray, ItemResponsePrior())
    n = used.sum()

    def update(mode: Array, variance: Array, usual: Scalar) -> tuple[Array, Array]:
        mean = jnp.where(used, mode, 0.0).sum() / jnp.maximum(n, 1)
        square = jnp.where(used, (mode - mean) ** 2 + variance, 0.0).sum()
        return mean, jnp.sqrt((usual**2 + square) / (n + 1))

    def running(state: _Round) -> Bool[Array, ""]:
        return (state.change > PRIOR_TOLERANCE) & (state.step < PRIOR_ROUNDS)

    def advance(state: _Round) -> _Round:
        mode, status = joint_mode(given, state.prior, state.mode)
        shift = mode.ability.mean()  # 0 at convergence; without this it takes hundreds of rounds
        mode = mode._replace(ability=mode.ability - shift, difficulty=mode.difficulty - shift)
        # The variances of items' parameters, for fixed abilities.
        inverse = block_inverses(given.curvature(mode, state.prior, 0.0)[2], 0.0)
        unit, width = usual.log_discrimination
        new_prior = ItemResponsePrior(
            update(mode.difficulty, inverse[:, 0, 0], usual.difficulty[1]),
            (unit, update(mode.log_discrimination, inverse[:, 1, 1], width)[1]),
        )
        differences = jax.tree.map(lambda a, b: jnp.abs(a - b), new_prior, state.prior)
        change = jnp.stack(jax.tree.leaves(differences)).max()
        return _Round(new_prior, mode, status, change, state.step + 1)

    initial = _Round(
        usual,
        given.begin(usual),
        jnp.asarray(0),
        jnp.asarray(jnp.inf),
        jnp.asarray(0),
    )
    end = jax.lax.while_loop(running, advance, initial)
    unconverged = when(end.change > PRIOR_TOLERANCE, Status.MAX_STEPS)
    return end.mode, end.prior, worst(end.status, unconverged)


@in_float64
def rank_correlation(fit: Fit, votes: Votes, labels: Labels) -> float:
    """Return Spearman's correlation of the judges' abilities with their raw accuracies."""
    from scipy.stats import spearmanr

    truth = jnp.asarray(labels)
    right, wrong = map(np.asarray, agreement(votes, truth, jnp.ones(votes.n_items)))
    cast = right + wrong
    accuracy = right[cast > 0] / cast[cast > 0]
    ability = fit.mean("ability")
    return float(spearmanr(ability[cast > 0], accuracy).statistic)


def variance_shares(
    ability: Float[AnyArray, " judge"], difficulty: Weights, log_discrimination: Weights
) -> dict[str, float]:
    r"""Return the shares of judges and items in the variance of the logits (P2 eq 7).

    The formula is missing from our copy of the text, which describes it as the shares of judge
    heterogeneity and of item difficulty in the variance of the logits. Over all judges and items,

    .. math:: a_i(\theta_j - b_i) = \bar a(\theta_j - \bar\theta) + a_i(\bar\theta - b_i)
              + (a_i - \bar a)(\theta_j - \bar\theta)

    and the three terms are orthogonal, so that their variances sum to the total: `judge`
    :math:`\bar a^2 \mathrm{Var}(\theta)`, `item` :math:`\mathrm{Var}(a_i(\bar\theta - b_i))`, and
    their `interaction` :math:`\mathrm{Var}(a)\mathrm{Var}(\theta)` (items on which abilities matter
    more or less). The simpler interpretation without discriminations is `judge_of_two`,
    Var(theta) over Var(theta) + Var(b). Both leave out the noise of a single vote,
    :math:`\pi^2/3` on this scale.
    """
    ability, difficulty = np.asarray(ability), np.asarray(difficulty)
    a = np.exp(np.asarray(log_discrimination))
    judge = a.mean() ** 2 * ability.var()
    item = (a * (ability.mean() - difficulty)).var()
    both = a.var() * ability.var()
    total = judge + item + both
    without_discrimination = ability.var() / (ability.var() + difficulty.var())
    parts = {"judge": judge, "item": item, "interaction": both}
    return {name: x / total for name, x in parts.items()} | {"judge_of_two": without_discrimination}
