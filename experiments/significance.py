"""Tests of the papers: permutations, the top cluster of methods, joint tests, equivalence."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int, Shaped

from judgebayes.arrays import ItemFloats, ItemInts
from judgebayes.errors import JudgeBayesError
from judgebayes.generators.systems import (
    Rate,
    answer_of,
    covariance,
    labels_only,
    parted,
    prediction_powered,
    tuned_power,
)
from judgebayes.measures.significance import Interval, clustered_mean, grouped


def normal_interval(values: Shaped[np.ndarray, " split"], *, level: float = 0.95) -> Interval:
    r"""Return :math:`\bar x \pm z\,\mathrm{SE}` over splits (P1 Fig 2: 95 %).

    Examples
    --------
    >>> import numpy as np
    >>> interval = normal_interval(np.array([0.2, 0.3, 0.4, 0.3]))
    >>> print(f"{interval.mean:.2f} [{interval.low:.2f}, {interval.high:.2f}]")
    0.30 [0.22, 0.38]
    """
    values = np.asarray(values, float)
    error = float(values.std(ddof=1)) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return Interval.around(float(values.mean()), error, level=level)


def clustered_interval(
    values: ItemFloats, groups: ItemInts | None = None, *, level: float = 0.95
) -> Interval:
    r"""Return the mean over items with its cluster-robust normal interval.

    .. math:: \mathrm{SE}^2 = \frac{G}{G - 1} \frac{1}{n^2}
              \sum_g \Bigl(\sum_{i \in g} (x_i - \bar x)\Bigr)^2

    Liang & Zeger (1986). Without groups every item is a group, which gives the ordinary SE. NaN
    items are left out.

    Examples
    --------
    >>> import numpy as np
    >>> values, groups = np.array([1.0, 1.0, 0.0, 0.0]), np.array([0, 0, 1, 1])
    >>> interval = clustered_interval(values)
    >>> print(f"[{interval.low:.2f}, {interval.high:.2f}]")
    [-0.07, 1.07]
    >>> interval = clustered_interval(values, groups)
    >>> print(f"[{interval.low:.2f}, {interval.high:.2f}]")
    [-0.48, 1.48]
    """
    mean, error, _ = clustered_mean(values, groups)
    return Interval.around(mean, error, level=level)


def bootstrap_interval(
    values: Shaped[np.ndarray, " split"],
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Return the percentile bootstrap interval of a mean over splits."""
    values = np.asarray(values, float)
    draws = np.random.default_rng(seed).integers(0, len(values), (resamples, len(values)))
    low, high = np.quantile(values[draws].mean(1), [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(values.mean()), float(low), float(high))


Method = Literal["labels", "rogan-gladen", "prediction-powered"]


def success_rate(
    method: Method, scores: ItemFloats, labels: ItemInts, *, power: float | None = None
) -> Rate:
    r"""Return a system's success rate with the influence of every item.

    Rogan and Gladen's correction of the mean score is
    :math:`\hat\theta = (\bar f - \bar f_0) / (\bar f_1 - \bar f_0)`, with :math:`\bar f_1` and
    :math:`\bar f_0` the mean scores of the labelled valid and invalid items; it needs some of both. By
    default, the `power` of prediction-powered inference is tuned.
    """
    if method == "labels":
        return labels_only(labels)
    if method == "prediction-powered":
        power = tuned_power(scores, labels) if power is None else power
        return prediction_powered(scores, labels, power)
    y, f, rest = parted(scores, labels)
    total, mean_valid, mean_invalid = rest.mean(), y @ f / y.sum(), (1 - y) @ f / (1 - y).sum()
    youden = mean_valid - mean_invalid
    g = (total - mean_invalid) / youden
    on_valid = -g / youden * y * (f - mean_valid) / y.sum()
    on_invalid = (g - 1) / youden * (1 - y) * (f - mean_invalid) / (1 - y).sum()
    on_rest = (rest - total) / (youden * len(rest))
    return answer_of(float(g), labels, on_valid + on_invalid, on_rest)


def interval(answer: Rate, groups: ItemInts | None = None, *, level: float = 0.9) -> Interval:
    """Return a success rate with its interval, by default of 90 %.

    The interval is not clipped: an interval beyond [0, 1] shows that there is too little information.
    """
    return Interval.around(answer.value, _error(covariance([answer], [groups])[0, 0]), level=level)


def difference(
    a: Rate,
    b: Rate,
    groups: tuple[ItemInts, Int[np.ndarray, " other"]] | None = None,
    *,
    level: float = 0.9,
) -> Interval:
    """Return the success rate of a minus that of b; effects of shared items cancel."""
    both = covariance([a, b], groups)
    variance = both[0, 0] + both[1, 1] - 2 * both[0, 1]
    return Interval.around(a.value - b.value, _error(variance), level=level)


def _error(variance: float) -> float:
    return float(np.sqrt(max(variance, 0.0)))


class MaxT(NamedTuple):
    """A joint test of several differences."""

    t: Float[np.ndarray, " budget"]
    statistic: float
    """The largest t, of its absolute values if two-sided."""
    critical: float
    """The value that the largest t exceeds with probability `level` under the null hypothesis."""
    p_value: float
    """P-value of the joint null hypothesis that all differences are 0."""
    adjusted: Float[np.ndarray, " budget"]
    """P-value of each difference, adjusted for all (single-step max-t)."""


def max_t_test(
    differences: Float[np.ndarray, "unit budget"],
    groups: Int[np.ndarray, " unit"] | None = None,
    *,
    level: float = 0.05,
    two_sided: bool = True,
    resamples: int = 10_000,
    seed: int = 0,
) -> MaxT:
    r"""Test several mean differences at once by the Gaussian multiplier bootstrap (P2 App. G).

    .. math:: T^* = \max_b \Bigl|\sum_g \xi_g D_{gb}\Bigr| / \Bigl(\sum_g D_{gb}^2\Bigr)^{1/2},
              \qquad D_{gb} = \sum_{i \in g} (d_{ib} - \bar d_b), \quad \xi_g \sim N(0, 1)

    Chernozhukov et al. (2013). Given the data, T* is the maximum of normal variables with the
    correlation of the differences, so the critical value is smaller than Bonferroni's. The paper's units
    are the splits, with one column per label budget. Splits share items and are not independent: the
    test is about the mean *over splits of these items*. For inference about new items, use item means
    (`item_means`) as units, with `groups` where items share a source.

    Raises
    ------
    JudgeBayesError
        If there are fewer than two units, or a value is missing.
    """
    values = np.asarray(differences, float)
    if not np.isfinite(values).all():
        raise JudgeBayesError("Every unit needs a finite difference at every budget.")
    n = len(values)
    group = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]
    n_groups = int(group.max(initial=0)) + 1
    if n_groups < 2:
        raise JudgeBayesError(f"A joint test needs at least two units; there is {n_groups}.")
    mean = values.mean(0)
    sums = np.zeros((n_groups, values.shape[1]))
    np.add.at(sums, group, values - mean)
    scale = np.sqrt((sums**2).sum(0))
    scale = np.where(scale > 0, scale, np.inf)  # no spread gives t = 0
    t = n * mean / (scale * np.sqrt(n_groups / (n_groups - 1)))
    side = np.abs if two_sided else np.asarray
    sampled = np.random.default_rng(seed).standard_normal((resamples, n_groups)) @ (sums / scale)
    largest = np.asarray(side(sampled)).max(1)
    own = np.asarray(side(t))
    return MaxT(
        t=t,
        statistic=float(own.max()),
        critical=float(np.quantile(largest, 1 - level)),
        p_value=float((1 + (largest >= own.max()).sum()) / (1 + resamples)),
        adjusted=(1 + (largest[:, None] >= own).sum(0)) / (1 + resamples),
    )


class Equivalence(NamedTuple):
    """The result of a test that a difference is too small to matter."""

    interval: Interval
    """Interval with confidence 1 - 2 level: equivalent at `level` if it lies within the margin."""
    p_value: float
    """P-value of the null hypothesis that the difference is at least as large as the margin."""


def equivalence_test(
    difference: Float[np.ndarray, " item"],
    margin: float,
    groups: Int[np.ndarray, " item"] | None = None,
    *,
    level: float = 0.05,
) -> Equivalence:
    r"""Return two one-sided t-tests of a mean paired difference (TOST; P2 App. D).

    .. math:: p = \max\{P(T > (\bar d + m) / \mathrm{SE}),\; P(T < (\bar d - m) / \mathrm{SE})\}

    with Student's t at G - 1 degrees of freedom and the cluster-robust standard error of
    `clustered_interval` over G groups (items, by default). Schuirmann (1987). A small p shows that
    the difference lies within the margin m; a large p of an ordinary test does not show this.

    Raises
    ------
    JudgeBayesError
        If the margin is not positive, or there are fewer than two groups.

    Examples
    --------
    >>> import numpy as np
    >>> test = equivalence_test(np.array([0.01, -0.02, 0.0, 0.01, -0.01]), margin=0.05)
    >>> round(test.p_value, 4)
    0.0006
    """
    from scipy.stats import t as student

    if not margin > 0:
        raise JudgeBayesError(f"margin={margin}; it must be a number above 0.")
    mean, error, freedom = clustered_mean(difference, groups)
    below = float(student.sf((mean + margin) / error, freedom))
    above = float(student.cdf((mean - margin) / error, freedom))
    half = float(student.isf(level, freedom)) * error
    return Equivalence(Interval(mean, mean - half, mean + half), max(below, above))


def permutation_test(
    difference: Float[np.ndarray, " item"],
    groups: Int[np.ndarray, " item"] | None = None,
    *,
    resamples: int = 10_000,
    seed: int = 0,
) -> float:
    """Return the two-sided p-value of a mean paired difference by random sign flips.

    With groups, all items of a group flip together, which keeps the test valid where items that
    share a source err together. The observed signs count as one resample, so p is never 0.

    Examples
    --------
    >>> import numpy as np
    >>> round(permutation_test(np.array([0.3, 0.2, 0.4, 0.1, 0.3, 0.2, 0.4, 0.5])), 3)
    0.007
    """
    values, which = grouped(difference, groups)
    sums = np.bincount(which, weights=values)
    exceed = _exceedances(sums[None], resamples, np.random.default_rng(seed))
    return float((1 + exceed) / (1 + resamples))


def split_permutation_test(
    difference: Float[np.ndarray, "split item"],
    items: Int[np.ndarray, "split item"],
    groups: Int[np.ndarray, " all_items"] | None = None,
    *,
    resamples: int = 100,
    seed: int = 0,
) -> float:
    """Return the p-value of P1's protocol: sign flips within each split, pooled over splits.

    Each split contributes its own `resamples` random flips of the items of its evaluation part;
    the p-value is the share of all of them whose mean difference is at least as large as that
    split's observed one. The paper states the test in words (section 5); this is our reading.
    """
    use = (np.asarray(items) >= 0) & np.isfinite(difference)
    group = np.where(use, items if groups is None else groups[np.maximum(items, 0)], 0)
    n_groups = int(group.max()) + 1
    split = np.broadcast_to(np.arange(len(difference))[:, None], difference.shape)
    flat = np.bincount(
        (split * n_groups + group)[use],
        weights=difference[use],
        minlength=len(difference) * n_groups,
    )
    sums = flat.reshape(len(difference), n_groups)
    exceed = _exceedances(sums, resamples, np.random.default_rng(seed))
    return float((1 + exceed) / (1 + resamples * len(difference)))


def top_cluster(
    errors: Mapping[str, Float[np.ndarray, "split item"]],
    items: Int[np.ndarray, "split item"],
    groups: Int[np.ndarray, " all_items"] | None = None,
    *,
    level: float = 0.05,
    resamples: int = 100,
    seed: int = 0,
) -> list[str]:
    """Return the methods that share the first rank (Freitag et al. 2023; P1 section 5).

    Methods are sorted by mean error. Starting with the best, methods are added until one differs
    significantly (`split_permutation_test`) from any method in the cluster.
    """
    order = sorted(errors, key=lambda name: float(np.nanmean(errors[name])))
    cluster: list[str] = []
    for name in order:
        for member in cluster:
            p = split_permutation_test(
                errors[name] - errors[member], items, groups, resamples=resamples, seed=seed
            )
            if p < level:
                return cluster
        cluster.append(name)
    return cluster


def _exceedances(
    sums: Float[np.ndarray, "split group"], resamples: int, rng: np.random.Generator
) -> int:
    """Return how often randomly signed sums are at least as far from 0 as the observed ones."""
    total = 0
    for row in sums:
        own = row[row != 0]  # a group without a difference cannot change the sum
        observed = abs(own.sum())
        signs = rng.integers(0, 2, (resamples, len(own)), dtype=np.int8) * 2 - 1
        total += int((np.abs(signs @ own) >= observed * (1 - 1e-12) - 1e-12).sum())
    return total
