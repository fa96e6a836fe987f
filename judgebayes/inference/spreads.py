r"""A normal near the posterior of a program with log standard deviations, for a sampler's metric.

The joint mode of a hierarchical program has spreads near 0, far from the posterior's mass. Given the
spreads s, the other parameters x have a mode :math:`\hat x(s)` and a normal there with covariance C(s),
which also gives the approximate (Laplace) posterior of the spreads,

.. math:: \log p(s) \approx \log p(\hat x(s), s) + \tfrac{1}{2} \log |C(s)|

Its mode is found by Newton steps on differences, from several starts. By the law of total covariance,
x then has

.. math:: C(\hat s) + D S D^\top, \qquad D = \partial \hat x / \partial s

with S the covariance of the spreads, and its covariance with them is D S.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from judgebayes.inference.density import log_density
from judgebayes.inference.optimise import minimise
from judgebayes.inference.problem import Problem

LEAST_CURVATURE = 0.1
"""The least curvature at the mode given the spreads, along any axis."""
STEP = 0.6
"""The distance of the differences, in the spreads' prior standard deviations."""
ROUNDS = 4
FAR = 2.0
"""The distance of further starts, one below along each spread."""
LONGEST = 1.6
"""The longest Newton step along one spread, in its prior standard deviations."""
LEAST = 0.25
"""The least curvature along one spread, as a share of its prior's."""


class Near(NamedTuple):
    """A normal near the posterior, on the parameters flattened in the order of their names."""

    mean: Float[Array, " parameter"]
    factor: Float[Array, "parameter parameter"]
    """A matrix whose product with its transpose is the covariance."""


class _At(NamedTuple):
    """The normal given the spreads."""

    centre: Float[Array, " parameter"]
    factor: Float[Array, "parameter parameter"]
    log_marginal: Float[Array, ""]


def near_posterior(problem: Problem) -> Near:
    """Return a normal near the posterior: that of the parameters given the spreads, and of the spreads.

    Parameters
    ----------
    problem
        A problem whose parameters are unbounded, with the names of its spreads.
    """
    box = problem.box()
    (mean, unravel), (deviation, _) = ravel_pytree(box.mean), ravel_pytree(box.deviation)
    named = {n: jnp.full(x.shape, n in problem.spreads) for n, x in box.mean.items()}
    is_spread = ravel_pytree(named)[0]
    size = sum(box.mean[name].size for name in problem.spreads)
    place = jnp.nonzero(is_spread, size=size)[0]
    prior_mean, prior_deviation = mean[place], deviation[place]
    infinite = jnp.full_like(mean, jnp.inf)

    def log_joint(x: Float[Array, " parameter"]) -> Float[Array, ""]:
        return log_density(problem.joint, unravel(x))

    def given(spreads: Float[Array, " spread"], start: Float[Array, " parameter"]) -> _At:
        """Return the normal given spreads in units of their priors' standard deviations."""
        at = prior_mean + prior_deviation * spreads

        def loss(x: Float[Array, " parameter"]) -> Float[Array, ""]:
            return -log_joint(x.at[place].set(at)) / problem.scale

        centre = minimise(loss, start, -infinite, infinite).x.at[place].set(at)
        hessian = problem.scale * jax.hessian(loss)(centre)
        curvature, axes = jnp.linalg.eigh(hessian + jnp.diag(jnp.where(is_spread, 1.0, 0.0)))
        curvature = jnp.maximum(curvature, LEAST_CURVATURE)
        factor = jnp.where(is_spread[:, None], 0.0, axes / jnp.sqrt(curvature))
        return _At(centre, factor, log_joint(centre) - jnp.log(curvature).sum() / 2)

    steps = jnp.concatenate([jnp.zeros((1, size)), STEP * jnp.eye(size), -STEP * jnp.eye(size)])

    def around(spreads: Float[Array, " spread"], start: Float[Array, " parameter"]) -> _At:
        return jax.lax.map(lambda step: given(spreads + step, start), steps)

    def derivatives(each: Any) -> tuple[Array, Array]:
        """Return the first derivatives by the spreads, and the negative second ones."""
        middle, above, below = each[0], each[1 : size + 1], each[size + 1 :]
        return (above - below) / (2 * STEP), (2 * middle - above - below) / STEP**2

    def newton(_: Any, at: tuple[Array, ...]) -> tuple[Array, ...]:
        spreads, start, best, best_value, best_centre = at
        each = around(spreads, start)
        value, centre = each.log_marginal[0], each.centre[0]
        better = value > best_value
        slope, curvature = derivatives(each.log_marginal)
        step = jnp.clip(slope / jnp.maximum(curvature, LEAST), -LONGEST, LONGEST)
        return (
            spreads + jnp.where(jnp.isfinite(step), step, 0.0),
            centre,
            jnp.where(better, spreads, best),
            jnp.where(better, value, best_value),
            jnp.where(better, centre, best_centre),
        )

    def search(spreads: Float[Array, " spread"]) -> tuple[Array, Array, Array]:
        """Return the best spreads of a search from one start, their value and their centre."""
        first = given(spreads, mean)
        lowest = jnp.asarray(-jnp.inf, mean.dtype)
        at = (spreads, first.centre, spreads, lowest, first.centre)
        _, _, best, value, centre = jax.lax.fori_loop(0, ROUNDS, newton, at)
        return best, value, centre

    starts = jnp.concatenate([jnp.zeros((1, size)), -FAR * jnp.eye(size)])
    best_by_start, values, centres = jax.lax.map(search, starts)
    chosen = jnp.argmax(jnp.where(jnp.isnan(values), -jnp.inf, values))
    best, centre = best_by_start[chosen], centres[chosen]
    each = around(best, centre)
    curvature = jnp.maximum(derivatives(each.log_marginal)[1], LEAST)
    follow = derivatives(each.centre)[0] / jnp.sqrt(curvature)[:, None]
    covariance = each.factor[0] @ each.factor[0].T + follow.T @ follow
    values, axes = jnp.linalg.eigh(covariance)
    return Near(each.centre[0], axes * jnp.sqrt(values))
