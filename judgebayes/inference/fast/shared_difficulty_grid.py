r"""Judges who share an item's difficulty, fitted fast: EM, and answers without an item's own label.

`judgebayes.models.shared_difficulty` has the story. The steps alternate (expectation maximisation):

- the joint posterior r_iyh of each item's label (where it may be wrong) and ease, given the parameters;
- a Newton step of every judge's parameters theta_j under their common prior, and one of s, with the
  curvature of the votes, in which no item's ease is known (Louis 1982);
- the means m and beta_c given theta, and the variances v and u given theta and its uncertainty, the
  inverse of the Hessian (empirical Bayes: Laplace's approximation of what the judges' parameters leave).

At the end the parameters are the mode of the program's density given the variances.

Without item i, the judges' parameters are, to first order,

.. math:: \theta_j^{(-i)} \approx \theta_j - H_j^{-1} g_{ij}

with the Hessian H_j and the gradient g_ij of the item's votes. So every item is predicted without its
own label from one fit, by sums that are matrix products.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from judgebayes.arrays import ItemCodes, ItemValues, LogProbs
from judgebayes.inference.status import ended
from judgebayes.models.base import noise_matrix
from judgebayes.models.shared_difficulty import (
    EASE,
    LOG_EASE,
    SharedDifficultyPrior,
    distances,
    features,
    log_vote_table,
)

Scalar = float | Float[Array, ""]

FIRST_EASE = 0.7
LARGEST_STEP = 2.0
"""Of a parameter in one step, in log-odds."""
LOG_SCALES = np.linspace(np.log(0.06), np.log(1.8), 9)
EASES = np.array([0.05, 0.5, 1.0, 1.6, 2.4])
"""The grid over which the scale and the effect of the ease are averaged."""
LOG_SCALE = (math.log(0.35), 2.0)
"""Location and scale of the normal prior of the scale's logarithm."""
EASE_SPREAD = 2.0
"""Scale of the half-normal prior of the ease's effect given the scale."""
LEAST_SHARE = 0.05
"""The least curvature in the ease, as a share of that if the ease of every item were known."""


class _Judges(NamedTuple):
    """The mode of the judges' parameters, and what each item contributes to it."""

    at: "_State"
    responsibilities: Float[Array, "item class node"]
    status: Int[Array, ""]


class _State(NamedTuple):
    parameters: Float[Array, "judge parameter"]
    """Reliability, then biases."""
    covariance: Float[Array, "judge parameter parameter"]
    ease: Float[Array, ""]
    location: Float[Array, " parameter"]
    """The parameters' common means."""
    variance: Float[Array, " parameter"]
    change: Float[Array, ""]
    step: Int[Array, ""]


def _at_nodes(
    count: Float[Array, "item judge vote"], table: Float[Array, "judge vote class node"]
) -> Float[Array, "item class node"]:
    """Return log p(votes of i | y, h)."""
    flat = count.reshape(len(count), -1) @ table.reshape(count.shape[1] * count.shape[2], -1)
    return flat.reshape(len(count), *table.shape[2:])


def _prior_moments(
    prior: SharedDifficultyPrior, n_parameters: int
) -> tuple[Float[Array, " parameter"], Float[Array, " parameter"], Float[Array, "2 parameter"]]:
    """Return the mean and variance of the common means, and the shapes and scales of variances."""
    first = np.arange(n_parameters) == 0
    mean = jnp.where(first, prior.mean[0], 0.0)
    spread = jnp.where(first, prior.mean[1], prior.level) ** 2
    shapes = [
        jnp.where(first, own, bias)
        for own, bias in zip(prior.variance, prior.level_variance, strict=True)
    ]
    return mean, spread, jnp.stack(shapes)


def judges_mode(
    count: Float[Array, "item judge vote"],
    labels: ItemCodes,
    weight: ItemValues,
    log_class: Float[Array, " class"],
    noise: Scalar,
    prior: SharedDifficultyPrior,
    *,
    symmetric: bool,
    tolerance: Scalar,
    max_steps: int,
) -> _Judges:
    """Return the mode of the judges' parameters on the labelled items, as in this file's first lines.

    Parameters
    ----------
    count
        The number of votes by item, judge and class.
    labels, weight
        Class indices; the weight is 0 where the label is unknown.
    log_class
        The log prior of the label (it matters only with label noise).
    noise
        The known share of the labels that are wrong.
    prior, symmetric
        As in the program.
    tolerance, max_steps
        The largest change of a parameter in the last step, and the number of steps.
    """
    n_items, n_judges, n_classes = count.shape
    of_vote, distance = (
        jnp.asarray(x) for x in (features(n_classes, symmetric), distances(n_classes))
    )
    size, nodes = of_vote.shape[-1], jnp.asarray(EASE)
    cast = count.sum(-1)
    clamped = jnp.log(noise_matrix(noise, n_classes))[:, jnp.maximum(labels, 0)].T + log_class
    seen = (weight @ cast > 0).astype(count.dtype)
    judges = jnp.maximum(seen.sum(), 1.0)
    mean, mean_variance, (shape, scale) = _prior_moments(prior, size)
    kind = jnp.asarray(np.arange(size) > 0).astype(int)

    def expected(parameters: Array, ease: Array) -> Float[Array, "item class node"]:
        table = log_vote_table(parameters, ease, n_classes, symmetric)
        joint = _at_nodes(count, table) + clamped[:, :, None] + jnp.asarray(LOG_EASE)
        each = jax.nn.softmax(joint.reshape(n_items, -1), axis=1).reshape(joint.shape)
        return jnp.where(weight > 0, weight, 0.0)[:, None, None] * each

    def tallied(each: Array) -> tuple[Array, Array]:
        flat = each.reshape(n_items, -1)
        votes = (count.reshape(n_items, -1).T @ flat).reshape(
            n_judges, n_classes, n_classes, len(EASE)
        )
        return votes, votes.sum(1)

    def newton(parameters: Array, votes: Array, total: Array, state: _State) -> tuple[Array, Array]:
        ease = state.ease
        p = jnp.exp(log_vote_table(parameters, ease, n_classes, symmetric))
        mean_feature = jnp.einsum("jvyq,vyp->jyqp", p, of_vote)
        gradient = jnp.einsum("jvyq,vyp->jp", votes, of_vote) - jnp.einsum(
            "jyq,jyqp->jp", total, mean_feature
        )
        weighted = jnp.einsum("jyq,jvyq->jvy", total, p)
        hessian = jnp.einsum("jvy,vyp,vyr->jpr", weighted, of_vote, of_vote) - jnp.einsum(
            "jyq,jyqp,jyqr->jpr", total, mean_feature, mean_feature
        )
        hessian += jnp.diag(1 / state.variance)
        gradient -= (parameters - state.location) / state.variance
        factor = jnp.linalg.cholesky(hessian)
        whole = jnp.broadcast_to(jnp.eye(size), hessian.shape)
        covariance = jax.scipy.linalg.cho_solve((factor, True), whole)
        step = jnp.einsum("jpr,jr->jp", covariance, gradient)
        return parameters + jnp.clip(step, -LARGEST_STEP, LARGEST_STEP), covariance

    def next_ease(parameters: Array, ease: Array, each: Array, votes: Array, total: Array) -> Array:
        p = jnp.exp(log_vote_table(parameters, ease, n_classes, symmetric))
        first = jnp.einsum("jvyq,vy->jyq", p, distance)
        second = jnp.einsum("jvyq,vy->jyq", p, distance**2)
        slope = nodes * (first[:, None] - distance[..., None])  # of log p(vote | y, h)
        gradient = jnp.sum(votes * slope)
        curvature = jnp.einsum("jyq,jyq,q->", total, second - first**2, nodes**2)
        # What the votes leave open about an item's ease lowers the curvature: without it, the steps are
        # those of expectation maximisation, of which hundreds are needed where the ease matters little.
        of_item = _at_nodes(count, slope)
        mean = jnp.sum(each * of_item, (1, 2)) / jnp.where(weight > 0, weight, 1.0)
        open_part = jnp.sum(each * (of_item - mean[:, None, None]) ** 2)
        curvature = jnp.maximum(curvature - open_part, LEAST_SHARE * curvature)
        precision = 1 / jnp.asarray(prior.ease) ** 2
        step = (gradient - precision * ease) / (curvature + precision)
        # At most halved: zero can be a second mode, and a long step would end there.
        return ease + jnp.clip(step, -ease / 2, LARGEST_STEP)

    def advance(state: _State) -> _State:
        each = expected(state.parameters, state.ease)
        votes, total = tallied(each)
        parameters, covariance = jax.lax.fori_loop(
            0,
            2,
            lambda _, at: newton(at[0], votes, total, state),
            (state.parameters, state.covariance),
        )
        ease = next_ease(parameters, state.ease, each, votes, total)
        location = (seen @ parameters / state.variance + mean / mean_variance) / (
            judges / state.variance + 1 / mean_variance
        )
        uncertain = jnp.diagonal(covariance, axis1=1, axis2=2)
        squares = seen @ ((parameters - location) ** 2 + uncertain)
        # Reliabilities have one variance, and all biases together another.
        by_kind = jax.ops.segment_sum(jnp.stack([squares, jnp.full(size, judges)], 1), kind, 2)[
            kind
        ]
        variance = (scale + by_kind[:, 0] / 2) / (shape + 1 + by_kind[:, 1] / 2)
        moved = [
            jnp.max(jnp.abs(seen[:, None] * (parameters - state.parameters))),
            # Where it is small, votes change with its square: zero may be reached by halves.
            jnp.abs(ease - state.ease) * jnp.minimum(ease + state.ease, 1.0),
            jnp.max(jnp.abs(jnp.log(variance / state.variance))),
        ]
        change = jnp.max(jnp.stack(moved))
        return _State(parameters, covariance, ease, location, variance, change, state.step + 1)

    def running(state: _State) -> Array:
        return (state.change > tolerance) & (state.step < max_steps)

    start = _State(
        jnp.broadcast_to(mean, (n_judges, size)),
        jnp.zeros((n_judges, size, size)),
        jnp.asarray(FIRST_EASE),
        mean,
        scale / (shape + 1),
        jnp.asarray(jnp.inf),
        jnp.asarray(0),
    )
    end = jax.lax.while_loop(running, advance, start)
    # A judge without a vote on a labelled item has the common means.
    parameters = jnp.where(seen[:, None] > 0, end.parameters, end.location)
    status = ended(jnp.isfinite(end.change), end.change <= tolerance)
    return _Judges(end._replace(parameters=parameters), expected(parameters, end.ease), status)


def log_class_given(
    count: Float[Array, "item judge vote"],
    parameters: Float[Array, "judge parameter"],
    ease: Scalar,
    log_class: Float[Array, " class"],
    *,
    symmetric: bool,
) -> LogProbs:
    """Return log p(y | votes) of every item, the ease summed out."""
    table = log_vote_table(parameters, ease, count.shape[2], symmetric)
    at_node = _at_nodes(count, table) + jnp.asarray(LOG_EASE)
    return jax.nn.log_softmax(jax.nn.logsumexp(at_node, axis=-1) + log_class, axis=-1)


def _influence(
    count: Float[Array, "item judge vote"], weight: ItemValues, judges: _Judges, symmetric: bool
) -> Float[Array, "item judge parameter"]:
    """Return theta_j without item i minus theta_j, of one copy of each used item."""
    n_items, n_judges, n_classes = count.shape
    of_vote = jnp.asarray(features(n_classes, symmetric))
    once = judges.responsibilities / jnp.where(weight > 0, weight, 1.0)[:, None, None]
    p = jnp.exp(log_vote_table(judges.at.parameters, judges.at.ease, n_classes, symmetric))
    mean_feature = jnp.einsum("jvyq,vyp->jyqp", p, of_vote)
    own = jnp.einsum("ijv,iy,vyp->ijp", count, once.sum(-1), of_vote)
    flat = mean_feature.transpose(1, 2, 0, 3).reshape(-1, n_judges * of_vote.shape[-1])
    usual = (once.reshape(n_items, -1) @ flat).reshape(n_items, n_judges, -1)
    gradient = own - count.sum(-1)[..., None] * usual
    return -jnp.einsum("jpr,ijr->ijp", judges.at.covariance, gradient)


def scale_points(
    count: Float[Array, "item judge vote"],
    labels: ItemCodes,
    weight: ItemValues,
    log_class: Float[Array, " class"],
    noise: Scalar,
    judges: _Judges,
    *,
    symmetric: bool,
) -> tuple[Float[Array, " point"], Float[Array, " point"], Float[Array, " point"], LogProbs]:
    """Return scales and the ease's effects on a grid, their posterior's log-masses, held-out answers.

    Every item is predicted by judges' parameters without its own label, to first order; the held-out
    answers are averages over the grid. The grid's masses know the label, which matters little: they are
    the posterior of two numbers.
    """
    n_items, n_judges, n_classes = count.shape
    of_vote = jnp.asarray(features(n_classes, symmetric))
    shift = _influence(count, weight, judges, symmetric)
    error = jnp.log(noise_matrix(noise, n_classes))[:, jnp.maximum(labels, 0)].T
    cast = count.sum(-1)

    def at(point: Float[Array, " 2"]) -> tuple[Array, Array]:
        log_scale, ease = point
        factor = jnp.where(jnp.arange(of_vote.shape[-1]) == 0, jnp.exp(log_scale), 1.0)
        scaled = judges.at.parameters * factor
        table = log_vote_table(scaled, ease, n_classes, symmetric)
        mean_feature = jnp.einsum("jvyq,vyp->jpyq", jnp.exp(table), of_vote)
        moved = shift * factor
        change = (moved * cast[..., None]).reshape(n_items, -1) @ mean_feature.reshape(
            n_judges * of_vote.shape[-1], -1
        )
        at_node = _at_nodes(count, table) - change.reshape(n_items, n_classes, -1)
        linear = jnp.einsum("ipv,vyp->iy", jnp.einsum("ijp,ijv->ipv", moved, count), of_vote)
        log_votes = jax.nn.logsumexp(at_node + jnp.asarray(LOG_EASE), axis=-1) + linear
        log_probs = jax.nn.log_softmax(log_votes + log_class, axis=-1)
        own = jax.nn.logsumexp(log_probs + error, axis=1)
        fit = jnp.sum(jnp.where(weight > 0, weight * own, 0.0))
        location, deviation = LOG_SCALE
        log_prior = (
            -0.5 * ((log_scale - location) / deviation) ** 2 - 0.5 * (ease / EASE_SPREAD) ** 2
        )
        return fit + log_prior, log_probs

    grid = jnp.asarray([(k, s) for k in LOG_SCALES for s in EASES])
    values, log_probs = jax.lax.map(at, grid)
    log_mass = jax.nn.log_softmax(values)
    held_out = jax.nn.logsumexp(log_probs + log_mass[:, None, None], axis=0)
    return jnp.exp(grid[:, 0]), grid[:, 1], log_mass, held_out
