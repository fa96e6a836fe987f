"""Dependence between judges: correlated errors, and the effective number of judges."""

import numpy as np
from jaxtyping import Float

from judgebayes.arrays import Labels
from judgebayes.panel.tally import Tally, tally_of
from judgebayes.votes.array import Votes


def residual_correlation(
    votes: Votes, labels: Labels, *, common: int = 20
) -> Float[np.ndarray, "judge judge"]:
    r"""Return the correlation of the judges' errors given the label.

    The correlation of being right, within items of one label and pooled over labels, on the items
    that both judges voted on: 0 if votes are independent given the label, as Dawid-Skene and the
    one-coin model assume. NaN for fewer than `common` such items, or for a judge that does not
    vary. Items differ in difficulty, so some correlation is normal. It measures how much less J votes
    are worth than J independent votes; it does not show that judges copy each other.
    """
    return error_correlation(tally_of(votes, labels), common)


def error_correlation(tally: Tally, common: int) -> Float[np.ndarray, "judge judge"]:
    """Return the residual correlation of a tally, as `residual_correlation` does."""
    n_judges = tally.right.shape[1]
    cross, spread, pairs = (np.zeros((n_judges, n_judges)) for _ in range(3))
    for label in range(tally.n_classes):
        of_label = tally.label == label
        right, voted = tally.right[of_label], tally.voted[of_label].astype(float)
        both = voted.T @ voted
        # Sums of the row's judge over the items that the column's judge also voted on.
        total, square = right.T @ voted, (right**2).T @ voted
        count = np.maximum(both, 1)
        cross += right.T @ right - total * total.T / count
        spread += square - total**2 / count
        pairs += both
    scale = np.sqrt(np.maximum(spread, 0) * np.maximum(spread.T, 0))
    enough = (pairs >= common) & (scale > 1e-9)
    return np.clip(np.divide(cross, scale, out=np.full_like(cross, np.nan), where=enough), -1, 1)


def effective_judges(correlation: Float[np.ndarray, "judge judge"]) -> float:
    r"""Return the effective number of independent judges in the panel.

    .. math:: J / (1 + (J - 1) \bar\rho)

    Kish's design effect, with the mean residual correlation over pairs of judges that vary; at most J.
    NaN if no two judges voted on enough common items.

    Examples
    --------
    >>> round(effective_judges(np.array([[1.0, 0.5], [0.5, 1.0]])), 3)
    1.333
    """
    varies = np.isfinite(np.diag(correlation))
    submatrix = correlation[np.ix_(varies, varies)]
    n = len(submatrix)
    if n < 2:
        return float(n)
    pairs = submatrix[~np.eye(n, dtype=bool)]
    if np.isnan(pairs).all():
        return float("nan")
    mean = float(np.nanmean(pairs))
    return n / (1 + (n - 1) * min(max(mean, 0.0), 1.0))
