"""Several data sets of the same judges in one model: partial pooling in place of transfer."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from judgebayes.arrays import AnyArray
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fast.beta_binomial import log_likelihood
from judgebayes.inference.point import MAP
from judgebayes.inference.problem import Chains, Inference, Problem, Sites, check_prior
from judgebayes.inference.sampled import Sampled, with_source
from judgebayes.inference.status import Status, when, worst
from judgebayes.inference.summary import summary
from judgebayes.majority.counts import Counts, labelled, prepared
from judgebayes.majority.curve import odd_sizes
from judgebayes.majority.distribution import FittedDistribution
from judgebayes.majority.thinning import Thinning
from judgebayes.models import pooled_beta_binomial
from judgebayes.models.beta_binomial import CountData, Parameters, majority_errors
from judgebayes.models.pooled_beta_binomial import (
    PooledBetaBinomialModel,
    PooledData,
    PooledPrior,
)

__all__ = ["REACH", "FittedPool", "PooledBetaBinomial", "limited", "share_of_pool"]

REACH = 0.25
"""How far pooling may move an answer, in standard deviations of what the own labels say."""


def _several_starts() -> MAP:
    # From one start the search can end in the saddle where both components are alike (gap 0), and
    # there are second modes nearly as high: from four starts it depends on the sets' order.
    return MAP(starts=12)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PooledBetaBinomial:
    """Fit the counts of correct votes on several data sets at once.

    A data set with few labels borrows from the others as much as they agree with one another;
    one with many keeps to its own (`judgebayes.models.pooled_beta_binomial`). Where the data set
    in question may be unlike all the others, `limited` bounds what this can cost.

    Parameters
    ----------
    inference
        `MAP()`, or `NUTS()` for credible intervals.
    prior
        How much data sets may differ, among other things.
    """

    inference: Inference = field(default_factory=_several_starts)
    prior: PooledPrior = field(default_factory=PooledPrior)

    def __post_init__(self) -> None:
        """Refuse a prior that the inference would ignore."""
        check_prior(self)

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
        key = jax.random.key(0) if key is None else key
        fit = _fit(self, *_in_turn(*zip(*parts, strict=True)), jnp.arange(len(sets)), key)
        return FittedPool(with_source(fit, self, list(sets), given), fit.most)

    def problem(
        self, sets: Sequence[Counts], weight: Sequence[Float[AnyArray, "..."] | None]
    ) -> Problem:
        """Return the program with these data, the items of the data sets in turn."""
        return self._problem(*_in_turn(sets, weight), len(sets))

    def _problem(
        self,
        counts: Counts,
        member: Int[Array, " item"],
        weight: Float[Array, " item"],
        n_sets: int,
    ) -> Problem:
        def answer(sites: Sites) -> Float[Array, " quantity"]:
            theta = pooled_beta_binomial.set_parameters(sites)
            return jax.vmap(lambda one: majority_errors(one, counts.most))(theta).ravel()

        data = CountData(counts.correct, counts.given, weight)

        def likely(sites: Sites) -> Float[Array, ""]:
            theta = pooled_beta_binomial.set_parameters(sites)
            return log_likelihood(theta, member, data, counts.most)

        return Problem(
            PooledBetaBinomialModel(n_sets, counts.most, self.prior),
            PooledData(counts.correct, counts.given, member, weight),
            convergence_targets=answer,
            log_likelihood=likely,
        )


def _in_turn(
    sets: Sequence[Counts], weight: Sequence[Float[AnyArray, "..."] | None]
) -> tuple[Counts, Int[Array, " item"], Float[Array, " item"]]:
    """Return the items of all data sets, which set each is of, and its weight."""
    every = Counts(
        jnp.concatenate([jnp.asarray(c.correct) for c in sets]),
        jnp.concatenate([jnp.asarray(c.given) for c in sets]),
        max(c.most for c in sets),
    )
    member = jnp.concatenate([jnp.full(c.correct.shape, at) for at, c in enumerate(sets)])
    own = [labelled(c, w) for c, w in zip(sets, weight, strict=True)]
    return every, member, jnp.concatenate(own)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FittedPool(Sampled):
    """The fitted distributions of all data sets."""

    by_set: FittedDistribution
    """With a leading axis of data sets in `theta`: (set, draw, component)."""
    most: int = field(metadata={"static": True})

    __repr__ = summary

    @property
    def chains(self) -> Chains | None:
        """The chains, if the fit was sampled."""
        return self.by_set.chains

    @in_float64
    def of(self, place: int) -> FittedDistribution:
        """Return the distribution of one data set, by its place among those that were fitted."""
        fit = self.by_set
        theta = jax.tree.map(lambda x: x[place], fit.theta)
        return FittedDistribution(
            theta, fit.status, fit.objective, fit.projected_gradient, fit.chains, fit.most
        )


@in_float64
def limited(
    own: FittedDistribution, pooled: FittedDistribution, counts: Counts, *, reach: float = REACH
) -> FittedDistribution:
    r"""Return a data set's own distribution, moved towards the pooled one by a limited way.

    .. math:: P = (1 - \lambda) P_{own} + \lambda P_{pooled}, \quad
              \lambda = \min(1, c\,\overline{\mathrm{sd}} / \overline{|e_{pooled} - e_{own}|})

    Efron & Morris (1972), limited translation. Few labels cannot tell that a data set is unlike all
    the others, and heavy tails let go of it too late; but most of what pooling gains where data sets
    agree comes from its first steps, and most of what it costs where they do not from its last. The
    errors e are those of a majority at each odd number of votes, and sd their standard deviation
    given the own labels, without a model (`FittedThinning.moments`); bars are means over the sizes.
    The mean error moves by no more than `reach` (c) of a standard deviation.

    Parameters
    ----------
    own
        The point estimate from the data set alone, `BetaBinomial().fit(counts)`.
    pooled
        Its pooled one, `PooledBetaBinomial().fit(sets).of(place)`.
    counts
        The labels of the data set.
    reach
        0 for no pooling, infinity for all of it. The default was chosen on the data of P3's Table 2.

    Raises
    ------
    JudgeBayesError
        If either is not a point estimate, or the reach is negative.
    """
    if own.n_draws != 1 or pooled.n_draws != 1 or not reach >= 0:
        raise JudgeBayesError(
            f"There are {own.n_draws} and {pooled.n_draws} draws and the reach is {reach}; right "
            "would be two point estimates, which plug_in() makes of draws, and a number from 0."
        )
    sizes = odd_sizes(counts.most)
    _, variance = Thinning().fit(counts).moments(sizes)
    one, other = (np.asarray(fit.estimate(sizes)) for fit in (own, pooled))
    share = float(share_of_pool(one, other, np.sqrt(variance), reach))
    joined = [jnp.concatenate(pair, axis=-1) for pair in zip(own.theta, pooled.theta, strict=True)]
    weights = [(1 - share) * own.theta.share, share * pooled.theta.share]
    theta = Parameters(jnp.concatenate(weights, axis=-1), *joined[1:])
    return replace(own, theta=theta, status=worst(own.status, pooled.status))


def share_of_pool(
    own: Float[np.ndarray, "*split size"],
    pooled: Float[np.ndarray, "*split size"],
    deviation: Float[np.ndarray, "*split size"],
    reach: float,
) -> Float[np.ndarray, "*split"]:
    """Return lambda of `limited`, the share of the pooled distribution, from errors by size."""
    apart = np.abs(pooled - own).mean(-1)
    allowed = reach * deviation.mean(-1)
    return np.where(apart > allowed, allowed / np.where(apart > 0, apart, 1.0), 1.0)


@jax.jit
def _fit(
    method: PooledBetaBinomial,
    counts: Counts,
    member: Int[Array, " item"],
    weight: Float[Array, " item"],
    sets: Int[Array, " set"],
    key: PRNGKeyArray,
) -> FittedDistribution:
    problem = method._problem(counts, member, weight, sets.shape[0])
    found = method.inference.solve(problem, key)
    theta: Parameters = jax.vmap(pooled_beta_binomial.set_parameters)(found.draws)
    return FittedDistribution(
        theta=jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), theta),
        status=worst(found.status, when(weight.sum() == 0, Status.DEGENERATE)),
        objective=found.objective,
        projected_gradient=found.projected_gradient,
        chains=found.chains,
        most=counts.most,
    )
