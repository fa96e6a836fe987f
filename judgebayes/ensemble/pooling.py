"""Several data sets of the same judges in one model: partial pooling in place of transfer."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from judgebayes.arrays import AnyArray
from judgebayes.ensemble.counts import Counts, labelled, prepared
from judgebayes.ensemble.distribution import FittedDistribution, answers
from judgebayes.errors import JudgeBayesError
from judgebayes.float64 import in_float64
from judgebayes.inference.point import MAP
from judgebayes.inference.problem import Inference, Problem, Sites, Unfolded
from judgebayes.inference.status import Status, when, worst
from judgebayes.models import beta_binomial, pooled_beta_binomial
from judgebayes.models.beta_binomial import Parameters
from judgebayes.models.pooled_beta_binomial import PooledPrior

__all__ = ["FittedPool", "PooledBetaBinomial"]


def _several_starts() -> MAP:
    # From one start the search can end in the saddle where both components are alike (gap 0), and
    # there are second modes nearly as high: from four starts it depends on the sets' order.
    return MAP(starts=12)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PooledBetaBinomial:
    """Fit the counts of correct votes on several data sets at once.

    A data set with few labels borrows from the others as much as they agree with one another;
    one with many keeps to its own (`judgebayes.models.pooled_beta_binomial`).

    Parameters
    ----------
    inference
        `MAP()`, or `NUTS()` for credible intervals.
    prior
        How much data sets may differ, among other things.
    """

    inference: Inference = field(default_factory=_several_starts)
    prior: PooledPrior = field(default_factory=PooledPrior)

    @in_float64
    def fit(
        self,
        sets: Sequence[Counts],
        *,
        weight: Sequence[Float[AnyArray, "..."]] | None = None,
        key: PRNGKeyArray | None = None,
    ) -> "FittedPool":
        """Return the model fitted to the labelled items of all data sets.

        Parameters
        ----------
        sets
            The counts of each data set, by the same judges.
        weight
            Non-negative item weights of each data set; 0 equals a dropped item.
        key
            Random key of the draws.

        Raises
        ------
        JudgeBayesError
            If there are fewer than two data sets, or not one list of weights for each.
        """
        given = [None] * len(sets) if weight is None else list(weight)
        if len(sets) < 2 or len(given) != len(sets):
            raise JudgeBayesError(
                f"There are {len(sets)} data sets and {len(given)} lists of weights; pooling takes "
                "two data sets or more, and one list for each."
            )
        parts = [prepared(c, w, None)[:2] for c, w in zip(sets, given, strict=True)]
        most = max(c.most for c in sets)
        every = Counts(
            jnp.concatenate([c.correct for c, _ in parts]),
            jnp.concatenate([c.given for c, _ in parts]),
            most,
        )
        member = jnp.concatenate(
            [jnp.full(c.correct.shape, place) for place, (c, _) in enumerate(parts)]
        )
        weights = jnp.concatenate([w for _, w in parts])
        key = jax.random.key(0) if key is None else key
        return FittedPool(_fit(self, every, member, weights, jnp.arange(len(sets)), key), most)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FittedPool:
    """The fitted distributions of all data sets."""

    by_set: FittedDistribution
    """With a leading axis of data sets in `theta`: (set, draw, component)."""
    most: int = field(metadata={"static": True})

    @in_float64
    def of(self, place: int) -> FittedDistribution:
        """Return the distribution of one data set, by its place among those that were fitted."""
        fit = self.by_set
        theta = jax.tree.map(lambda x: x[place], fit.theta)
        return FittedDistribution(
            theta, fit.status, fit.objective, fit.projected_gradient, fit.chains, fit.most
        )


@jax.jit
def _fit(
    method: PooledBetaBinomial,
    counts: Counts,
    member: Int[Array, " item"],
    weight: Float[Array, " item"],
    sets: Int[Array, " set"],
    key: PRNGKeyArray,
) -> FittedDistribution:
    own = labelled(counts, weight)
    n_sets = sets.shape[0]

    def model(
        correct: Int[Array, " item"], weight: Float[Array, " item"], signed: bool = False
    ) -> None:
        pooled_beta_binomial.model(
            correct,
            counts.given,
            member,
            weight,
            n_sets=n_sets,
            most=counts.most,
            prior=method.prior,
            signed=signed,
        )

    def answer(sites: Sites) -> Float[Array, " quantity"]:
        theta = pooled_beta_binomial.set_parameters(sites)
        return jax.vmap(lambda one: answers(one, counts.most))(theta).ravel()

    def predict(sites: Sites) -> Float[Array, "item class"]:
        theta = pooled_beta_binomial.set_parameters(sites)
        by_set = jax.vmap(lambda one: beta_binomial.log_pmf(one, counts.most))(theta)
        return by_set[member]

    problem = Problem(
        model,
        predict,
        counts.correct,
        own,
        unfolded=Unfolded(partial(model, signed=True), pooled_beta_binomial.ordered),
        watched=answer,
    )
    found = method.inference.solve(problem, key)
    theta: Parameters = jax.vmap(pooled_beta_binomial.set_parameters)(found.draws)
    return FittedDistribution(
        theta=jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), theta),
        status=worst(found.status, when(own.sum() == 0, Status.DEGENERATE)),
        objective=found.objective,
        projected_gradient=found.projected_gradient,
        chains=found.chains,
        most=counts.most,
    )
