"""Point estimates: the minimum of a proper score, and the mode of the posterior."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from judgebayes.arrays import Key, Scalar
from judgebayes.inference.optimise import Differentiated, differentiated, minimise_each
from judgebayes.inference.problem import (
    Problem,
    Result,
    Sites,
    log_density,
    numpyro_lock,
    one_draw,
    score_derivatives,
)
from judgebayes.measures.scores import Score, drps, labelled_weight, nll

SAME_VALUE = 1e-12
"""Minima this close count as the same; the one with the best status is chosen."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class MinimumScore:
    r"""Minimise the mean of a proper score over the labelled items (P1 eq 12).

    .. math:: \hat\theta \in \arg\min_\theta \sum_i w_i S(p_\theta(\cdot | x_i), y_i) / \sum_i w_i

    The prior has no influence except through its support, the box, and through the starts, which are
    spread over its bulk. The result is a point estimate without a posterior.
    """

    score: Score = field(default=drps, metadata={"static": True})
    starts: int = field(default=5, metadata={"static": True})
    max_steps: int = field(default=200, metadata={"static": True})
    uses_prior: ClassVar[bool] = False

    def solve(self, problem: Problem, key: Key) -> Result:  # noqa: ARG002
        """Return the best of several minima."""
        labels, weight, noise = problem.targets
        total = labelled_weight(labels, weight).sum()
        total = jnp.where(total > 0, total, 1.0)  # without labels the objective is 0 everywhere

        def objective(sites: Sites) -> Float[Array, ""]:
            return problem.loss(self.score, sites) / total

        if problem.design is None:
            *_, unravel = problem.box()
            function = differentiated(lambda x: objective(unravel(x)))
        else:
            function = score_derivatives(
                self.score, problem.design, labels, weight, noise, factor=1 / total
            )
        return best_of(function, problem, self.starts, self.max_steps)


def DRPS(starts: int = 5, max_steps: int = 200) -> MinimumScore:  # noqa: N802
    """Return the paper's inference: the minimum discrete ranked probability score (P1 eq 12)."""
    return MinimumScore(drps, starts, max_steps)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class MAP:
    r"""Compute the mode of the posterior, in the parameters of the model.

    .. math:: \hat\theta \in \arg\max_\theta \sum_i w_i \log p_\theta(y_i | x_i) + \log \pi(\theta)

    The mode is that of the density over the constrained parameters (no Jacobian), so that it can
    lie on the boundary of the prior's support. With a `score` it is the mode of the generalised
    posterior of that score at `temperature` (`Problem.generalised`): a penalised minimum score.
    """

    temperature: float = 1.0
    score: Score | None = field(default=None, metadata={"static": True})
    starts: int = field(default=5, metadata={"static": True})
    max_steps: int = field(default=200, metadata={"static": True})

    @numpyro_lock
    def solve(self, problem: Problem, key: Key) -> Result:  # noqa: ARG002
        """Return the best of several modes."""
        # Per item, so that the gradient's tolerance does not depend on the number of labels.
        function = mode_objective(problem, self.score, self.temperature, problem.scale)
        return best_of(function, problem, self.starts, self.max_steps)


def mode_objective(
    problem: Problem,
    score: Score | None = None,
    temperature: Scalar = 1.0,
    scale: Scalar = 1.0,
) -> Differentiated:
    """Return minus the log posterior, divided by a scale, with two derivatives.

    It is a function of the sites' values in one vector. With a design, the part of the items has
    analytic derivatives. `score` and `temperature` are those of `Problem.generalised`; None is the
    likelihood.
    """
    *_, unravel = problem.box()

    def minus(program: Callable[[], None]) -> Differentiated:
        return differentiated(lambda x: -log_density(program, unravel(x)) / scale)

    if problem.design is None:
        return minus(problem.posterior(score, temperature))
    labels, weight, noise = problem.targets
    factor = (1.0 if score is None else 1 / temperature) / scale
    of_items = score_derivatives(score or nll, problem.design, labels, weight, noise, factor)
    of_prior = minus(problem.prior)
    return lambda x: jax.tree.map(jnp.add, of_items(x), of_prior(x))


def best_of(function: Differentiated, problem: Problem, starts: int, max_steps: int) -> Result:
    """Minimise from several starts; return the lowest minimum.

    The first start is the prior's mean; the others fill the box of two prior standard deviations
    around it evenly and are always the same. `function` is the objective with its derivatives, in the
    sites' values in one vector.
    """
    low, high, mean, deviation, unravel = problem.box()
    begin = mean + 2 * deviation * jnp.asarray(spread(starts, mean.shape[0]))
    solutions = minimise_each(function, begin, low, high, max_steps=max_steps)
    value = jnp.where(jnp.isfinite(solutions.value), solutions.value, jnp.inf)
    lowest = value <= value.min() + SAME_VALUE
    best = jax.tree.map(lambda a: a[jnp.argmin(jnp.where(lowest, solutions.status, 99))], solutions)
    return Result(
        draws=one_draw(unravel(best.x)),
        status=best.status,
        details={"objective": best.value, "projected_gradient": best.projected_gradient},
    )


def spread(points: int, dimensions: int) -> Float[np.ndarray, "point dimension"]:
    """Return points that fill the cube [-1, 1]^d evenly, the first at its centre.

    Roberts' additive recurrence: multiples of the powers of the inverse of the generalised golden
    ratio, the root of x^(d+1) = x + 1, modulo 1.
    """
    golden = 2.0
    for _ in range(40):
        golden = (1 + golden) ** (1 / (dimensions + 1))
    steps = golden ** -np.arange(1, dimensions + 1)
    return 2 * ((0.5 + np.arange(points)[:, None] * steps) % 1) - 1


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class EM:
    """Compute the mode by expectation maximisation, each method by steps of its own.

    `DawidSkene` runs it from two starts and takes the higher mode. One start has accuracy 0.75, updated
    by the labelled votes; the other is the majority vote. It ends when a step raises the log posterior
    by less than `tolerance` per item. With pooled judges it is variational EM
    (`judgebayes.inference.fast.pooled_dawid_skene`), "log posterior" is the lower bound that it
    maximises, and no parameter of the crowd may move by a hundredth of the tolerance's square root.

    `SharedDifficulty` learns variances beside the mode (empirical Bayes). It ends when no parameter
    changes by more than `tolerance` (log-odds; of the ease below 1/2, its square).

    After `max_steps` the status is MAX_STEPS.
    """

    tolerance: float = 1e-12
    max_steps: int = field(default=2000, metadata={"static": True})
