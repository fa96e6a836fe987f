"""How much less labelled items of a few groups say about a majority vote's error."""

import numpy as np
from scipy.special import stdtrit

from judgebayes.arrays import ItemInts
from judgebayes.errors import JudgeBayesError
from judgebayes.majority.counts import Counts
from judgebayes.majority.thinning import item_thinning
from judgebayes.measures.significance import clustered_mean


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
