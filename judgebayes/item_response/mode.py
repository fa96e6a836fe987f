"""The joint mode of the 2PL model by damped Newton steps, and the priors that the votes ask for.

How the votes are held is the business of an `Objective`: `Table` takes all items by all judges, a
list of votes has one of its own (`judgebayes.item_response.sparse`).
"""

from typing import NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from judgebayes.arrays import Scalar
from judgebayes.inference.fast.irt import Evidence, class_probabilities, log_likelihood
from judgebayes.inference.newton import Arrow, Newton, Point, State, Trial
from judgebayes.inference.status import Status, when, worst
from judgebayes.models.irt import Parameters, Prior, link

__all__ = ["Objective", "Table", "beginning", "joint_mode", "learnt_mode", "point", "surprise"]

MAX_STEPS = 500
TOLERANCE = 1e-6
PRIOR_ROUNDS = 200
PRIOR_TOLERANCE = 1e-4
"""Of locations and scales of learnt priors, between two rounds."""


@runtime_checkable
class Objective(Protocol):
    """The negative log-posterior of votes, however they are held."""

    def begin(self, prior: Prior) -> Parameters:
        """Return a start."""
        ...

    def visit(self, p: Parameters, prior: Prior) -> Point:
        """Return value and gradient."""
        ...

    def step(self, at: Point, prior: Prior, damping: Scalar, exact: Scalar) -> Parameters:
        """Return the damped Newton step, of the exact curvature or with exact = 0 the expected one.

        Where the curvature is not positive it may be anything, NaN too.
        """
        ...

    def variances(
        self, p: Parameters, prior: Prior
    ) -> tuple[Float[Array, "*lead item"], Float[Array, "*lead item"]]:
        """Return those of items' difficulties and log-discriminations, abilities being as they are."""
        ...


class _Round(NamedTuple):
    """One round of learning the priors of the items."""

    prior: Prior
    mode: Parameters
    status: Int[Array, ""]
    moved: Float[Array, ""]
    step: Int[Array, ""]


def learnt_mode(
    objective: Objective, used: Bool[Array, "*lead item"]
) -> tuple[Parameters, Prior, Int[Array, ""]]:
    r"""Return the joint mode under the priors of the items that the votes ask for.

    EM with the items' posteriors taken as normal about the mode: of n used items with modes
    :math:`m_i`, their mean :math:`\bar m`, and posterior variances :math:`v_i`,

    .. math:: \mu = \bar m, \qquad
              \sigma^2 = \frac{\sigma_0^2 + \sum_i (m_i - \bar m)^2 + v_i}{n + 1}

    where the usual scale :math:`\sigma_0` counts for one item, so that no scale goes to 0. The
    location of log-discriminations stays: it is the unit. Were it free, the mode would shrink
    abilities without end while discriminations grow.

    Returns
    -------
    The mode, the learnt priors, and how it ended.
    """
    usual: Prior = jax.tree.map(jnp.asarray, Prior())
    n = used.sum()

    def learn(mode: Array, variance: Array, usual: Scalar) -> tuple[Array, Array]:
        mean = jnp.where(used, mode, 0.0).sum() / jnp.maximum(n, 1)
        square = jnp.where(used, (mode - mean) ** 2 + variance, 0.0).sum()
        return mean, jnp.sqrt((usual**2 + square) / (n + 1))

    def unfinished(state: _Round) -> Bool[Array, ""]:
        return (state.moved > PRIOR_TOLERANCE) & (state.step < PRIOR_ROUNDS)

    def advance(state: _Round) -> _Round:
        mode, status = joint_mode(objective, state.prior, state.mode)
        shift = mode.ability.mean()  # 0 in the end; step by step it would take hundreds of rounds
        mode = mode._replace(ability=mode.ability - shift, difficulty=mode.difficulty - shift)
        of_difficulty, of_slope = objective.variances(mode, state.prior)
        unit, width = usual.log_discrimination
        found = Prior(
            learn(mode.difficulty, of_difficulty, usual.difficulty[1]),
            (unit, learn(mode.log_discrimination, of_slope, width)[1]),
        )
        apart = jax.tree.map(lambda a, b: jnp.abs(a - b), found, state.prior)
        moved = jnp.stack(jax.tree.leaves(apart)).max()
        return _Round(found, mode, status, moved, state.step + 1)

    begin = _Round(
        usual,
        objective.begin(usual),
        jnp.asarray(0),
        jnp.asarray(jnp.inf),
        jnp.asarray(0),
    )
    end = jax.lax.while_loop(unfinished, advance, begin)
    late = when(end.moved > PRIOR_TOLERANCE, Status.MAX_STEPS)
    return end.mode, end.prior, worst(end.status, late)


def beginning(
    judges: Float[Array, "two judge"], items: Float[Array, "two *lead item"], prior: Prior
) -> Parameters:
    """Return a start: log-odds of the shares of right votes, from right votes and all votes."""
    share, each = ((right + 1) / (trials + 2) for right, trials in (judges, items))
    return Parameters(
        jax.scipy.special.logit(share) - jax.scipy.special.logit(share).mean(),
        -jax.scipy.special.logit(each),
        jnp.full(each.shape, prior.log_discrimination[0]),
    )


def surprise(p: Parameters, prior: Prior) -> Float[Array, ""]:
    """Return the negative log-density of the priors, up to a constant."""
    total = jnp.sum(p.ability**2)
    for values, (location, scale) in zip(p[1:], prior, strict=True):
        total += jnp.sum(((values - location) / scale) ** 2)
    return 0.5 * total


def joint_mode(
    objective: Objective, prior: Prior, begin: Parameters | None = None
) -> tuple[Parameters, Int[Array, ""]]:
    """Return the mode of all parameters together, by damped Newton steps.

    Where a step with the exact curvature does not descend, the expected one (Fisher's) is tried,
    which always does once it is damped enough. Where labels are noisy the curvature is that of the
    votes with the classes' probabilities as they are at the point, which is no less than that of
    the objective (as in EM): steps descend all the same, the slower the less the votes tell of the
    true class.
    """

    def propose(state: State) -> Trial:
        step = objective.step(state.at, prior, state.damping, 1.0 - state.failed)
        return Trial(jax.tree.map(jnp.add, state.at.x, step))

    newton = Newton(lambda p: objective.visit(p, prior), propose, TOLERANCE, MAX_STEPS)
    start = objective.begin(prior) if begin is None else begin
    end, status = newton.run(newton.resume(objective.visit(start, prior)))
    mode: Parameters = end.x
    return mode, status


def point(p: Parameters, value: Float[Array, ""], gradient: Parameters) -> Point:
    """Return a visited point, its gap the largest component of the gradient."""
    return Point(p, value, jnp.stack([jnp.abs(g).max() for g in gradient]).max(), gradient)


class Table(NamedTuple):
    """Votes of all judges on all items, which may be missing.

    The items' 2 x 2 blocks are eliminated, so that a step costs a J x J system.
    """

    given: Evidence

    def begin(self, prior: Prior) -> Parameters:
        """Return a start."""
        right = self._right(jnp.zeros(self.given.votes.shape[:2]))
        both = jnp.stack([right, self._trials()])
        return beginning(both.sum(1), both.sum(2), prior)

    def visit(self, p: Parameters, prior: Prior) -> Point:
        """Return value and gradient."""

        def value(p: Parameters) -> Float[Array, ""]:
            return surprise(p, prior) - log_likelihood(link(p), self.given)

        return point(p, *jax.value_and_grad(value)(p))

    def step(self, at: Point, prior: Prior, damping: Scalar, exact: Scalar) -> Parameters:
        """Return the damped Newton step, NaN where the curvature is not positive."""
        arrow = self._curvature(at.x, prior, exact)
        ability, items = arrow.step(at.gradient.ability, jnp.stack(at.gradient[1:], 1), damping)
        return Parameters(ability, items[:, 0], items[:, 1])

    def variances(
        self, p: Parameters, prior: Prior
    ) -> tuple[Float[Array, " item"], Float[Array, " item"]]:
        """Return those of items' parameters, abilities being as they are."""
        inverse = self._curvature(p, prior, 0.0).inverse(0.0)
        return inverse[:, 0, 0], inverse[:, 1, 1]

    def _trials(self) -> Float[Array, "item judge"]:
        return self.given.weight[:, None] * self.given.votes.sum(2)

    def _right(self, logits: Float[Array, "item judge"]) -> Float[Array, "item judge"]:
        """Return how many votes are right, in the mean over the classes that may be true."""
        classes = self.given.weight[:, None] * class_probabilities(logits, self.given)
        return jnp.einsum("ijk,ik->ij", self.given.votes, classes)

    def _curvature(self, p: Parameters, prior: Prior, exact: Scalar) -> Arrow:
        """Return the Hessian, or with exact = 0 its expectation."""
        a = jnp.exp(p.log_discrimination)[:, None]
        logits = link(p)
        trials = self._trials()
        chance = jax.nn.sigmoid(logits)
        error = exact * (trials * chance - self._right(logits))
        spread = trials * chance * (1 - chance)
        slope = spread * logits + error
        inner = jnp.stack(
            [
                (a**2 * spread).sum(1) + 1 / prior.difficulty[1] ** 2,
                -(a * slope).sum(1),
                (slope * logits).sum(1) + 1 / prior.log_discrimination[1] ** 2,
            ]
        )
        return Arrow(
            (a**2 * spread).sum(0) + 1,
            jnp.stack([-(a**2) * spread, a * slope], 1),
            jnp.stack([inner[:2], inner[1:]], 1).transpose(2, 0, 1),
        )
