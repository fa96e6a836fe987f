r"""The model-free estimate of a majority vote's error: thin the observed counts.

A random panel of k out of the K votes on an item, S of them correct, has a wrong majority with the
hypergeometric probability

.. math:: h_k(S, K) = \sum_{j < k/2} \binom{S}{j} \binom{K - S}{k - j} / \binom{K}{k},

and the mean of :math:`h_k` over the items is an unbiased estimate of the error at every k up to K.
P3 does not use it. It gives no estimate for k > K.

How much less labelled items of a few groups say about a majority vote's error.

The mean of known losses with an interval that assumes no model: for any loss in [0, 1].
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float
from scipy.special import stdtrit

from judgebayes.arrays import AnyArray, ItemFloats, ItemInts, Weights
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.status import summary
from judgebayes.majority.counts import (
    Counts,
    ErrorCurve,
    check_sizes,
    labelled_weight,
    prepare,
    wrong_majority,
)
from judgebayes.measures.significance import clustered_mean


def thin(counts: Counts, size: int) -> Float[AnyArray, "*item"]:
    """Return h_k of every item, NaN if it has fewer than k votes or no label."""
    table = _table(counts.most, size)
    traced = any(isinstance(x, jax.core.Tracer) for x in (counts.correct, counts.given))
    if traced:
        probability = jnp.asarray(table)[counts.given, jnp.maximum(counts.correct, 0)]
        return jnp.where(counts.correct >= 0, probability, jnp.nan)
    correct = np.asarray(counts.correct)
    return np.where(correct >= 0, table[np.asarray(counts.given), np.maximum(correct, 0)], np.nan)


@lru_cache(maxsize=256)
def _table(most: int, size: int) -> Float[np.ndarray, "given correct"]:
    """Return h_k by the numbers of given and correct votes, NaN if undefined."""
    each = np.arange(most + 1)
    return wrong_majority(each, each[:, None], size)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Thinning:
    """Estimate a majority vote's error without a model of the votes.

    Examples
    --------
    >>> import numpy as np
    >>> from judgebayes.majority import Thinning, counts_of
    >>> correct = np.array([5, 5, 4, 5, 4, 5, 3, 5, 1, 5])
    >>> print(Thinning().fit(counts_of(correct, 5)).estimate((1, 3, 5)).round(3))
    [0.16 0.13 0.1 ]
    """

    @in_float64
    def fit(self, counts: Counts, *, weight: Weights | None = None) -> "Thinned":
        """Return the counts of the labelled items, with equal items merged."""
        cells, weights = prepare(counts, weight)
        return Thinned(cells, labelled_weight(cells, weights))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Thinned:
    """Counts of labelled items, with their weights."""

    counts: Counts
    weight: Float[AnyArray, "*batch item"]

    __repr__ = summary

    @in_float64
    def estimate(self, sizes: tuple[int, ...]) -> Float[AnyArray, " size"]:
        """Return the error of a majority of k for each size, NaN beyond the observed k.

        Items with fewer than k votes do not count at k. If missingness depends on the item, the points
        of the curve are therefore about different items.
        """
        h = item_thinning(self.counts, sizes)
        if not isinstance(h, np.ndarray) or isinstance(self.weight, jax.core.Tracer):
            weights = jnp.where(jnp.isnan(h), 0.0, self.weight)
            return (weights * jnp.nan_to_num(h)).sum(-1) / weights.sum(-1)
        return self.posterior(sizes).observed

    def posterior(
        self,
        sizes: tuple[int, ...],
        *,
        population: Float[np.ndarray, " size"] | float | None = None,
    ) -> "_Posterior":
        r"""Return the observed error, and its posterior mean and variance, at each size.

        The shares of S = 0 .. K have a Dirichlet prior with parameters 1 / (K + 1), so that at k = K the
        posterior is Jeffreys' for a proportion. The error is linear in the shares: with A the
        total of the Dirichlet's parameters a, and :math:`m = \sum_s a_s h_s / A`,

        .. math:: \operatorname{Var} = \Bigl(\sum_s a_s h_s^2 / A - m^2\Bigr) / (A + 1).

        With a `population` of N items, n of them labelled, the quantity is the mean of h over these N
        items. The labelled items are known, and the mean of the N - n others varies around the error
        with the posterior mean of the variance of h, divided by N - n. This is the finite-population
        correction; at n = N the variance is 0.
        """
        most = self.counts.most
        prior = Counts(np.arange(most + 1), np.full(most + 1, most), most)  # type: ignore[arg-type]
        h, h0 = (np.asarray(item_thinning(each, sizes)) for each in (self.counts, prior))
        return _posterior(h, np.asarray(self.weight), h0, population)

    def curve(
        self,
        sizes: tuple[int, ...],
        *,
        level: float = 0.9,
        population: Float[np.ndarray, " size"] | float | None = None,
    ) -> ErrorCurve:
        """Return the error at each size with its interval, a Beta distribution by `moments`.

        Parameters
        ----------
        sizes
            Odd numbers of votes.
        level
            Probability of the interval.
        population
            The total number of items (by size, if it differs), if the target is the error on these items
            and not on more items like these.

        Raises
        ------
        JudgeBayesError
            If a size is even or not positive, or no item is labelled.
        """
        check_sizes(sizes)
        if not (np.asarray(self.weight) > 0).any():
            raise JudgeBayesError(
                "No item has both a vote and a label. Label at least one item with votes; 50 are "
                "a good start."
            )
        beyond = np.array([size > self.counts.most for size in sizes])
        return self.posterior(sizes, population=population).curve(sizes, level, beyond)


class _Posterior(NamedTuple):
    """The mean loss of the labelled items, NaN without any, and the posterior mean and variance."""

    observed: Float[np.ndarray, " size"]
    mean: Float[np.ndarray, " size"]
    variance: Float[np.ndarray, " size"]

    def curve(
        self, sizes: tuple[int, ...], level: float, extrapolated: Bool[np.ndarray, " size"]
    ) -> ErrorCurve:
        """Return the observed mean with the interval of a Beta distribution, which includes it."""
        ends = (
            np.where(np.isfinite(self.observed), beta_quantile(q, self.mean, self.variance), np.nan)
            for q in ((1 - level) / 2, (1 + level) / 2)
        )
        low, high = next(ends), next(ends)
        return ErrorCurve(
            np.asarray(sizes),
            self.observed,
            np.minimum(low, self.observed),
            np.maximum(high, self.observed),
            extrapolated,
        )


def _posterior(
    losses: Float[np.ndarray, "size item"],
    weight: ItemFloats,
    prior: Float[np.ndarray, "*size loss"],
    population: Float[np.ndarray, " size"] | float | None,
) -> _Posterior:
    """Return the posterior of the mean loss; `prior` are losses that together count as one item.

    With a population, it is that of the mean over this many items, of which the labelled are known.
    """
    used = np.where(np.isfinite(losses), weight, 0.0)
    values = np.nan_to_num(losses)
    n, total = used.sum(-1), used.sum(-1) + 1.0
    observed = (used * values).sum(-1) / np.where(n > 0, n, np.nan)
    mean = ((used * values).sum(-1) + prior.mean(-1)) / total
    within = ((used * values**2).sum(-1) + (prior**2).mean(-1)) / total - mean**2
    variance = within / (total + 1)
    if population is not None:
        rest = np.maximum(population - n, 0.0)
        share = rest / np.maximum(np.maximum(population, n), 1e-9)
        variance = variance + within * total / (total + 1) / np.where(rest > 0, rest, np.inf)
        mean, variance = (
            (1 - share) * np.nan_to_num(observed) + share * mean,
            share**2 * variance,
        )
    return _Posterior(observed, mean, np.maximum(variance, 0.0))


def beta_quantile(
    q: float, mean: Float[np.ndarray, "*any"], variance: Float[np.ndarray, "*any"]
) -> Float[np.ndarray, "*any"]:
    """Return quantiles of the Beta distributions with these means and variances."""
    from scipy.special import betaincinv

    mean, variance = np.asarray(mean, float), np.asarray(variance, float)
    degenerate = variance <= 1e-300
    size = mean * (1 - mean) / np.where(degenerate, 1.0, variance) - 1
    safe_size = np.where(degenerate | (size <= 0), 1.0, size)
    quantile = betaincinv(safe_size * mean, safe_size * (1 - mean), q)
    return np.where(degenerate, mean, quantile)


def item_thinning(counts: Counts, sizes: tuple[int, ...]) -> Float[AnyArray, "size item"]:
    """Return h_k of every item at every size."""
    each = [thin(counts, size) for size in sizes]
    return np.stack(each) if isinstance(each[0], np.ndarray) else jnp.stack(each)


def design_effect(
    counts: Counts, groups: ItemInts, sizes: tuple[int, ...], *, level: float = 0.9
) -> float:
    r"""Return the variance of the labelled items' mean error, relative to that of independent items.

    .. math:: \mathrm{deff} = \max_k
              \left(\frac{\mathrm{SE}_G(h_k)\, t_{G - 1}}{\mathrm{SE}_n(h_k)\, t_{n - 1}}\right)^2

    with h_k the probability that a majority of k votes on an item is wrong, the cluster-robust standard
    error over G groups (`clustered_mean`) and that over n items, and quantiles of Student's t, because
    the former is imprecise with few groups. It is at least 1. Where errors do not vary, every group
    counts as one item.

    Parameters
    ----------
    counts
        Correct and given votes.
    groups
        The group of each item.
    sizes
        Odd numbers of votes; those beyond the observed number are left out.
    level
        Probability of the intervals, for the quantiles.

    Raises
    ------
    JudgeBayesError
        If the labelled items are in fewer than two groups.
    """
    labelled = np.asarray(counts.correct) >= 0
    observed = tuple(size for size in sizes if size <= counts.most)
    errors = np.asarray(item_thinning(counts.take(np.flatnonzero(labelled)), observed))
    own = np.asarray(groups)[labelled]
    if len(np.unique(own)) < 2:
        raise JudgeBayesError(
            f"The labelled items are in {len(np.unique(own))} group(s): intervals over groups need "
            "labels in at least two. Label items of more groups, or leave out --group."
        )
    largest = 1.0
    for values in errors:
        use = np.isfinite(values)
        n, n_groups = int(use.sum()), len(np.unique(own[use]))
        if n_groups < 2:
            continue
        _, by_group, freedom = clustered_mean(values, own)
        by_item = clustered_mean(values)[1]
        tails = stdtrit(np.array([freedom, n - 1]), (1 + level) / 2)
        ratio = by_group / by_item if by_item > 0 else np.sqrt(n / n_groups)
        largest = max(largest, float((ratio * tails[0] / tails[1]) ** 2))
    return largest


def mean_loss(
    sizes: tuple[int, ...],
    losses: Float[np.ndarray, "size item"],
    *,
    weight: ItemFloats | None = None,
    level: float = 0.9,
    population: Float[np.ndarray, " size"] | float | None = None,
) -> ErrorCurve:
    r"""Return the mean loss of labelled items at each number of votes, with its interval.

    The distribution of losses has a Dirichlet prior with the weight of one item, half at 0 and half
    at 1, so that the interval of a proportion is Jeffreys'. With m and v the posterior means of the mean
    loss and of the losses' variance, and n the number of items, it is a Beta distribution with mean m
    and variance v / (n + 2) (as in `Thinned.moments`). If no item has a loss, or all have the
    largest, the interval includes that end, as the modified Jeffreys interval does (Brown, Cai &
    DasGupta 2001, section 4.1.2).

    Parameters
    ----------
    sizes
        The numbers of votes.
    losses
        From 0 to 1; NaN where an item does not count.
    weight
        The items' weights, 1 by default.
    level
        Probability of the interval.
    population
        The number of items, if the target is the mean loss on these and not on more items like these;
        the items that count are then known, and the others drawn.
    """
    weights = np.ones(losses.shape[1]) if weight is None else np.asarray(weight, float)
    posterior = _posterior(losses, weights, np.array([0.0, 1.0]), population)
    return posterior.curve(sizes, level, np.isnan(posterior.observed))
