"""The joint mode of the 2PL model by damped Newton steps, and empirical Bayes priors.

An `Objective` hides how the votes are stored: `Table` is for an array of items by judges; a list of
votes has its own (`judgebayes.item_response.sparse`).
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

__all__ = [
    "Objective",
    "Table",
    "empirical_bayes_mode",
    "initial_parameters",
    "joint_mode",
    "negative_log_prior",
    "point",
]

MAX_STEPS = 500
TOLERANCE = 1e-6
PRIOR_ROUNDS = 200
PRIOR_TOLERANCE = 1e-4
"""Tolerance for changes of locations and scales of the estimated priors between two rounds."""


@runtime_checkable
class Objective(Protocol):
    """The negative log-posterior of votes, independent of their storage."""

    def begin(self, prior: Prior) -> Parameters:
        """Return a start."""
        ...

    def visit(self, p: Parameters, prior: Prior) -> Point:
        """Return value and gradient."""
        ...

    def step(self, at: Point, prior: Prior, damping: Scalar, exact: Scalar) -> Parameters:
        """Return the damped Newton step, with the exact curvature or, if exact = 0, the expected one.

        Where the curvature is not positive definite the result is undefined and may be NaN.
        """
        ...

    def variances(
        self, p: Parameters, prior: Prior
    ) -> tuple[Float[Array, "*lead item"], Float[Array, "*lead item"]]:
        """Return the variances of items' difficulties and log-discriminations, for fixed abilities."""
        ...


class _Round(NamedTuple):
    """One round of estimating the priors of the items."""

    prior: Prior
    mode: Parameters
    status: Int[Array, ""]
    change: Float[Array, ""]
    step: Int[Array, ""]


def empirical_bayes_mode(
    objective: Objective, used: Bool[Array, "*lead item"]
) -> tuple[Parameters, Prior, Int[Array, ""]]:
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
    usual: Prior = jax.tree.map(jnp.asarray, Prior())
    n = used.sum()

    def update(mode: Array, variance: Array, usual: Scalar) -> tuple[Array, Array]:
        mean = jnp.where(used, mode, 0.0).sum() / jnp.maximum(n, 1)
        square = jnp.where(used, (mode - mean) ** 2 + variance, 0.0).sum()
        return mean, jnp.sqrt((usual**2 + square) / (n + 1))

    def running(state: _Round) -> Bool[Array, ""]:
        return (state.change > PRIOR_TOLERANCE) & (state.step < PRIOR_ROUNDS)

    def advance(state: _Round) -> _Round:
        mode, status = joint_mode(objective, state.prior, state.mode)
        shift = mode.ability.mean()  # 0 at convergence; without this it takes hundreds of rounds
        mode = mode._replace(ability=mode.ability - shift, difficulty=mode.difficulty - shift)
        difficulty_variance, discrimination_variance = objective.variances(mode, state.prior)
        unit, width = usual.log_discrimination
        new_prior = Prior(
            update(mode.difficulty, difficulty_variance, usual.difficulty[1]),
            (unit, update(mode.log_discrimination, discrimination_variance, width)[1]),
        )
        differences = jax.tree.map(lambda a, b: jnp.abs(a - b), new_prior, state.prior)
        change = jnp.stack(jax.tree.leaves(differences)).max()
        return _Round(new_prior, mode, status, change, state.step + 1)

    initial = _Round(
        usual,
        objective.begin(usual),
        jnp.asarray(0),
        jnp.asarray(jnp.inf),
        jnp.asarray(0),
    )
    end = jax.lax.while_loop(running, advance, initial)
    unconverged = when(end.change > PRIOR_TOLERANCE, Status.MAX_STEPS)
    return end.mode, end.prior, worst(end.status, unconverged)


def initial_parameters(
    judges: Float[Array, "two judge"], items: Float[Array, "two *lead item"], prior: Prior
) -> Parameters:
    """Return initial parameters: log-odds of the shares of right votes, from right and all votes."""
    share, each = ((right + 1) / (trials + 2) for right, trials in (judges, items))
    return Parameters(
        jax.scipy.special.logit(share) - jax.scipy.special.logit(share).mean(),
        -jax.scipy.special.logit(each),
        jnp.full(each.shape, prior.log_discrimination[0]),
    )


def negative_log_prior(p: Parameters, prior: Prior) -> Float[Array, ""]:
    """Return the negative log-density of the priors, up to a constant."""
    total = jnp.sum(p.ability**2)
    for values, (location, scale) in zip(p[1:], prior, strict=True):
        total += jnp.sum(((values - location) / scale) ** 2)
    return 0.5 * total


def joint_mode(
    objective: Objective, prior: Prior, begin: Parameters | None = None
) -> tuple[Parameters, Int[Array, ""]]:
    """Return the joint mode of all parameters, by damped Newton steps.

    If a step with the exact curvature does not descend, the expected curvature (Fisher information) is
    used, with which a sufficiently damped step always descends. With label noise, the curvature is
    that for fixed class probabilities, which is at least that of the objective (as in EM): steps
    descend, but more slowly the less the votes determine the true class.
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
    """Return an evaluated point, with the largest component of the gradient as its gap."""
    return Point(p, value, jnp.stack([jnp.abs(g).max() for g in gradient]).max(), gradient)


class Table(NamedTuple):
    """Votes of all judges on all items, possibly missing, as an array.

    The items' 2 x 2 blocks are eliminated, so that a step solves a J x J system.
    """

    given: Evidence

    def begin(self, prior: Prior) -> Parameters:
        """Return a start."""
        right = self._right(jnp.zeros(self.given.votes.shape[:2]))
        both = jnp.stack([right, self._trials()])
        return initial_parameters(both.sum(1), both.sum(2), prior)

    def visit(self, p: Parameters, prior: Prior) -> Point:
        """Return value and gradient."""

        def value(p: Parameters) -> Float[Array, ""]:
            return negative_log_prior(p, prior) - log_likelihood(link(p), self.given)

        return point(p, *jax.value_and_grad(value)(p))

    def step(self, at: Point, prior: Prior, damping: Scalar, exact: Scalar) -> Parameters:
        """Return the damped Newton step, NaN where the curvature is not positive definite."""
        arrow = self._curvature(at.x, prior, exact)
        ability, items = arrow.step(at.gradient.ability, jnp.stack(at.gradient[1:], 1), damping)
        return Parameters(ability, items[:, 0], items[:, 1])

    def variances(
        self, p: Parameters, prior: Prior
    ) -> tuple[Float[Array, " item"], Float[Array, " item"]]:
        """Return the variances of items' parameters, for fixed abilities."""
        inverse = self._curvature(p, prior, 0.0).inverse(0.0)
        return inverse[:, 0, 0], inverse[:, 1, 1]

    def _trials(self) -> Float[Array, "item judge"]:
        return self.given.weight[:, None] * self.given.votes.sum(2)

    def _right(self, logits: Float[Array, "item judge"]) -> Float[Array, "item judge"]:
        """Return the expected number of right votes over the possible true classes."""
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
        cross = spread * logits + error
        inner = jnp.stack(
            [
                (a**2 * spread).sum(1) + 1 / prior.difficulty[1] ** 2,
                -(a * cross).sum(1),
                (cross * logits).sum(1) + 1 / prior.log_discrimination[1] ** 2,
            ]
        )
        return Arrow(
            (a**2 * spread).sum(0) + 1,
            jnp.stack([-(a**2) * spread, a * cross], 1),
            jnp.stack([inner[:2], inner[1:]], 1).transpose(2, 0, 1),
        )
