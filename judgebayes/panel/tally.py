"""Votes beside labels, counted: what the diagnostics of a panel look at."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from judgebayes.arrays import AnyArray
from judgebayes.errors import JudgeBayesError
from judgebayes.votes.array import Votes
from judgebayes.votes.coding import Coding

__all__ = ["Tally", "judge_names", "part_of", "tally_of"]


class Tally(NamedTuple):
    """Votes beside labels, as NumPy arrays; only labelled items."""

    right: Float[np.ndarray, "item judge"]
    """Share of the judge's votes on the item that equal its label; 0 where it gave none."""
    seen: Bool[np.ndarray, "item judge"]
    asked: Bool[np.ndarray, "item judge"]
    """Where the judge was asked, whether or not it voted."""
    label: Int[np.ndarray, " item"]
    n_classes: int

    @property
    def hits(self) -> Float[np.ndarray, " judge"]:
        """On how many items each judge was right; of repeated votes on one, the share."""
        return self.right.sum(0)

    @property
    def trials(self) -> Float[np.ndarray, " judge"]:
        """On how many labelled items each judge voted."""
        return self.seen.sum(0).astype(float)

    def of_judges(self, judges: Int[np.ndarray, " kept"]) -> "Tally":
        """Return the tally of some of the judges, given by their places."""
        return self._replace(
            right=self.right[:, judges], seen=self.seen[:, judges], asked=self.asked[:, judges]
        )


def tally_of(
    votes: Votes, labels: Int[AnyArray, " item"], judges: Coding | Sequence[str] | None = None
) -> Tally:
    """Return the votes on labelled items beside their labels.

    Only the coding of the votes tells where a judge was not asked; without it all count as asked.

    Raises
    ------
    JudgeBayesError
        If there are not as many labels as items.
    """
    given = np.asarray(labels)
    if given.shape != (votes.n_items,):
        raise JudgeBayesError(
            f"The labels have the shape {given.shape}; the votes have {votes.n_items} items, so "
            f"right would be ({votes.n_items},)."
        )
    known = np.flatnonzero(given >= 0)
    index, label = np.asarray(votes.index)[known], given[known]
    cast = (index >= 0).sum(2)
    right = (index == label[:, None, None]).sum(2) / np.maximum(cast, 1)
    asked = np.ones_like(cast, bool)
    if isinstance(judges, Coding) and judges.asked is not None:
        asked = judges.asked[known] > 0
    return Tally(right, cast > 0, asked, label, votes.n_classes)


def judge_names(votes: Votes, judges: Coding | Sequence[str] | None) -> list[str]:
    """Return the judges' names; their numbers if no names are given.

    Raises
    ------
    JudgeBayesError
        If there are not as many names as judges.
    """
    given = range(votes.n_judges) if judges is None else judges
    names = [str(j) for j in (given.judges if isinstance(given, Coding) else given)]
    if len(names) != votes.n_judges:
        raise JudgeBayesError(f"{len(names)} names were given for {votes.n_judges} judges.")
    return names


def part_of(part: Float[np.ndarray, "*judge"], whole: Float[np.ndarray, "*judge"]) -> np.ndarray:
    """Return part / whole, NaN where there is nothing."""
    return np.divide(part, whole, out=np.full(np.shape(part), np.nan), where=whole > 0)
