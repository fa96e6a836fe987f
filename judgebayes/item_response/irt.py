"""Abilities of judges and difficulties of items: a 2PL item response model (P2, section 2.5).

It is a diagnostic of the panel, not an aggregator, because it uses the labels of its items.

The joint mode of the 2PL model by damped Newton steps, and empirical Bayes priors.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from judgebayes.arrays import AnyArray, ItemCodes, ItemValues, Labels, LogProbs, Scalar, Weights
from judgebayes.compiled.float64 import in_float64
from judgebayes.compiled.jit_inline import jit_inline
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fast.agreement import agreement
from judgebayes.inference.fit import Fit, JaxMethod, Training
from judgebayes.inference.nuts import NUTS
from judgebayes.inference.optimise import Newton, Point, State, Trial, positive_step
from judgebayes.inference.problem import Problem, Sites, one_draw
from judgebayes.inference.status import Status, when, worst
from judgebayes.models.base import PanelData
from judgebayes.models.irt import ItemResponseModel, ItemResponsePrior, Parameters, link
from judgebayes.models.label_noise import noise_matrix
from judgebayes.votes.array import MISSING, Votes

MAX_STEPS = 500
TOLERANCE = 1e-6
PRIOR_ROUNDS = 200
PRIOR_TOLERANCE = 1e-4
"""Tolerance for changes of locations and scales of the estimated priors between two rounds."""


class _Round(NamedTuple):
    """One round of estimating the priors of the items."""

    prior: ItemResponsePrior
    mode: Parameters
    status: Int[Array, ""]
    change: Float[Array, ""]
    step: Int[Array, ""]


def empirical_bayes_mode(
    given: "_Evidence", used: Bool[Array, " item"]
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
        difficulty_variance, discrimination_variance = given.variances(mode, state.prior)
        unit, width = usual.log_discrimination
        new_prior = ItemResponsePrior(
            update(mode.difficulty, difficulty_variance, usual.difficulty[1]),
            (unit, update(mode.log_discrimination, discrimination_variance, width)[1]),
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


def joint_mode(
    given: "_Evidence", prior: ItemResponsePrior, begin: Parameters | None = None
) -> tuple[Parameters, Int[Array, ""]]:
    """Return the joint mode of all parameters, by damped Newton steps.

    If a step with the exact curvature does not descend, the expected curvature (Fisher information) is
    used, with which a sufficiently damped step always descends. With label noise, the curvature is
    that for fixed class probabilities, which is at least that of the objective (as in EM): steps
    descend, but more slowly the less the votes determine the true class.
    """

    def propose(state: State) -> Trial:
        step = given.step(state.at, prior, state.damping, 1.0 - state.failed)
        return jax.tree.map(jnp.add, state.at.x, step), -np.inf, 0.0

    newton = Newton(lambda p: given.visit(p, prior), propose, TOLERANCE, MAX_STEPS)
    start = given.begin(prior) if begin is None else begin
    end, status = newton.run(newton.resume(given.visit(start, prior)))
    mode: Parameters = end.x
    return mode, status


class _Evidence(NamedTuple):
    """The votes of all judges on labelled items, possibly missing, by counts.

    In Newton's steps the items' 2 x 2 blocks are eliminated, so that a step solves a J x J system.
    """

    votes: Float[Array, "item judge class"]
    """How many votes of each judge are for each class."""
    log_error: LogProbs
    """log p(observed label | true class)."""
    weight: ItemValues
    """0 where the label is unknown."""

    def joint(self, logits: Float[Array, "item judge"]) -> LogProbs:
        """Return log p(votes, label | true class), up to a term that all classes share."""
        each = logits + np.log(self.votes.shape[-1] - 1)
        return self.log_error + jnp.einsum("ijk,ij->ik", self.votes, each)

    def log_likelihood(self, logits: Float[Array, "item judge"]) -> Float[Array, ""]:
        """Return the log-likelihood of votes and labels, true classes summed out, up to a constant."""
        shared = (self.votes.sum(2) * jnp.logaddexp(0.0, logits)).sum(1)
        each = jax.nn.logsumexp(self.joint(logits), axis=1) - shared
        return jnp.sum(self.weight * each)

    def begin(self, prior: ItemResponsePrior) -> Parameters:
        """Return a start: log-odds of the shares of right votes."""
        right, trials = self._right(jnp.zeros(self.votes.shape[:2])), self._trials()
        of_judges, of_items = (
            jax.scipy.special.logit((right.sum(axis) + 1) / (trials.sum(axis) + 2))
            for axis in (0, 1)
        )
        return Parameters(
            of_judges - of_judges.mean(),
            -of_items,
            jnp.full(of_items.shape, prior.log_discrimination[0]),
        )

    def visit(self, p: Parameters, prior: ItemResponsePrior) -> Point:
        """Return value and gradient, with its largest component as the gap."""

        def value(p: Parameters) -> Float[Array, ""]:
            return _negative_log_prior(p, prior) - self.log_likelihood(link(p))

        at, gradient = jax.value_and_grad(value)(p)
        return Point(p, at, jnp.stack([jnp.abs(g).max() for g in gradient]).max(), gradient)

    def step(
        self, at: Point, prior: ItemResponsePrior, damping: Scalar, exact: Scalar
    ) -> Parameters:
        """Return the damped Newton step, NaN where the curvature is not positive definite."""
        curvature = self._curvature(at.x, prior, exact)
        of_items = jnp.stack(at.gradient[1:], 1)
        ability, items = arrow_step(*curvature, at.gradient.ability, of_items, damping)
        return Parameters(ability, items[:, 0], items[:, 1])

    def variances(self, p: Parameters, prior: ItemResponsePrior) -> tuple[ItemValues, ItemValues]:
        """Return the variances of items' parameters, for fixed abilities."""
        inverse = block_inverses(self._curvature(p, prior, 0.0)[2], 0.0)
        return inverse[:, 0, 0], inverse[:, 1, 1]

    def _trials(self) -> Float[Array, "item judge"]:
        return self.weight[:, None] * self.votes.sum(2)

    def _right(self, logits: Float[Array, "item judge"]) -> Float[Array, "item judge"]:
        """Return the expected number of right votes over the possible true classes."""
        classes = self.weight[:, None] * jax.nn.softmax(self.joint(logits), axis=1)
        return jnp.einsum("ijk,ik->ij", self.votes, classes)

    def _curvature(
        self, p: Parameters, prior: ItemResponsePrior, exact: Scalar
    ) -> tuple[
        Float[Array, " judge"], Float[Array, "item two judge"], Float[Array, "item two two"]
    ]:
        """Return the Hessian, or with exact = 0 its expectation, as `arrow_step` takes it."""
        a = jnp.exp(p.log_discrimination)[:, None]
        logits = link(p)
        trials = self._trials()
        chance = jax.nn.sigmoid(logits)
        error = exact * (trials * chance - self._right(logits))
        spread = trials * chance * (1 - chance)
        cross = spread * logits + error
        inner = jnp.stack(
            [
                (a**2 * spread).sum(1) + 1 / prior.difficulty[1] ** 2,
                -(a * cross).sum(1),
                (cross * logits).sum(1) + 1 / prior.log_discrimination[1] ** 2,
            ]
        )
        return (
            (a**2 * spread).sum(0) + 1,
            jnp.stack([-(a**2) * spread, a * cross], 1),
            jnp.stack([inner[:2], inner[1:]], 1).transpose(2, 0, 1),
        )


@jit_inline()
def evidence(
    votes: Int[Array, "item judge class"],
    labels: ItemCodes,
    weight: ItemValues,
    noise: Scalar = 0.0,
) -> _Evidence:
    """Return counts of votes with labels, of which a known share is wrong."""
    error = jnp.log(noise_matrix(noise, votes.shape[-1]))[:, jnp.maximum(labels, 0)].T
    return _Evidence(votes.astype(weight.dtype), error, jnp.where(labels >= 0, weight, 0.0))


def block_inverses(
    block: Float[Array, "block two two"], damping: Scalar
) -> Float[Array, "block two two"]:
    """Return the inverses of damped 2 x 2 blocks."""
    (a, b), (_, c) = jnp.moveaxis(block + damping * jnp.eye(2), 0, 2)
    return jnp.moveaxis(jnp.array([[c, -b], [-b, a]]) / (a * c - b**2), 2, 0)


def arrow_step(
    diagonal: Float[Array, " outer"],
    cross: Float[Array, "block two outer"],
    block: Float[Array, "block two two"],
    outer: Float[Array, " outer"],
    inner: Float[Array, "block two"],
    damping: Scalar,
) -> tuple[Float[Array, " outer"], Float[Array, "block two"]]:
    r"""Return the damped Newton step, from the two parts of the gradient, for an arrowhead curvature.

    .. math:: B = \begin{pmatrix} \mathrm{diag}(o) & C^T \\ C & \mathrm{blocks} \end{pmatrix}

    Its inner blocks are coupled through the outer parameters only. They are eliminated (Schur
    complement), which leaves a system in the outer parameters. The step is NaN where that is not
    positive definite.
    """
    inverse = block_inverses(block, damping)
    solved, scaled_gradient = inverse @ cross, inverse @ inner[..., None]
    flat = cross.reshape(-1, len(outer))
    reduced = jnp.diag(diagonal) - flat.T @ solved.reshape(flat.shape)
    step = positive_step(reduced, outer - flat.T @ scaled_gradient.reshape(-1), damping)
    return step, -(scaled_gradient[..., 0] + solved @ step)


def _negative_log_prior(p: Parameters, prior: ItemResponsePrior) -> Float[Array, ""]:
    """Return the negative log-density of the priors, up to a constant."""
    total = jnp.sum(p.ability**2)
    for values, (location, scale) in zip(p[1:], prior, strict=True):
        total += jnp.sum(((values - location) / scale) ** 2)
    return 0.5 * total


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ItemResponse(JaxMethod):
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

    prior: ItemResponsePrior | None = field(default_factory=ItemResponsePrior)
    inference: NUTS | None = None
    label_noise: float = 0.0

    @jax.jit
    def _fitted(self, data: Training) -> Fit:
        if self.prior is None and self.inference is not None:
            raise JudgeBayesError(
                "NUTS needs given priors; pass a `prior`, such as ItemResponsePrior(), or omit "
                "`inference` to estimate the priors."
            )
        votes, labels, weight, key = data
        votes_and_labels = evidence(votes.counts(), labels, weight, self.label_noise)
        used = (votes_and_labels.votes.sum((1, 2)) > 0) & (votes_and_labels.weight > 0)
        if self.inference is None:
            if self.prior is None:
                mode, _, status = empirical_bayes_mode(votes_and_labels, used)
            else:
                mode, status = joint_mode(votes_and_labels, self.prior)
            return Fit(self, one_draw(mode._asdict()), status, {"used": used})

        result = self.inference.solve(self.problem(votes, labels, weight), key)
        return Fit(self, result.draws, result.status, {"used": used}, chains=result.chains)

    def problem(self, votes: Votes, labels: Labels, weight: ItemValues | None = None) -> Problem:
        """Return the problem for NUTS: the program with these data, and its likelihood by counts."""
        prior = ItemResponsePrior() if self.prior is None else self.prior
        index = jnp.maximum(jnp.asarray(votes.index, int), MISSING)
        data = PanelData(index, jnp.asarray(labels), weight)
        given = evidence(
            votes.counts(),
            data.labels,
            jnp.ones(votes.n_items) if weight is None else weight,
            self.label_noise,
        )

        def likelihood(sites: Sites) -> Float[Array, ""]:
            return given.log_likelihood(link(Parameters(**sites)))

        program = ItemResponseModel(votes.n_classes, prior, self.label_noise)
        return Problem(program, data, log_likelihood=likelihood)


def shares_of(fit: Fit) -> dict[str, float]:
    """Return the variance shares of a fit (P2 eq 7), averaged over the draws."""
    used = np.asarray(fit.details["used"])
    each = [
        variance_shares(ability, np.asarray(difficulty)[used], np.asarray(log_discrimination)[used])
        for ability, difficulty, log_discrimination in zip(
            fit.draws["ability"],
            fit.draws["difficulty"],
            fit.draws["log_discrimination"],
            strict=True,
        )
    ]
    return {name: float(np.mean([shares[name] for shares in each])) for name in each[0]}


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
