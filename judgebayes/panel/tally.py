"""Counts of votes beside labels, the input of a panel's diagnostics.

With the dependence between judges: correlated errors, and the effective number of judges.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from judgebayes.arrays import ItemInts, Labels
from judgebayes.errors import JudgeBayesError
from judgebayes.votes.array import UNDECIDED, Votes
from judgebayes.votes.coding import Coding


class Tally(NamedTuple):
    """Votes beside labels, as NumPy arrays, for the labelled items only."""

    names: list[str]
    """The judges."""
    right: Float[np.ndarray, "item judge"]
    """Share of the judge's votes on the item that equal its label; 0 without votes."""
    voted: Bool[np.ndarray, "item judge"]
    asked: Bool[np.ndarray, "item judge"]
    """Where the judge was asked, whether or not it voted."""
    label: ItemInts
    n_classes: int
    undecided: Float[np.ndarray, "item judge"]
    """Share of the judge's votes on the item that are for no class; 0 without votes."""

    @property
    def hits(self) -> Float[np.ndarray, " judge"]:
        """Number of items on which each judge was right; repeated votes count as a share."""
        return self.right.sum(0)

    @property
    def trials(self) -> Float[np.ndarray, " judge"]:
        """Number of labelled items on which each judge voted."""
        return self.voted.sum(0).astype(float)

    def of_judges(self, judges: Int[np.ndarray, " kept"]) -> "Tally":
        """Return the tally of some of the judges, by index."""
        kept = {
            name: getattr(self, name)[:, judges]
            for name in ("right", "voted", "asked", "undecided")
        }
        return self._replace(names=[self.names[judge] for judge in judges], **kept)


def tally_of(votes: Votes, labels: Labels, judges: Coding | Sequence[str] | None = None) -> Tally:
    """Return the votes on labelled items beside their labels.

    Only the coding of the votes shows where a judge was not asked; without it all count as asked.
    Judges without names are numbered.

    Raises
    ------
    JudgeBayesError
        If there are not as many labels as items, or names as judges.
    """
    index, all_labels = np.asarray(votes.index), np.asarray(labels)
    n_judges = votes.n_judges
    source = range(n_judges) if judges is None else judges
    names = [str(j) for j in (source.judges if isinstance(source, Coding) else source)]
    if len(names) != n_judges:
        raise JudgeBayesError(f"{len(names)} names were given for {n_judges} judges.")
    votes.check_per_item("labels", all_labels)
    labelled = np.flatnonzero(all_labels >= 0)
    index, label = index[labelled], all_labels[labelled]
    cast = (index >= 0).sum(2)
    right = (index == label[:, None, None]).sum(2) / np.maximum(cast, 1)
    none = (index == UNDECIDED).sum(2)
    undecided = none / np.maximum(cast + none, 1)
    asked = np.ones_like(cast, bool)
    if isinstance(judges, Coding) and judges.asked is not None:
        asked = judges.asked[labelled] > 0
    return Tally(names, right, cast > 0, asked, label, votes.n_classes, undecided)


def part_of(part: Float[np.ndarray, "*judge"], whole: Float[np.ndarray, "*judge"]) -> np.ndarray:
    """Return part / whole, NaN where whole is 0."""
    return np.divide(part, whole, out=np.full(np.shape(part), np.nan), where=whole > 0)


def residual_correlation(tally: Tally, common: int = 20) -> Float[np.ndarray, "judge judge"]:
    r"""Return the correlation of the judges' errors given the label.

    The correlation of being right, within items of one label and pooled over labels, on the items
    that both judges voted on: 0 if votes are independent given the label, as Dawid-Skene and the
    one-coin model assume. NaN for fewer than `common` such items, or for a judge that does not
    vary. Items differ in difficulty, so some correlation is normal. It measures how much less J votes
    are worth than J independent votes; it does not show that judges copy each other.
    """
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
