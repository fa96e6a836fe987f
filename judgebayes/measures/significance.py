"""Intervals of means over splits, items and groups of items.

Random splits share most of their items, so their spread measures how much a result depends on the
calibration items, not how it would change with new items. The item-level functions use an item's
mean outcome over the splits; with `groups`, items of a group are resampled together.

**Bounded means on held-out items**, where all splits share one set of labels. The mean of many splits
varies with the items that are tested, and with the labels that the fits have seen. `two_way_interval`
of `significance` leaves out most of the second part, since nearly the same labels are fitted in every
split. The spread of a mean here has both.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from judgebayes.arrays import ItemFloats, ItemInts
from judgebayes.errors import JudgeBayesError


class Interval(NamedTuple):
    """An estimate with the ends of its interval: numbers, or arrays of them."""

    mean: Any
    low: Any
    high: Any

    @classmethod
    def around(cls, mean: Any, error: Any, *, level: float) -> "Interval":
        """Return the normal interval of an estimate with this standard error."""
        from scipy.special import ndtri

        half = float(ndtri((1 + level) / 2)) * error
        return cls(mean, mean - half, mean + half)

    @classmethod
    def of_draws(cls, draws: Float[np.ndarray, "draw ..."], *, level: float) -> "Interval":
        """Return the mean and the equal-tailed interval of draws."""
        low, high = np.quantile(draws, ((1 - level) / 2, (1 + level) / 2), axis=0)
        return cls(draws.mean(0), low, high)

    @classmethod
    def of_beta(cls, alpha: Any, beta: Any, *, level: float) -> "Interval":
        """Return the mean and the equal-tailed interval of a Beta distribution."""
        from scipy.special import betaincinv

        low, high = (betaincinv(alpha, beta, q) for q in ((1 - level) / 2, (1 + level) / 2))
        return cls(alpha / (alpha + beta), low, high)

    def negative(self) -> "Interval":
        """Return the interval of minus the estimate."""
        return Interval(-self.mean, -self.high, -self.low)


def share_interval(
    hits: Float[np.ndarray, "*any"], trials: Float[np.ndarray, "*any"], *, level: float = 0.95
) -> tuple[Float[np.ndarray, "*any"], Float[np.ndarray, "*any"]]:
    """Return the ends of the equal-tailed interval of a share, from Beta(1 + hits, 1 + misses).

    If all or none of the trials are hits, it extends to 1 or 0, so that it contains the observed share
    (Brown, Cai & DasGupta 2001). It assumes independent trials, and is too narrow for items that share
    a source.
    """
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    a, b = 1 + hits, 1 + trials - hits
    low = np.where((hits == 0) & (trials > 0), 0.0, betaincinv(a, b, tail))
    high = np.where((hits == trials) & (trials > 0), 1.0, betaincinv(a, b, 1 - tail))
    return low, high


def independent_trials(
    right: Float[np.ndarray, "item judge"],
    voted: Bool[np.ndarray, "item judge"],
    groups: ItemInts,
    *,
    level: float,
) -> Float[np.ndarray, " judge"]:
    r"""Return the effective number of independent items for each judge's share of right votes.

    .. math:: n^* = \frac{p (1 - p)}{\mathrm{SE}^2} \Bigl(\frac{t_{n - 1}}{t_{G - 1}}\Bigr)^2

    with the cluster-robust standard error over G groups, and quantiles of Student's t because it is
    imprecise with few groups (Korn & Graubard 1998). It is at most the number of items. For a judge
    that is always right, or always wrong, it is the number of groups that it voted on.
    """
    from scipy.special import stdtrit

    trials = voted.sum(0).astype(float)
    share = right.sum(0) / np.maximum(trials, 1)
    group = np.unique(groups, return_inverse=True)[1]
    n_groups = int(group.max(initial=0)) + 1
    sums, votes_in_group = (np.zeros((n_groups, right.shape[1])) for _ in range(2))
    np.add.at(sums, group, right - share * voted)
    np.add.at(votes_in_group, group, voted.astype(float))
    groups_voted = (votes_in_group > 0).sum(0)
    squares = (sums**2).sum(0) * groups_voted / np.maximum(groups_voted - 1, 1)
    constant = squares <= 1e-12 * np.maximum(trials, 1)
    effective = share * (1 - share) * trials**2 / np.where(constant, 1.0, squares)
    of_items, of_groups = (
        stdtrit(np.maximum(x - 1, 1), (1 + level) / 2) for x in (trials, groups_voted.astype(float))
    )
    effective *= (of_items / of_groups) ** 2
    return np.minimum(np.where(constant, groups_voted, effective), trials)


def item_means(
    values: Float[np.ndarray, "split item"],
    items: Int[np.ndarray, "split item"],
    n_items: int,
) -> Float[np.ndarray, " all_items"]:
    """Return each item's mean over the splits that evaluate it, NaN where none does.

    `items` is the item of each value, -1 for padding; NaN values are ignored.
    """
    use = (np.asarray(items) >= 0) & np.isfinite(values)
    total = np.bincount(items[use], weights=values[use], minlength=n_items)
    times = np.bincount(items[use], minlength=n_items)
    return np.where(times > 0, total / np.maximum(times, 1), np.nan)


def two_way_interval(
    values: Float[np.ndarray, "split item"],
    items: Int[np.ndarray, "split item"],
    n_items: int,
    groups: Int[np.ndarray, " all_items"] | None = None,
    *,
    fitted: float,
    level: float = 0.95,
    unseen: float = 1.0,
) -> Interval:
    r"""Return the mean over splits and items, with an interval for new items and new splits.

    .. math:: \mathrm{SE}^2 = u \Bigl[ V + \frac{m}{m + d}
              \max\Bigl(0,\; \mathrm{Var}_s - \frac{m}{d} V\Bigr) \Bigr] + \mathrm{Var}_s / S

    V is the variance due to the choice of items, cluster-robust over the items' means as in
    `clustered_mean`; :math:`\mathrm{Var}_s` the variance between splits, in which m labels are
    fitted and d are tested; u the share of the items in question that are not among these: 1 for an
    interval about more items like these, 1 - n / N for one about N items (the finite-population
    correction).

    Splits take labels without replacement: what the test part has too much of, the fit has too little
    of. Where half of the labels of a pattern of votes are of either class, a fit to 80 % of them decides
    against most of the others in every split, and seems to lose to any fixed rule, by about as much as
    it seems to win where the labels are uneven by chance. V does not see this, but splits vary more
    than V alone allows, by (m / d) V: the excess is due to the fits. Its factor m / (m + d) is slightly
    above the exact one for such patterns and many labels (.71 for four fifths fitted), and near that of
    a delete-d jackknife, m / d, where a small part is fitted (Shao & Wu 1989; the factor d / m of Nadeau
    & Bengio 2003 for the whole variance is too small here, by simulation). `experiments/coverage`
    measures how often one of two equal methods is said to be better.

    It is a normal interval: if nearly all outcomes are equal, or a few items make up most of the loss,
    it needs more items than usual.

    Parameters
    ----------
    values
        Outcomes; NaN is ignored.
    items
        The item of each outcome, -1 for padding.
    n_items
        The number of all items.
    groups
        The group of each item.
    fitted
        The number of labels that a fit sees, the mean over splits.
    level
        The confidence.
    unseen
        u.
    """
    mean, by_item, _ = clustered_mean(item_means(values, items, n_items), groups)
    of_split = np.nanmean(np.where(items >= 0, values, np.nan), axis=1)
    of_items = by_item**2
    of_splits = float(of_split.var(ddof=1)) if len(of_split) > 1 else 0.0
    tested = ((items >= 0) & np.isfinite(values)).sum(1).mean()
    of_fits = max(0.0, of_splits - fitted / tested * of_items) * fitted / (fitted + tested)
    error = np.sqrt(unseen * (of_items + of_fits) + of_splits / len(of_split))
    return Interval.around(mean, float(error), level=level)


def grouped(
    values: ItemFloats, groups: ItemInts | None
) -> tuple[Float[np.ndarray, " some"], Int[np.ndarray, " some"]]:
    """Return the finite values, and the number of the group (by default the item) of each."""
    values = np.asarray(values, float)
    use = np.isfinite(values)
    if not use.any():
        raise JudgeBayesError("There is no item to compare: every value is missing.")
    names = np.arange(len(values)) if groups is None else np.asarray(groups)
    return values[use], np.unique(names[use], return_inverse=True)[1]


def clustered_mean(values: ItemFloats, groups: ItemInts | None = None) -> tuple[float, float, int]:
    """Return the mean over items, its cluster-robust standard error and degrees of freedom.

    The standard error is that of `clustered_mean`; items are groups by default, NaN is left out.

    Raises
    ------
    JudgeBayesError
        If there are fewer than two groups.
    """
    own, which = grouped(values, groups)
    n_groups = int(which.max()) + 1
    if n_groups < 2:
        raise JudgeBayesError(
            f"An interval over groups needs at least two of them; there is {n_groups}."
        )
    mean = float(own.mean())
    sums = np.bincount(which, weights=own - mean)
    error = float(np.sqrt(n_groups / (n_groups - 1) * (sums**2).sum())) / len(own)
    return mean, error, n_groups - 1


CONSTANT = 1e-9
"""Outcomes do not vary if an effective event is this part of an item's outcome, or less."""


class Spread(NamedTuple):
    """How much the mean of held-out outcomes varies over data sets."""

    variance: float
    """Variance of the mean, due to its items and to the labels that were fitted."""
    items: int
    """The number of distinct items that were held out."""
    groups: int | None
    """The number of groups of these items; None if items are independent."""


def held_out_spread(
    values: Float[np.ndarray, "split item"],
    items: Int[np.ndarray, "split item"],
    n_items: int,
    groups: Int[np.ndarray, " all_items"] | None = None,
    *,
    fitted: float,
    unseen: float = 1.0,
) -> Spread:
    r"""Return the variance of the mean of held-out outcomes, for new items and new labels.

    .. math:: V = V_\text{items} + \max\Bigl(0,\; \frac{m}{d} \bigl(\mathrm{Var}_s f_s
              + 2\, \mathrm{Cov}_s(\bar t_s, f_s)\bigr)\Bigr)

    V_items is the cluster-robust variance over the items' means :math:`\bar x_i`, as in
    `clustered_mean`. The rest is a delete-d jackknife (Shao & Wu 1989): split s is a fit without d
    of the labels, m remain, and :math:`f_s` is the mean change of the outcomes in this split from
    those of the same items in other splits. The change by d labels of m + d, times m/d, is the
    variance of an effect of all labels. :math:`\bar t_s` is the mean of :math:`\bar x_i - \bar x`
    over the fitted items: an item that is tested in some splits is fitted in the others, and both
    effects may add up or cancel.

    :math:`\mathrm{Var}_s f_s` is the mean product of the changes of two items (of different groups)
    in the same split, which leaves out the variation of single items. An item's change does not show
    the effect of its own label, which is left out of the fit in all of its splits; with g groups (or
    items) tested in a split, products are therefore times g / (g - 2) and changes times g / (g - 1).
    With two or fewer the products say nothing, and are left out.

    The sum is noisy with few splits. As a negative one is often noise, the variance is at least
    V_items, so that it is somewhat large where the effects cancel. Where no item is in two splits, it
    is V_items.

    Parameters
    ----------
    values
        Outcomes; NaN is ignored.
    items
        The item of each outcome, -1 for padding.
    n_items
        The number of all items.
    groups
        The group of each item; no group is in both parts of a split.
    fitted
        The number of labels that a fit sees, the mean over splits.
    unseen
        The share of the items in question that are not held out in any split: 1 for more items like
        these, 1 - n / N for N items (the finite-population correction of V_items).

    Raises
    ------
    JudgeBayesError
        If fewer than two groups (by default: items) are held out.
    """
    use = (items >= 0) & np.isfinite(values)
    mean = item_means(values, items, n_items)
    held = np.isfinite(mean)
    middle, error, freedom = clustered_mean(mean, groups)
    group = np.full(n_items, -1)
    group[held] = grouped(mean, groups)[1]
    of_fits = _of_fits(values, items, use, mean, mean - middle, group, fitted)
    n_groups = None if groups is None else freedom + 1
    return Spread(unseen * error**2 + max(of_fits, 0.0), int(held.sum()), n_groups)


def _of_fits(
    values: np.ndarray,
    items: np.ndarray,
    use: np.ndarray,
    mean: np.ndarray,
    around: np.ndarray,
    group: np.ndarray,
    fitted: float,
) -> float:
    """Return the variance due to the fitted labels, with its covariance with the tested items."""
    splits = len(values)
    times = np.bincount(items[use], minlength=len(mean))
    split, place = np.nonzero(use)
    item = items[split, place]
    tested = np.bincount(split, weights=around[item], minlength=splits)
    again = times[item] > 1
    split, item, value = split[again], item[again], values[use][again]
    # From the mean of the item's other splits.
    change = (value - mean[item]) * times[item] / (times[item] - 1)
    cells, cell = np.unique(split * len(mean) + group[item], return_inverse=True)
    change_of_split, number_of_split = (
        np.bincount(split, weights=w, minlength=splits) for w in (change, np.ones(len(split)))
    )
    pairs = float((number_of_split**2).sum() - (np.bincount(cell) ** 2).sum())
    if pairs <= 0:
        return 0.0
    products = float((change_of_split**2).sum() - (np.bincount(cell, weights=change) ** 2).sum())
    in_split = len(cells) / len(np.unique(split))
    variance = products / pairs * in_split / (in_split - 2) if in_split > 2 else 0.0
    effect = change_of_split / np.maximum(number_of_split, 1) * in_split / (in_split - 1)
    # The items' deviations sum to 0 over the tested and the fitted items.
    covariance = float(np.mean(-tested / fitted * effect))
    return fitted / float(use.sum(1).mean()) * (variance + 2 * covariance)


def bounded_interval(
    mean: float, spread: Spread, *, most: float = 1.0, counted: float = 1.0, level: float = 0.95
) -> Interval:
    r"""Return a mean of outcomes between 0 and `most` with its mid-p interval, within these bounds.

    .. math:: \tfrac12 I_q\Bigl(\frac{r}{e_L}, \frac{1 - r + w}{e_L}\Bigr)
              + \tfrac12 I_q\Bigl(\frac{r + w}{e_U}, \frac{1 - r}{e_U}\Bigr)
              = \frac{1 \mp \text{level}}{2},
              \qquad e_L = \frac{(1 - r) e + w^2}{1 - r + w}, \quad e_U = \frac{r e + w^2}{r + w}

    r is the mean, in units of `most`, and I the distribution function of Beta. The mean is a sum of
    events of size :math:`e = V / (r (1 - r))`: 1/n for n independent outcomes 0 or 1, where this is
    the mid-p interval of a binomial share. In general 1/e is the effective number of outcomes (Korn &
    Graubard 1998), with the squared ratio of Student's quantiles for groups and for items. One end
    has one event more, of size :math:`w = \max(e, 1/n)`, a single item's largest share of the mean, so
    that the width is positive if nothing was seen, and honest if all that was seen are small parts of
    events (the weighted sums of Fay & Feuer 1997; mid-p: Fay & Kim 2017; here with Beta for Gamma, as
    the mean is bounded on both sides). If outcomes do not vary, 1/w is the number of groups.

    Parameters
    ----------
    mean
        The mean, or a ratio.
    spread
        The variance of the mean, and its number of items. For a ratio: of its linearised residuals.
    most
        The largest possible outcome; the least is 0.
    counted
        The share of outcomes that count, for a ratio.
    level
        The confidence.

    Examples
    --------
    >>> none_of_sixty = bounded_interval(0.0, Spread(0.0, 60, None), level=0.9)
    >>> print(f"[{none_of_sixty.low:.3f}, {none_of_sixty.high:.3f}]")
    [0.000, 0.038]
    """
    from scipy.optimize import brentq
    from scipy.special import betainc, stdtrit

    if most <= 0:
        return Interval(mean, mean, mean)
    r = min(max(mean / most, 0.0), 1.0)
    variance, items, groups = spread
    outcomes = items * counted
    event = variance / most**2 / (r * (1 - r)) if 0 < r < 1 else 0.0
    if groups is not None:
        of_groups, of_items = (stdtrit(n - 1, (1 + level) / 2) for n in (groups, items))
        event *= float(of_groups / of_items) ** 2
    if event * outcomes > CONSTANT:
        more = max(event, 1 / outcomes)
    else:
        more = 1 / min(outcomes, items if groups is None else groups)
    low_event = ((1 - r) * event + more**2) / (1 - r + more)
    high_event = (r * event + more**2) / (r + more)

    def above(q: float, tail: float) -> float:
        """Return by how much the probability below q exceeds a tail's."""
        below = betainc(r / low_event, (1 - r + more) / low_event, q) if r > 0 else 1.0
        more_below = betainc((r + more) / high_event, (1 - r) / high_event, q) if r < 1 else 0.0
        return float(below + more_below) / 2 - tail

    tail = (1 - level) / 2
    low = brentq(above, 0.0, 1.0, args=(tail,)) if r > 0 else 0.0
    high = brentq(above, 0.0, 1.0, args=(1 - tail,)) if r < 1 else 1.0
    return Interval(mean, most * min(low, r), most * max(high, r))
