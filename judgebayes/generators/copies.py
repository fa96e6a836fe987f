"""Judges whose votes on labelled items are alike beyond what label and generator explain."""

from itertools import combinations

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri

from judgebayes.arrays import ItemInts
from judgebayes.votes import Votes

COPIES = 0.75
"""Two judges are called copies above this residual correlation."""
LEAST_ITEMS = 40
LEAST_ERRORS = 3
"""Fewer labelled items with votes of both judges, or errors of either of them, tell nothing."""
CHANCE = 0.01
"""How probable it may be, by chance, that a pair exceeds the median of the others as far."""


def residual_correlations(
    votes: Votes, labels: ItemInts, generator: ItemInts
) -> tuple[Float[np.ndarray, "judge judge"], Float[np.ndarray, "item judge"]]:
    r"""Return the correlation of the residuals of each two judges, and the residuals.

    A residual is the mean vote of judge j on a labelled item i minus its mean over the labelled items
    with the same generator and label,

    .. math:: r_{ij} = \bar v_{ij} - \operatorname{mean}_{i' \sim i} \bar v_{i'j}, \qquad
              \rho_{jl} = \frac{\sum_i r_{ij} r_{il}}{\sqrt{\sum_i r_{ij}^2 \sum_i r_{il}^2}}

    over the items on which both voted: NaN where a judge did not vote, and 0 without any variation.
    """
    index = np.asarray(votes.index)
    there = index >= 0
    number = there.sum(2)
    share = np.where(there, index == votes.n_classes - 1, 0).sum(2) / np.maximum(number, 1)
    residual = np.where((number > 0) & (labels >= 0)[:, None], share, np.nan)
    _, cell = np.unique(np.stack([generator, labels], 1), axis=0, return_inverse=True)
    for place in np.unique(cell[labels >= 0]):
        rows = cell.ravel() == place
        some = np.isfinite(residual[rows])
        mean = np.where(some, residual[rows], 0.0).sum(0) / np.maximum(some.sum(0), 1)
        residual[rows] -= mean
    both = np.isfinite(residual)
    filled = np.where(both, residual, 0.0)
    scale = np.sqrt((filled**2).T @ both * (both.T @ filled**2))
    return np.where(scale > 0, filled.T @ filled / np.where(scale > 0, scale, 1.0), 0.0), residual


def copies_among(
    votes: Votes, labels: ItemInts, generator: ItemInts
) -> list[tuple[int, int, float]]:
    r"""Return the pairs of judges that may be copies of one another, and their correlation.

    Their residual correlation is above `COPIES`, and its Fisher transform exceeds the median of all
    other pairs by the normal quantile of 1 - `CHANCE` / pairs, times :math:`1 / \sqrt{n - 3}` for n
    items with votes of both: hard items, on which all judges err, raise the correlation of every pair.
    In simulated panels of 2 to 8 judges without copies at most 4 % have such a pair (with 40 or more
    labelled items and difficulties of a standard deviation of up to 1.5 on the logit scale; 21 % where
    it is 3, so that difficulty decides nearly all votes); of panels with copies that differ on 3 % of
    the items, 90 to 100 %.
    """
    if votes.n_judges < 2 or (labels >= 0).sum() < LEAST_ITEMS:
        return []
    rho, residual = residual_correlations(votes, labels, generator)
    both = np.isfinite(residual).astype(int)
    common = both.T @ both
    index = np.asarray(votes.index)
    wrong = ((index != labels[:, None, None]) & (index >= 0)).any(2) & (labels >= 0)[:, None]
    errors = wrong.astype(int).T @ both
    pairs = list(combinations(range(votes.n_judges), 2))
    z = np.arctanh(np.clip([rho[pair] for pair in pairs], -0.9999, 0.9999))
    quantile = ndtri(1 - CHANCE / len(pairs))
    copies = []
    for place, (a, b) in enumerate(pairs):
        n = common[a, b]
        others = np.delete(z, place)
        if rho[a, b] <= COPIES or n < LEAST_ITEMS or min(errors[a, b], errors[b, a]) < LEAST_ERRORS:
            continue
        if len(others) == 0 or z[place] - np.median(others) > quantile / np.sqrt(n - 3):
            copies.append((a, b, float(rho[a, b])))
    return copies
