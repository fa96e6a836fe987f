"""The mean of known losses with an interval that assumes no model: for any loss in [0, 1]."""

import numpy as np
from jaxtyping import Float

from judgebayes.arrays import ItemFloats
from judgebayes.majority.curve import ErrorCurve
from judgebayes.majority.thinning import beta_quantile, of_population


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
    and variance v / (n + 2) (as in `FittedThinning.moments`). If no item has a loss, or all have the
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
    used = np.where(np.isfinite(losses), weights, 0.0)
    values = np.nan_to_num(losses)
    n = used.sum(1)
    with np.errstate(invalid="ignore"):
        observed = (used * values).sum(1) / n
    total = n + 1
    mean = ((used * values).sum(1) + 0.5) / total
    within = ((used * values**2).sum(1) + 0.5) / total - mean**2
    mean, variance = of_population(mean, within, np.nan_to_num(observed), n, population)
    low, high = (beta_quantile(q, mean, variance) for q in ((1 - level) / 2, (1 + level) / 2))
    undefined = n == 0
    low, high = (np.where(undefined, np.nan, end) for end in (low, high))
    low, high = np.minimum(low, observed), np.maximum(high, observed)
    return ErrorCurve(np.asarray(sizes), observed, low, high, undefined)
