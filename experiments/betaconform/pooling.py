"""Partial pooling of several data sets of the same judges in one model, instead of transfer."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from judgebayes.arrays import AnyArray
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.experiments.betaconform import pooled_beta_binomial
from judgebayes.experiments.betaconform.pooled_beta_binomial import (
    PooledBetaBinomialModel,
    PooledData,
    PooledPrior,
)
from judgebayes.inference.point import MAP
from judgebayes.inference.problem import Inference, Problem, Sites, check_prior
from judgebayes.inference.sampled import with_source
from judgebayes.inference.status import Status, when, worst
from judgebayes.majority.counts import Counts, labelled_weight, odd_sizes, prepare
from judgebayes.majority.distribution import FittedDistribution, log_likelihood
from judgebayes.majority.thinning import Thinning
from judgebayes.models.beta_binomial import CountData, Parameters, majority_errors

REACH = 0.25
"""Largest change of an estimate by pooling, in standard deviations given the data set's own labels."""


def _map_with_restarts() -> MAP:
    # A single start can end in the saddle where both components are equal (gap 0). There are also
    # second modes, nearly as high: with four starts the result depends on the order of the sets.
    return MAP(starts=12)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PooledBetaBinomial:
    """Fit the counts of correct votes on several data sets jointly.

    A data set with few labels borrows from the others, the more the others agree; one with many labels
    relies on its own (`pooled_beta_binomial`). If a data set may differ from all others, `limited`
    bounds the error from pooling.

    Parameters
    ----------
    inference
        `MAP()`, or `NUTS()` for credible intervals.
    prior
        The prior, for example of the difference between data sets.
    """

    inference: Inference = field(default_factory=_map_with_restarts)
    prior: PooledPrior = field(default_factory=PooledPrior)

    def __post_init__(self) -> None:
        """Refuse a prior that the inference would ignore (`check_prior`)."""
        check_prior(self)

    @in_float64
    def fit(
        self,
        sets: Sequence[Counts],
        *,
        weight: Sequence[Float[AnyArray, "..."]] | None = None,
        key: PRNGKeyArray | None = None,
    ) -> "FittedPool":
        """Return the joint fit to the labelled items of all data sets.

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
            If there are fewer than two data sets, or not one array of weights for each.
        """
        weights = [None] * len(sets) if weight is None else list(weight)
        if len(sets) < 2 or len(weights) != len(sets):
            raise JudgeBayesError(
                f"There are {len(sets)} data sets and {len(weights)} lists of weights; pooling needs "
                "two data sets or more, and one list for each."
            )
        parts = [prepare(c, w) for c, w in zip(sets, weights, strict=True)]
        key = jax.random.key(0) if key is None else key
        fit = _fit(self, *_concatenate(*zip(*parts, strict=True)), jnp.arange(len(sets)), key)
        return with_source(fit, list(sets), weights)

    def problem(
        self, sets: Sequence[Counts], weight: Sequence[Float[AnyArray, "..."] | None]
    ) -> Problem:
        """Return the model with these data, the items of all data sets concatenated."""
        return self._problem(*_concatenate(sets, weight), len(sets))

    def _problem(
        self,
        counts: Counts,
        member: Int[Array, " item"],
        weight: Float[Array, " item"],
        n_sets: int,
    ) -> Problem:
        def error_curve(sites: Sites) -> Float[Array, " quantity"]:
            theta = pooled_beta_binomial.set_parameters(sites)
            return jax.vmap(lambda one: majority_errors(one, counts.most))(theta).ravel()

        data = CountData(counts.correct, counts.given, weight)

        def item_likelihood(sites: Sites) -> Float[Array, ""]:
            theta = pooled_beta_binomial.set_parameters(sites)
            return log_likelihood(theta, member, data, counts.most)

        return Problem(
            PooledBetaBinomialModel(n_sets, counts.most, self.prior),
            PooledData(counts.correct, counts.given, member, weight),
            convergence_targets=error_curve,
            log_likelihood=item_likelihood,
        )


def _concatenate(
    sets: Sequence[Counts], weight: Sequence[Float[AnyArray, "..."] | None]
) -> tuple[Counts, Int[Array, " item"], Float[Array, " item"]]:
    """Concatenate the items of all data sets; return counts, data set of each item, and weights."""
    all_counts = Counts(
        jnp.concatenate([jnp.asarray(c.correct) for c in sets]),
        jnp.concatenate([jnp.asarray(c.given) for c in sets]),
        max(c.most for c in sets),
    )
    member = jnp.concatenate([jnp.full(c.correct.shape, index) for index, c in enumerate(sets)])
    weights = [labelled_weight(c, w) for c, w in zip(sets, weight, strict=True)]
    return all_counts, member, jnp.concatenate(weights)


@jax.tree_util.register_dataclass
class FittedPool(FittedDistribution):
    """The fitted distributions of all data sets: the draws have the axes (draw, set, component)."""

    @in_float64
    def of(self, index: int) -> FittedDistribution:
        """Return the distribution of one data set, by its index in `fit`'s sets."""
        draws = {name: x[:, index] for name, x in self.draws.items()}
        return FittedDistribution(
            self.method, draws, self.status, self.details, chains=self.chains, most=self.most
        )


@in_float64
def limited(
    own: FittedDistribution, pooled: FittedDistribution, counts: Counts, *, reach: float = REACH
) -> FittedDistribution:
    r"""Return a mixture of a data set's own distribution and the pooled one, with a limited change.

    .. math:: P = (1 - \lambda) P_{own} + \lambda P_{pooled}, \quad
              \lambda = \min(1, c\,\overline{\mathrm{sd}} / \overline{|e_{pooled} - e_{own}|})

    The limited translation of Efron & Morris (1972). Few labels cannot show that a data set differs
    from all others, and heavy tails shrink it too much. But most of the gain from pooling, if data sets
    agree, comes from a small change, and most of the cost, if they do not, from a large one. The errors
    e are those of a majority at each odd number of votes, and sd is their standard deviation given the
    own labels, without a model (`Thinned.moments`); bars are means over the sizes. The mean
    error changes by at most `reach` (c) standard deviations.

    Parameters
    ----------
    own
        The point estimate from the data set only, `BetaBinomial().fit(counts)`.
    pooled
        The pooled point estimate, `PooledBetaBinomial().fit(sets).of(index)`.
    counts
        The labels of the data set.
    reach
        0 for no pooling, infinity for full pooling. The default was chosen on the data of P3's Table 2.

    Raises
    ------
    JudgeBayesError
        If either fit is not a point estimate, or the reach is negative.
    """
    if own.n_draws != 1 or pooled.n_draws != 1 or not reach >= 0:
        raise JudgeBayesError(
            f"There are {own.n_draws} and {pooled.n_draws} draws and the reach is {reach}; pass "
            "two point estimates and a reach of 0 or more."
        )
    sizes = odd_sizes(counts.most)
    variance = Thinning().fit(counts).posterior(sizes).variance
    one, other = (np.asarray(fit.estimate(sizes)) for fit in (own, pooled))
    share = float(share_of_pool(one, other, np.sqrt(variance), reach))
    components = [
        jnp.concatenate(pair, axis=-1) for pair in zip(own.theta, pooled.theta, strict=True)
    ]
    weights = [(1 - share) * own.theta.share, share * pooled.theta.share]
    theta = Parameters(jnp.concatenate(weights, axis=-1), *components[1:])
    return replace(own, draws=theta._asdict(), status=worst(own.status, pooled.status))


def share_of_pool(
    own: Float[np.ndarray, "*split size"],
    pooled: Float[np.ndarray, "*split size"],
    deviation: Float[np.ndarray, "*split size"],
    reach: float,
) -> Float[np.ndarray, "*split"]:
    """Return the weight lambda of the pooled distribution in `limited`, from the errors by size."""
    distance = np.abs(pooled - own).mean(-1)
    allowed = reach * deviation.mean(-1)
    return np.where(distance > allowed, allowed / np.where(distance > 0, distance, 1.0), 1.0)


@jax.jit
def _fit(
    method: PooledBetaBinomial,
    counts: Counts,
    member: Int[Array, " item"],
    weight: Float[Array, " item"],
    sets: Int[Array, " set"],
    key: PRNGKeyArray,
) -> FittedPool:
    problem = method._problem(counts, member, weight, sets.shape[0])
    result = method.inference.solve(problem, key)
    draws = jax.vmap(pooled_beta_binomial.set_parameters)(result.draws)._asdict()
    status = worst(result.status, when(weight.sum() == 0, Status.DEGENERATE))
    return FittedPool(method, draws, status, result.details, chains=result.chains, most=counts.most)
