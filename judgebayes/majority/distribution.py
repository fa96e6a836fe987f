"""Distributions of the number of correct votes, and the resulting error of a majority vote."""

from dataclasses import dataclass, field
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from judgebayes.arrays import ItemCodes, ItemValues, Key, Weights
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.point import MAP
from judgebayes.inference.problem import Inference, Problem, Sites, check_prior
from judgebayes.inference.sampled import Sampled, with_source
from judgebayes.inference.status import Status, when, worst
from judgebayes.majority.counts import Counts, ErrorCurve, check_sizes, labelled_weight, prepare
from judgebayes.majority.thinning import Thinning, item_thinning
from judgebayes.models import beta_binomial
from judgebayes.models.beta_binomial import (
    BetaBinomialModel,
    BetaBinomialPrior,
    CountData,
    Parameters,
)
from judgebayes.models.distributions import CorrectVotes


def log_likelihood(
    theta: Parameters, member: ItemCodes, data: CountData, most: int
) -> Float[Array, ""]:
    """Return the weighted sum of log P(S = correct) over items with an observed count.

    It is one product with the items' weights: for many sets of weights, such as bootstrap samples, the
    items' terms are computed only once. `theta` has a leading axis of data sets; `member` is the data
    set of each item.
    """
    votes = CorrectVotes(theta.share, theta.mean, theta.dispersion, member, data.given, most)
    weight = jnp.ones(data.correct.shape) if data.weight is None else data.weight
    used = jnp.where(data.correct >= 0, weight, 0.0)
    return votes.log_prob(jnp.maximum(data.correct, 0)) @ used


@jax.tree_util.register_dataclass
@dataclass(frozen=True, repr=False)
class FittedDistribution(Sampled):
    """A mixture of Beta-Binomials: draws of `share`, `mean` and `dispersion`, each (draw, component)."""

    most: int = field(kw_only=True, metadata={"static": True})
    """The largest observed number of votes."""

    @property
    def theta(self) -> Parameters:
        """The draws of share, mean and dispersion; hard items first."""
        return Parameters(**self.draws)

    @in_float64
    def errors(self, sizes: tuple[int, ...]) -> Float[Array, "draw size"]:
        """Return the error of a majority vote at each size under every draw (eq 5)."""
        return _errors(self.theta, sizes)

    @in_float64
    def estimate(self, sizes: tuple[int, ...]) -> Float[Array, " size"]:
        """Return the error at each size, averaged over the draws."""
        return _errors(self.theta, sizes).mean(0)

    @in_float64
    def pmf(self, votes: int) -> Float[Array, " count"]:
        """Return P(S = s) at s = 0 .. k, averaged over the draws (eq 4)."""
        return jnp.exp(_log_pmfs(self.theta, votes)).mean(0)

    @in_float64
    def curve(
        self,
        sizes: tuple[int, ...],
        *,
        level: float = 0.9,
        of: Counts | None = None,
        design_effect: float = 1.0,
        seed: int = 0,
    ) -> ErrorCurve:
        """Return the error at each size with its credible interval, NaN for a point estimate.

        Parameters
        ----------
        sizes
            Odd numbers of votes; those beyond the observed number are marked as extrapolated.
        level
            Probability of the interval.
        of
            The counts of all items, labelled or not, if the target is the error on these items and not
            on more items like these. The labelled items are then known exactly, and the others are drawn
            from the fitted distribution (the finite-population correction). The correction applies only
            up to the observed number of votes.
        design_effect
            The variance of a mean over the other items, relative to that of independent items.
        seed
            Seed of the draws of the other items.

        Raises
        ------
        JudgeBayesError
            If a size is even.
        """
        check_sizes(sizes)
        errors = np.array(_errors(self.theta, sizes))
        observed = np.array([size <= self.most for size in sizes])
        if of is not None and observed.any():
            observed_sizes = tuple(size for size in sizes if size <= self.most)
            pmf = np.exp(np.asarray(_log_pmfs(self.theta, self.most)))
            errors[:, observed] = in_population(
                pmf,
                of,
                observed_sizes,
                population=len(of.correct),
                design_effect=design_effect,
                seed=seed,
            )
        low, high = np.quantile(errors, ((1 - level) / 2, (1 + level) / 2), axis=0)
        if self.n_draws == 1:
            low = high = np.full(len(sizes), np.nan)
        return ErrorCurve(np.asarray(sizes), errors.mean(0), low, high, ~observed)


def in_population(
    pmf: Float[np.ndarray, "draw count"],
    of: Counts,
    sizes: tuple[int, ...],
    *,
    population: int,
    design_effect: float = 1.0,
    seed: int = 0,
) -> Float[np.ndarray, "draw size"]:
    """Return the error on a finite population under every draw.

    Parameters
    ----------
    pmf
        P(S = s) at s = 0 .. k under every draw, k the largest number of votes.
    of
        The counts of the items, -1 without a label.
    sizes
        Odd numbers of votes up to k.
    population
        The number of items; those without a label are drawn from `pmf`.
    design_effect
        The variance of a mean over these, relative to that of independent items.
    seed
        Seed of these draws.
    """
    most = pmf.shape[1] - 1
    all_counts = np.arange(most + 1)
    cells = Counts(all_counts, np.full_like(all_counts, most), most)  # type: ignore[arg-type]
    wrong = np.asarray(item_thinning(cells, sizes)).T
    n = int((np.asarray(of.correct) >= 0).sum())
    n_unlabelled = max(population - n, 0)
    shares = pmf / pmf.sum(-1, keepdims=True)
    independent = max(round(n_unlabelled / design_effect), 1)
    drawn = np.random.default_rng(seed).multinomial(independent, shares) @ wrong
    drawn *= n_unlabelled / independent
    labelled_error = np.asarray(Thinning().fit(of).estimate(sizes)) if n else np.zeros(len(sizes))
    return (n * labelled_error + drawn) / max(population, n)


@partial(jax.jit, static_argnames="votes")
def _log_pmfs(theta: Parameters, votes: int) -> Float[Array, "draw count"]:
    return jax.vmap(lambda one: beta_binomial.log_pmf(one, votes))(theta)


@partial(jax.jit, static_argnames="sizes")
def _errors(theta: Parameters, sizes: tuple[int, ...]) -> Float[Array, "draw size"]:
    each = [jax.vmap(lambda one, k=k: beta_binomial.majority_error(one, k))(theta) for k in sizes]
    return jnp.stack(each, axis=-1)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class BetaBinomial:
    """Fit one Beta-Binomial, or a mixture of two (eqs 4, 5), to the counts of correct votes.

    Parameters
    ----------
    components
        2 for P3's mixture, 1 for its baseline.
    inference
        `MAP()`, or `NUTS()` for credible intervals.
    prior
        The prior (`judgebayes.models.beta_binomial`). With a minimum score, which does not use it, any
        but the default raises a JudgeBayesError.

    Examples
    --------
    >>> import numpy as np
    >>> from judgebayes.majority import BetaBinomial, counts_of
    >>> correct = np.array([5, 5, 4, 5, 4, 5, 3, 5, 1, 5])
    >>> fit = BetaBinomial(components=1).fit(counts_of(correct, 5))
    >>> print(fit.estimate((1, 5, 11)).round(2))
    [0.17 0.12 0.11]
    """

    components: int = field(default=2, metadata={"static": True})
    inference: Inference = field(default_factory=MAP)
    prior: BetaBinomialPrior = field(default_factory=BetaBinomialPrior)

    def __post_init__(self) -> None:
        """Refuse a prior that the inference would ignore (`check_prior`)."""
        check_prior(self)

    @in_float64
    def fit(
        self, counts: Counts, *, weight: Weights | None = None, key: Key | None = None
    ) -> FittedDistribution:
        """Return the distribution fitted to the labelled items.

        Parameters
        ----------
        counts
            Correct and given votes; items without a label or without votes are ignored.
        weight
            Non-negative item weights; 0 equals a dropped item.
        key
            Random key of the draws; a fixed one by default.

        Raises
        ------
        JudgeBayesError
            If there are not one or two components, or a weight is negative.
        """
        if self.components not in (1, 2):
            raise JudgeBayesError(f"{self.components} components were requested; choose 1 or 2.")
        key = jax.random.key(0) if key is None else key
        fit = _fit(self, *prepare(counts, weight), key)
        return with_source(fit, counts, weight)

    def problem(self, counts: Counts, weight: Weights | None = None) -> Problem:
        """Return the model with these data, the problem that every inference solves."""
        weights = labelled_weight(counts, weight)

        def error_curve(sites: Sites) -> Float[Array, " size"]:
            return beta_binomial.majority_errors(beta_binomial.parameters(sites), counts.most)

        data = CountData(counts.correct, counts.given, weights)

        def item_likelihood(sites: Sites) -> Float[Array, ""]:
            theta = jax.tree.map(lambda x: x[None], beta_binomial.parameters(sites))
            return log_likelihood(theta, jnp.zeros_like(counts.correct), data, counts.most)

        model = BetaBinomialModel(counts.most, self.components, self.prior)
        return Problem(model, data, convergence_targets=error_curve, log_likelihood=item_likelihood)


@jax.jit
def _fit(method: BetaBinomial, counts: Counts, weight: ItemValues, key: Key) -> FittedDistribution:
    problem = method.problem(counts, weight)
    result = method.inference.solve(problem, key)
    draws = jax.vmap(beta_binomial.parameters)(result.draws)._asdict()
    status = worst(result.status, when(problem.data.weight.sum() == 0, Status.DEGENERATE))
    return FittedDistribution(
        method, draws, status, result.details, chains=result.chains, most=counts.most
    )
