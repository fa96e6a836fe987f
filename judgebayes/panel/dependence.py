"""How far judges repeat one another: correlated errors, and the number of judges' worth."""

import numpy as np
from jaxtyping import Float, Int

from judgebayes.arrays import AnyArray
from judgebayes.panel.tally import Tally, tally_of
from judgebayes.votes.array import Votes

__all__ = ["effective_judges", "error_correlation", "residual_correlation"]


def residual_correlation(
    votes: Votes, labels: Int[AnyArray, " item"], *, common: int = 20
) -> Float[np.ndarray, "judge judge"]:
    r"""Return how the judges' errors go together once the label is known.

    The correlation of being right, within items of one label and pooled over labels, on the items
    that both judges voted on: 0 if votes are independent given the label, as Dawid-Skene and the
    one-coin model assume. NaN for fewer than `common` such items, or for a judge that does not
    vary. Items differ in difficulty, so some correlation is normal: it says how much less than J
    votes J votes are worth, not who copied whom.
    """
    return error_correlation(tally_of(votes, labels), common)


def error_correlation(tally: Tally, common: int) -> Float[np.ndarray, "judge judge"]:
    """Return the residual correlation of a tally, as `residual_correlation` does."""
    n_judges = tally.right.shape[1]
    cross, spread, pairs = (np.zeros((n_judges, n_judges)) for _ in range(3))
    for label in range(tally.n_classes):
        here = tally.label == label
        right, seen = tally.right[here], tally.seen[here].astype(float)
        both = seen.T @ seen
        # Sums of the row's judge, over the items that the column's judge voted on too.
        total, square = right.T @ seen, (right**2).T @ seen
        fair = np.maximum(both, 1)
        cross += right.T @ right - total * total.T / fair
        spread += square - total**2 / fair
        pairs += both
    scale = np.sqrt(np.maximum(spread, 0) * np.maximum(spread.T, 0))
    enough = (pairs >= common) & (scale > 1e-9)
    return np.clip(np.divide(cross, scale, out=np.full_like(cross, np.nan), where=enough), -1, 1)


def effective_judges(correlation: Float[np.ndarray, "judge judge"]) -> float:
    r"""Return how many independent judges the panel is worth.

    .. math:: J / (1 + (J - 1) \bar\rho)

    Kish's design effect, with the mean residual correlation over pairs of judges that vary; never
    more than J. NaN where no two judges voted on enough items in common to tell.

    Examples
    --------
    >>> round(effective_judges(np.array([[1.0, 0.5], [0.5, 1.0]])), 3)
    1.333
    """
    varies = np.isfinite(np.diag(correlation))
    kept = correlation[np.ix_(varies, varies)]
    n = len(kept)
    if n < 2:
        return float(n)
    pairs = kept[~np.eye(n, dtype=bool)]
    if np.isnan(pairs).all():
        return float("nan")
    mean = float(np.nanmean(pairs))
    return n / (1 + (n - 1) * min(max(mean, 0.0), 1.0))
