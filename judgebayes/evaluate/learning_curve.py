"""Forecast of the expected loss with more labels, from the losses with fewer."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from judgebayes.errors import JudgeBayesError
from judgebayes.measures.significance import Interval, item_means

RATES = np.linspace(0.25, 1.5, 6)
"""The exponents c of the curve, equally probable before the data."""
GRID = 200
"""The number of values of the decrease by doubling, for each exponent."""
REACH = 5
"""How many standard errors the values reach to both sides of the best one."""
DRAWS = 4000
ROUNDING = 1e-12


class Forecast(NamedTuple):
    """The expected loss on new items with some number of labels, and what it gains over today's."""

    labels: int
    loss: Interval
    gain: Interval
    """The decrease from the loss with today's labels; never negative."""


def forecast_loss(
    losses: Sequence[Float[np.ndarray, "split item"]],
    items: Int[np.ndarray, "split item"],
    sizes: Sequence[int],
    now: int,
    later: Sequence[int],
    *,
    n_items: int,
    groups: Int[np.ndarray, " all_items"] | None = None,
    level: float = 0.8,
    seed: int = 0,
) -> list[Forecast]:
    r"""Return the expected loss of a method fitted to more labels, with its interval.

    .. math:: f(n) = f(n_0) + \beta \frac{(n / n_0)^{-c} - 1}{1 - 2^{-c}}, \qquad \beta \geq 0

    f(n) is the expected loss on a new item of the method fitted to n random labels, n_0 the number of
    labels today, and beta the decrease when today's labels are doubled. beta has a flat prior, and
    the exponent c is uniform on a grid from 0.25 to 1.5 (a parametric fit has c = 1). The differences
    between sizes are normal around the curve. The level is the mean loss at the largest size, with an
    error that is normal on the log scale, because losses are positive and skewed. Their covariance is
    that of `two_way_interval`, here between sizes: over items (or groups), because the same items are
    evaluated at every size, and over splits.

    Parameters
    ----------
    losses
        The held-out losses by size; each size has the same splits and items. NaN where unknown.
    items
        The item of each loss, -1 for padding.
    sizes
        The numbers of labels of the fits, increasing.
    now, later
        The present number of labels, and the numbers for which to forecast.
    n_items
        The number of items, labelled or not.
    groups
        What items share, by item.
    level
        The level of the intervals.
    seed
        Seed of the draws from the posterior.

    Raises
    ------
    JudgeBayesError
        If there are fewer than two sizes, or a loss is infinite.
    """
    if len(sizes) < 2:
        raise JudgeBayesError(
            f"A forecast needs losses at two sizes or more; there is {len(sizes)}."
        )
    if any(np.isinf(each).any() for each in losses):
        raise JudgeBayesError(
            "A loss is infinite, because the method was certain and wrong: there is no forecast."
        )
    mean, covariance = _means(losses, items, n_items, groups)
    draws = _draws(mean, covariance, np.asarray(sizes, float), now, seed)
    level_now, slope, rate = draws
    forecasts = []
    for n in later:
        gain = slope * _shape(np.asarray(n / now), rate)
        forecasts.append(Forecast(n, _interval(level_now - gain, level), _interval(gain, level)))
    return forecasts


def _means(
    losses: Sequence[Float[np.ndarray, "split item"]],
    items: Int[np.ndarray, "split item"],
    n_items: int,
    groups: Int[np.ndarray, " all_items"] | None,
) -> tuple[Float[np.ndarray, " size"], Float[np.ndarray, "size size"]]:
    """Return the mean loss of every size, and the covariance of these means."""
    by_item = np.stack([item_means(each, items, n_items) for each in losses], 1)
    held = np.isfinite(by_item).all(1)
    by_item = by_item[held]
    mean = by_item.mean(0)
    group = np.arange(len(by_item)) if groups is None else np.asarray(groups)[held]
    code = np.unique(group, return_inverse=True)[1]
    sums = np.zeros((int(code.max()) + 1, len(mean)))
    np.add.at(sums, code, by_item - mean)
    count = len(sums)
    of_items = sums.T @ sums * count / max(count - 1, 1) / len(by_item) ** 2
    of_split = np.stack([np.nanmean(np.where(items >= 0, x, np.nan), 1) for x in losses], 1)
    splits = len(of_split)
    of_splits = np.cov(of_split, rowvar=False) / splits if splits > 1 else 0 * of_items
    covariance = of_items + of_splits
    return mean, covariance + ROUNDING * np.eye(len(mean))


def _shape(
    ratio: Float[np.ndarray, "*#any"], rate: Float[np.ndarray, "*#any"]
) -> Float[np.ndarray, "*any"]:
    """Return the decrease from today's labels to `ratio` times as many, over that by doubling."""
    shape: np.ndarray = (1 - ratio**-rate) / (1 - 2**-rate)
    return shape


def _draws(
    mean: Float[np.ndarray, " size"],
    covariance: Float[np.ndarray, "size size"],
    sizes: Float[np.ndarray, " size"],
    now: int,
    seed: int,
) -> tuple[Float[np.ndarray, " draw"], Float[np.ndarray, " draw"], Float[np.ndarray, " draw"]]:
    """Return posterior draws of the loss now, the decrease by doubling, and the exponent."""
    top = len(mean) - 1
    # The differences to the largest size, and their covariance.
    contrast = np.delete(np.eye(top + 1), top, 0) - np.eye(top + 1)[top]
    precision = np.linalg.inv(contrast @ covariance @ contrast.T)
    difference = contrast @ mean
    shapes = _shape(sizes / now, RATES[:, None])
    # The decreases to the largest size for beta = 1: (rate, smaller size).
    falls = shapes[:, top:] - shapes[:, :top]
    curvature = np.einsum("rs,st,rt->r", falls, precision, falls)
    best = np.einsum("rs,st,t->r", falls, precision, difference) / curvature
    error = 1 / np.sqrt(curvature)
    # Each exponent has its own grid of decreases, where they are probable and not negative.
    low = np.maximum(best - REACH * error, 0)
    high = np.maximum(best + REACH * error, error)
    slopes = np.linspace(low, high, GRID, axis=1)
    misfit = difference @ precision @ difference - best**2 * curvature
    log_weight = -0.5 * (((slopes - best[:, None]) / error[:, None]) ** 2 + misfit[:, None])
    log_weight += np.log(high - low)[:, None]
    weight = np.exp(log_weight - log_weight.max()).ravel()
    rng = np.random.default_rng(seed)
    cell = rng.choice(weight.size, DRAWS, p=weight / weight.sum())
    rate, slope = np.repeat(RATES, GRID)[cell], slopes.ravel()[cell]
    # The error of the level is relative: a mean loss is positive, and its distribution skewed.
    scale = np.sqrt(covariance[top, top]) / max(float(mean[top]), ROUNDING)
    held = mean[top] * np.exp(scale * rng.standard_normal(DRAWS))
    return held + slope * _shape(sizes[top:] / now, rate), slope, rate


def _interval(values: Float[np.ndarray, " draw"], level: float) -> Interval:
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(np.median(values)), float(low), float(high))
