r"""Which items to label next, so that the error of a majority is known best.

Items with the same votes are a cell. To first order the posterior of the mean loss and of the cells'
label probabilities is normal, with the covariances of the curve's draws. One more label in cell c
lowers the variance of the mean loss E by

.. math:: \sum_l \frac{\mathrm{Cov}(E, p_{cl})^2}{\bar p_{cl}}
          + \frac{\overline{\mathrm{Var}}(\ell_c)}{N^2},

what it says about all cells, and the uncertainty of the item's own loss, 0 among more items like these.
The next label goes to the cell with the largest decrease. So that a wrong curve is noticed, the cells
are also divided into strata by their margin, and each stratum gets at least a share of the labels that
random choice would give it. The items of a cell are taken at random, so that the choice is ignorable
given the votes (Rubin 1976). Where the curve treats the classes alike (`by_class=False`), votes and
their mirror image are one cell, since the order of the classes may tell the label.
"""

import numpy as np
from jaxtyping import Float, Int

from judgebayes.errors import JudgeBayesError
from judgebayes.majority.counts import distinct_rows
from judgebayes.majority.plurality import Splits
from judgebayes.majority.split_curve import FittedSplitCurve, MeanLoss, losses

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
