r"""The model-free estimate of a majority vote's error: thin the observed counts.

An item with S correct votes of K stands for every panel of k of them: a random one has a wrong
majority with the hypergeometric probability

.. math:: h_k(S, K) = \sum_{j < k/2} \binom{S}{j} \binom{K - S}{k - j} / \binom{K}{k},

and the mean of :math:`h_k` over the items is an unbiased estimate of the error at every k up to K.
P3 leaves it out. It cannot say anything about k > K.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from judgebayes.arrays import AnyArray
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.summary import summary
from judgebayes.majority.counts import Counts, labelled, prepared
from judgebayes.majority.curve import ErrorCurve, checked_sizes

__all__ = ["FittedThinning", "Thinning", "beta_quantile", "labels_needed", "thin"]

IntervalKind = Literal["dirichlet", "bootstrap"]
RESAMPLES = 2000


def thin(counts: Counts, size: int) -> Float[AnyArray, "*item"]:
    """Return h_k of every item, NaN where it has fewer than k votes or no label."""
    table = _table(counts.most, size)
    traced = any(isinstance(x, jax.core.Tracer) for x in (counts.correct, counts.given))
    if traced:
        found = jnp.asarray(table)[counts.given, jnp.maximum(counts.correct, 0)]
        return jnp.where(counts.correct >= 0, found, jnp.nan)
    correct = np.asarray(counts.correct)
    return np.where(correct >= 0, table[np.asarray(counts.given), np.maximum(correct, 0)], np.nan)


@lru_cache(maxsize=256)
def _table(most: int, size: int) -> Float[np.ndarray, "given correct"]:
    """Return h_k by the number of given and of correct votes, NaN where there is none."""
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, most + 1)))])
    n, s = np.arange(most + 1)[:, None], np.arange(most + 1)[None, :]

    def log_choose(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        a, b = np.maximum(a, 0), np.clip(b, 0, np.maximum(a, 0))
        return log_factorial[a] - log_factorial[b] - log_factorial[a - b]

    wrong = np.zeros((most + 1, most + 1))
    for j in range((size + 1) // 2):
        possible = (j <= s) & (size - j <= n - s)
        each = log_choose(s, np.array(j)) + log_choose(n - s, np.array(size - j))
        wrong += np.where(possible, np.exp(each - log_choose(n, np.array(size))), 0.0)
    return np.where((s <= n) & (n >= size), wrong, np.nan)


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
    def fit(
        self,
        counts: Counts,
        *,
        weight: Float[AnyArray, " item"] | None = None,
        key: PRNGKeyArray | None = None,
    ) -> "FittedThinning":
        """Return the labelled items' counts, ready to be thinned; equal items are one."""
        cells, own, _ = prepared(counts, weight, key)
        return FittedThinning(cells, labelled(cells, own))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FittedThinning:
    """Counts of labelled items, with their weights."""

    counts: Counts
    weight: Float[AnyArray, "*batch item"]

    __repr__ = summary

    @in_float64
    def estimate(self, sizes: tuple[int, ...]) -> Float[AnyArray, " size"]:
        """Return the error of a majority of k for each size, NaN beyond the observed k.

        Items with fewer than k votes do not count at k: where votes are missing for a reason that
        has to do with the item, the curve's points speak of different items.
        """
        h = item_thinning(self.counts, sizes)
        if not isinstance(h, np.ndarray) or isinstance(self.weight, jax.core.Tracer):
            own = jnp.where(jnp.isnan(h), 0.0, self.weight)
            return (own * jnp.nan_to_num(h)).sum(-1) / own.sum(-1)
        return self._seen(sizes)[0]

    def _seen(
        self, sizes: tuple[int, ...]
    ) -> tuple[Float[np.ndarray, " size"], Float[np.ndarray, " size"], Float[np.ndarray, " size"]]:
        """Return mean and mean square of h_k over the items that have k votes, and their weight."""
        h = np.asarray(item_thinning(self.counts, sizes))
        own = np.where(np.isnan(h), 0.0, np.asarray(self.weight))
        h, total = np.nan_to_num(h), own.sum(-1)
        n = np.where(total > 0, total, np.nan)
        return (own * h).sum(-1) / n, (own * h**2).sum(-1) / n, total

    def moments(
        self, sizes: tuple[int, ...], *, population: int | None = None
    ) -> tuple[Float[np.ndarray, " size"], Float[np.ndarray, " size"]]:
        r"""Return posterior mean and variance of the error at each size.

        The shares of S = 0 .. K are Dirichlet, a priori with 1 / (K + 1) each, so that at k = K the
        posterior is Jeffreys' for a proportion. The error is linear in the shares: with A the
        total of the Dirichlet's parameters a, and :math:`m = \sum_s a_s h_s / A`,

        .. math:: \operatorname{Var} = \Bigl(\sum_s a_s h_s^2 / A - m^2\Bigr) / (A + 1).

        With a `population` of N items, n of them labelled, the quantity is the mean of h over those
        N: the labelled ones are known, and the mean of the N - n others varies around the error by
        the posterior mean of the variance of h, divided by N - n. This is the finite-population
        correction; at n = N nothing is left to be unsure of.
        """
        most = self.counts.most
        prior = Counts(np.arange(most + 1), np.full(most + 1, most), most)  # type: ignore[arg-type]
        h0 = np.asarray(item_thinning(prior, sizes))
        seen, square, n = self._seen(sizes)
        seen, square, total = np.nan_to_num(seen), np.nan_to_num(square), n + 1.0
        mean = (n * seen + h0.mean(-1)) / total
        within = (n * square + (h0**2).mean(-1)) / total - mean**2
        variance = within / (total + 1)
        if population is not None:
            rest = np.maximum(population - n, 0.0)
            share = rest / np.maximum(population, n)
            variance += within * total / (total + 1) / np.where(rest > 0, rest, np.inf)
            mean, variance = (1 - share) * seen + share * mean, share**2 * variance
        return mean, np.maximum(variance, 0.0)

    def curve(
        self,
        sizes: tuple[int, ...],
        *,
        level: float = 0.9,
        population: int | None = None,
        kind: IntervalKind = "dirichlet",
        seed: int = 0,
    ) -> ErrorCurve:
        """Return the error at each size with its interval.

        Parameters
        ----------
        sizes
            Odd numbers of votes.
        level
            Probability of the interval.
        population
            How many items there are in all, where the error of these items is meant and not that
            of all the items there could be.
        kind
            `"dirichlet"`: a Beta distribution with the mean and variance of `moments`, exact at
            k = K. `"bootstrap"`: percentiles over resampled items, drawn in by sqrt(1 - n / N).
        seed
            Of the resamples.

        Raises
        ------
        JudgeBayesError
            If a size is even or not positive, or no item is labelled.
        """
        checked_sizes(sizes)
        if not (np.asarray(self.weight) > 0).any():
            raise JudgeBayesError(
                "No item has both a vote and a label: label one at least, better fifty."
            )
        error = np.asarray(self.estimate(sizes))
        ends = ((1 - level) / 2, (1 + level) / 2)
        if kind == "bootstrap":
            low, high = self._bootstrap(sizes, ends, population, seed, error)
        else:
            mean, variance = self.moments(sizes, population=population)
            low, high = (beta_quantile(q, mean, variance) for q in ends)
            low, high = (np.where(np.isfinite(error), x, np.nan) for x in (low, high))
        beyond = np.array([size > self.counts.most for size in sizes])
        return ErrorCurve(np.asarray(sizes), error, low, high, beyond)

    def _bootstrap(
        self,
        sizes: tuple[int, ...],
        ends: tuple[float, float],
        population: int | None,
        seed: int,
        error: Float[np.ndarray, " size"],
    ) -> tuple[Float[np.ndarray, " size"], Float[np.ndarray, " size"]]:
        cells, weight = self.counts.tallied(np.asarray(self.weight))
        total = max(round(float(weight.sum())), 1)
        rng = np.random.default_rng(seed)
        times = rng.multinomial(total, weight / weight.sum(), RESAMPLES)
        h = np.asarray(item_thinning(cells, sizes)).T
        use = np.isfinite(h)
        drawn = times @ np.where(use, h, 0.0) / np.maximum(times @ use, 1)
        drawn = np.where(use.any(0), drawn, np.nan)
        if population is not None:
            drawn = error + np.sqrt(max(1 - total / population, 0.0)) * (drawn - error)
        low, high = np.quantile(drawn, ends, axis=0)
        return low, high


def beta_quantile(
    q: float, mean: Float[np.ndarray, "*any"], variance: Float[np.ndarray, "*any"]
) -> Float[np.ndarray, "*any"]:
    """Return quantiles of the Beta distributions that have these means and variances."""
    from scipy.special import betaincinv

    mean, variance = np.asarray(mean, float), np.asarray(variance, float)
    sure = variance <= 1e-300
    size = mean * (1 - mean) / np.where(sure, 1.0, variance) - 1
    inside = np.where(sure | (size <= 0), 1.0, size)
    found = betaincinv(inside * mean, inside * (1 - mean), q)
    return np.where(sure, mean, found)


def labels_needed(
    fitted: FittedThinning,
    size: int,
    width: float,
    *,
    level: float = 0.9,
    population: int | None = None,
) -> int | None:
    """Return how many labelled items an interval of this width takes, in all.

    The shares of S are taken to stay as they are, so this is a forecast. None where even all of
    the population, or a million items, would not do.

    Raises
    ------
    JudgeBayesError
        If the width is not between 0 and 1.

    Examples
    --------
    >>> from judgebayes.majority import counts_of
    >>> fitted = Thinning().fit(counts_of(np.array([5, 5, 4, 5, 4, 5, 3, 5, 1, 5]), 5))
    >>> labels_needed(fitted, 5, 0.2), labels_needed(fitted, 5, 0.1)
    (25, 98)
    """
    if not 0 < width < 1:
        raise JudgeBayesError(
            f"A target width of {width} makes no sense; right would be 0.05, say."
        )
    now = float(np.asarray(fitted.weight).sum())

    cells, weight = fitted.counts.tallied(np.asarray(fitted.weight))

    def reached(n: int) -> bool:
        scaled = FittedThinning(cells, weight * (n / now))
        mean, variance = scaled.moments((size,), population=population)
        low, high = (beta_quantile(q, mean, variance) for q in ((1 - level) / 2, (1 + level) / 2))
        return float(high[0] - low[0]) <= width

    few, many = 1, population or 1_000_000
    if not reached(many):
        return None
    while few < many:
        middle = (few + many) // 2
        few, many = (few, middle) if reached(middle) else (middle + 1, many)
    return many


def item_thinning(counts: Counts, sizes: tuple[int, ...]) -> Float[AnyArray, "size item"]:
    """Return h_k of every item at every size."""
    each = [thin(counts, size) for size in sizes]
    return np.stack(each) if isinstance(each[0], np.ndarray) else jnp.stack(each)
