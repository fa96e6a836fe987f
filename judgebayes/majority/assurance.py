r"""How many labels an interval of a given width needs, and which items to label next.

**How many**, typically and with assurance, by preposterior simulation: n random items are chosen, a
curve is drawn from the posterior, their labels are drawn from it, the curve is fitted again, and the
width w of its interval is recorded. A few simulations over all n show where the target is; the others
have n near it, and a line through log w by log n, with the spread of the points around it, gives the n
at which the target is met with a probability.

**Which items**, so that the error of a majority is known best. Items with the same votes are a cell. To
first order the posterior of the mean loss and of the cells' label probabilities is normal, with the
covariances of the curve's draws. One more label in cell c lowers the variance of the mean loss E by

.. math:: \sum_l \frac{\mathrm{Cov}(E, p_{cl})^2}{\bar p_{cl}}
          + \frac{\overline{\mathrm{Var}}(\ell_c)}{N^2},

what it says about all cells, and the uncertainty of the item's own loss, 0 among more items like these.
The next label goes to the cell with the largest decrease. So that a wrong curve is noticed, the cells
are also divided into strata by their margin, and each stratum gets at least a share of the labels that
random choice would give it. The items of a cell are taken at random, so that the choice is ignorable
given the votes (Rubin 1976). Where the curve treats the classes alike (`by_class=False`), votes and
their mirror image are one cell, since the order of the classes may tell the label.
"""

from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Float, Int
from scipy.stats import norm

from judgebayes.arrays import ItemInts
from judgebayes.errors import JudgeBayesError
from judgebayes.majority.counts import distinct_rows
from judgebayes.majority.plurality import Splits
from judgebayes.majority.split_curve import FittedSplitCurve, MeanLoss, SplitCurve, losses

SIMULATIONS = 48
SEARCH = 12
"""Simulations over all n, before those near the target."""
REACH = 1.6
"""The largest ratio of the n of the others to the n of the target."""
LEAST = 10
"""Fewest labels of a simulation."""


@dataclass(frozen=True)
class LabelForecast:
    """The forecast of the interval's width by number of labels, near a target width."""

    width: float
    """The target."""
    items: int
    """The number of items with votes."""
    level: float
    """The mean of log w at log n = 0."""
    slope: float
    """The change of log w with log n, at most 0."""
    spread: float
    """The standard deviation of log w around the line."""

    def needed(self, assurance: float = 0.5) -> int | None:
        """Return the least number of labels with which the target is met with this probability.

        None if labels of all items would not do. 0.5 gives the typical number.

        Raises
        ------
        JudgeBayesError
            If the probability is not between 0 and 1.
        """
        if not 0 < assurance < 1:
            raise JudgeBayesError(f"The assurance is {assurance}; it must be between 0 and 1.")
        goal = np.log(self.width) - norm.ppf(assurance) * self.spread
        if self.slope == 0:
            return 1 if self.level <= goal else None
        log_n = (goal - self.level) / self.slope
        return int(np.ceil(np.exp(log_n))) if log_n <= np.log(self.items) else None


def label_forecast(
    fitted: FittedSplitCurve,
    splits: Splits,
    size: int,
    width: float,
    of: MeanLoss = MeanLoss(),
    *,
    simulations: int = SIMULATIONS,
    seed: int = 0,
) -> LabelForecast:
    """Forecast the width of the interval of the mean loss at one number of votes.

    Parameters
    ----------
    fitted
        The curve given the labels so far.
    splits
        The votes, and the labels so far.
    size
        The number of votes.
    width
        The target width of the interval.
    of
        The loss, its mean over which items, and the interval.
    simulations
        The number of simulated data sets.
    seed
        Seed of the simulations.

    Raises
    ------
    JudgeBayesError
        If the fit is a point estimate, which has no posterior to draw from, or the width is not
        positive.
    """
    if not width > 0:
        raise JudgeBayesError(f"The target width is {width}; it must be positive.")
    fitted.check_posterior("A forecast")
    rng = np.random.default_rng(seed)
    probs, split = fitted.split_probs(splits)
    voted = np.flatnonzero(splits.total > 0)
    unlabelled = voted[~splits.labelled[voted]]
    now = int(splits.labelled.sum())
    least = min(max(now, LEAST), len(voted))
    # As a curve is fitted by default, so that both are one compiled program.
    of_fit = fitted.method
    method = SplitCurve(of_fit.by_class, prior=of_fit.prior, noise=of_fit.noise)
    weight = np.full(len(splits.labels), 1 / of.design_effect)
    possible, noise = np.array(splits.label_classes), float(fitted.method.noise)

    def simulated_width(n: int, number: int) -> float:
        bought = rng.choice(unlabelled, n - min(now, n), replace=False)
        up_to = probs[rng.integers(fitted.n_draws)].cumsum(1)[split[bought]].T
        chance = rng.random(len(bought)) * up_to[-1]
        drawn = np.sum([chance > each for each in up_to], axis=0)
        labels = splits.labels.copy()
        labels[bought] = possible[_observed(drawn, len(possible), noise, rng)]
        simulated = splits.with_labels(labels)
        fit = method.fit(simulated, weight=weight, key=jax.random.key(number))
        curve = fit.curve(simulated, (size,), of, seed=number)
        return float(curve.high[0] - curve.low[0])

    search = np.geomspace(least, len(voted), SEARCH).round().astype(int)
    rough = [simulated_width(int(n), number) for number, n in enumerate(search)]
    # The mean over neighbours, so that one odd simulation does not decide.
    smooth = np.convolve(np.log(np.maximum(rough, 1e-9)), np.ones(3) / 3, "valid")
    there = smooth <= np.log(width)
    centre = search[1:-1][np.argmax(there)] if there.any() else len(voted)
    ends = max(centre / REACH, least), min(centre * REACH, len(voted))
    sizes = np.geomspace(*ends, simulations - SEARCH).round().astype(int)
    widths = np.array([simulated_width(int(n), SEARCH + number) for number, n in enumerate(sizes)])
    return _line(width, len(voted), sizes, widths)


def _observed(true: ItemInts, n_classes: int, noise: float, rng: np.random.Generator) -> ItemInts:
    """Return the labels as they are observed: a share of them is wrong, any other class alike."""
    if noise == 0:
        return true
    wrong = rng.random(len(true)) < noise
    return np.where(wrong, (true + rng.integers(1, n_classes, len(true))) % n_classes, true)


def _line(
    width: float, items: int, sizes: Int[np.ndarray, " _"], widths: Float[np.ndarray, " _"]
) -> LabelForecast:
    use = np.isfinite(widths) & (widths > 0)
    if not use.any():
        return LabelForecast(width, items, -np.inf, 0.0, 0.0)
    x, y = np.log(sizes[use]), np.log(widths[use])
    slope = 0.0
    if np.ptp(x) > 0:
        slope = min(float(np.polyfit(x, y, 1)[0]), 0.0)
    level = float((y - slope * x).mean())
    spread = float(np.sqrt(np.mean((y - level - slope * x) ** 2)))
    return LabelForecast(width, items, level, slope, spread)


FLOOR = 0.75
"""The least number of labels of a stratum, relative to that of random choice; not yet compared."""
STRATA = 4


def next_labels(
    fitted: FittedSplitCurve,
    splits: Splits,
    most: int,
    sizes: tuple[int, ...],
    of: MeanLoss = MeanLoss(),
    *,
    floor: float = FLOOR,
    seed: int = 0,
) -> Int[np.ndarray, " chosen"]:
    """Return the items to label next, the most useful first; fewer than `most` if fewer are left.

    Parameters
    ----------
    fitted
        The curve given the labels so far.
    splits
        The votes, and the labels so far.
    most
        The number of items.
    sizes
        The numbers of votes whose mean loss, averaged over them, is to be known.
    of
        The loss, and its mean over which items; groups and the interval's level
        are not used.
    floor
        The least number of labels of a stratum of margins, relative to that of random choice: 0 is the
        greedy choice, 1 is nearly proportional.
    seed
        Seed of the choice among items with the same votes.

    Raises
    ------
    JudgeBayesError
        If the fit is a point estimate, or the floor is not between 0 and 1.
    """
    fitted.check_posterior("A choice of items")
    if not 0 <= floor <= 1:
        raise JudgeBayesError(f"The floor is {floor}; it must be between 0 and 1.")
    voted = np.flatnonzero(splits.total > 0)
    given = splits.given[voted]
    if not fitted.method.by_class:
        # Mirror images are one cell: which side is named first says nothing.
        swap = (given[:, 0] < given[:, -1])[:, None]
        given = np.where(swap, given[:, ::-1], given)
    _, first, where = distinct_rows(given)
    cells = splits.take(voted[first])
    labelled = splits.labelled[voted]
    size = np.bincount(where, minlength=len(first)).astype(float)
    left = np.bincount(where[~labelled], minlength=len(first))
    probs = fitted.probs(cells)
    probs /= probs.sum(-1, keepdims=True)
    table = np.stack([losses(cells, k, of.measure, of.decision) for k in sizes])
    finite = np.isfinite(table)
    loss = np.where(finite, table, 0.0).sum(0) / np.maximum(finite.sum(0), 1)
    counted = size if of.target == "more" else left
    own = (probs * loss**2).sum(-1) - (probs * loss).sum(-1) ** 2
    own = np.zeros(len(size)) if of.target == "more" else own.mean(0) / size.sum() ** 2
    cost = (counted[:, None] * loss / size.sum()).ravel()
    n_labels = probs.shape[-1]
    mean = np.maximum(probs.mean(0), 1e-6)
    flat = probs.reshape(len(probs), -1)
    centred = flat - flat.mean(0)
    covariance = centred.T @ centred / len(flat)
    stratum = _strata(cells, size)
    share = np.bincount(stratum, weights=size) / size.sum()
    count = np.bincount(stratum[where[labelled]], minlength=len(share))
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(voted))
    waiting = [list(voted[order[(where[order] == c) & ~labelled[order]]]) for c in range(len(size))]
    chosen: list[int] = []
    for _ in range(min(most, int(left.sum()))):
        reach = (covariance @ cost).reshape(-1, n_labels)
        gain = np.where(left > 0, (reach**2 / mean).sum(1) + own, -1.0)
        lack = floor * share * (count.sum() + 1) - count
        lack[np.bincount(stratum, weights=left, minlength=len(share)) == 0] = -1.0
        if lack.max() > 0:
            gain = np.where(stratum == lack.argmax(), gain, -1.0)
        cell = int(gain.argmax())
        chosen.append(int(waiting[cell].pop()))
        left[cell] -= 1
        count[stratum[cell]] += 1
        part = slice(cell * n_labels, (cell + 1) * n_labels)
        noise = np.diag(mean[cell]) - np.outer(mean[cell], mean[cell])
        to_all = covariance[:, part]
        # The variance of a label is that of its probability and the noise together: p (1 - p).
        covariance = covariance - to_all @ np.linalg.pinv(noise, rcond=1e-9) @ to_all.T
        if of.target == "these":
            cost[part] -= loss[cell] / size.sum()
    return np.array(chosen, int)


def _strata(cells: Splits, size: Float[np.ndarray, " cell"]) -> Int[np.ndarray, " cell"]:
    """Return the stratum of each cell by its margin: the cumulative square root rule."""
    share = np.sort(cells.given[:, cells.label_classes] / cells.total[:, None], axis=1)
    margin = np.round(share[:, -1] - share[:, -2], 9)
    _, which = np.unique(margin, return_inverse=True)
    root = np.sqrt(np.bincount(which.ravel(), weights=size))
    middle = (np.cumsum(root) - root / 2) / root.sum()
    return np.unique((STRATA * middle).astype(int)[which.ravel()], return_inverse=True)[1].ravel()
