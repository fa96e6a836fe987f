"""Minimum empirical loss of the decisions themselves: P1's eq 8, which P1 argues against."""

from dataclasses import dataclass, field
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from judgebayes.arrays import Key
from judgebayes.inference import Status
from judgebayes.inference.point import spread
from judgebayes.inference.problem import Problem, Result, one_draw
from judgebayes.measures.scores import absolute_loss, bayes_action, drps, labelled_weight

TIED = 1e-12
IN_BULK = 0.5


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class MinimumLoss:
    r"""Minimise the mean absolute error of the Bayes actions on the labelled items (P1 eq 8).

    .. math:: \hat\theta \in \arg\min_\theta \sum_i w_i |\hat y_i(\theta) - y_i| / \sum_i w_i

    The objective is a step function without a useful gradient. It is evaluated at many points, half of
    them spread over the whole box and half over the bulk of the prior. Of the points with the least
    error, the one with the least DRPS is chosen.
    """

    candidates: int = field(default=4096, metadata={"static": True})
    uses_prior: ClassVar[bool] = False

    def solve(self, problem: Problem, key: Key) -> Result:  # noqa: ARG002
        """Return the candidate with the least error. `status` is always CONVERGED."""
        low, high, mean, deviation, unravel = problem.box()
        cube = jnp.asarray(spread(self.candidates, low.shape[0]))
        bulk = int(IN_BULK * self.candidates)
        near = mean + 2 * deviation * cube[:bulk]
        wide = (low + high) / 2 + (high - low) / 2 * cube[bulk:]
        points = jnp.clip(jnp.concatenate([near, wide]), low, high)
        labels, weight, _ = problem.targets
        weight = labelled_weight(labels, weight)
        total = weight.sum()

        def evaluate(point: Float[Array, " parameter"]) -> Float[Array, " 2"]:
            sites = unravel(point)
            log_probs = problem.predict(sites)
            decision = bayes_action(log_probs, absolute_loss(log_probs.shape[-1]))
            error = jnp.sum(jnp.abs(decision - labels) * weight) / total
            return jnp.stack([error, problem.loss(drps, sites) / total])

        error, score = jax.lax.map(evaluate, points, batch_size=256).T
        best = jnp.argmin(jnp.where(error <= error.min() + TIED, score, jnp.inf))
        return Result(
            draws=one_draw(unravel(points[best])),
            status=jnp.asarray(int(Status.CONVERGED)),
            details={"objective": error[best]},
        )
