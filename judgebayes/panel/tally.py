"""Counts of votes beside labels, the input of a panel's diagnostics."""

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
    n_items, n_judges, _ = index.shape
    source = range(n_judges) if judges is None else judges
    names = [str(j) for j in (source.judges if isinstance(source, Coding) else source)]
    if len(names) != n_judges:
        raise JudgeBayesError(f"{len(names)} names were given for {n_judges} judges.")
    if all_labels.shape != (n_items,):
        raise JudgeBayesError(
            f"The labels have the shape {all_labels.shape}; the votes have {n_items} items, so "
            f"the shape must be ({n_items},)."
        )
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
