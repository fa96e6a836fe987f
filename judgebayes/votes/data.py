"""The data of a posterior: votes and labels, with the user's names."""

import hashlib
import json
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from judgebayes.arrays import ItemInts
from judgebayes.votes.array import MISSING, Votes


@dataclass(frozen=True)
class Data:
    """Votes, labels (-1 where unknown), and the names of items, judges and classes."""

    votes: Votes
    labels: ItemInts
    items: tuple[str, ...]
    judges: tuple[str, ...]
    classes: tuple[str, ...]
    pairwise: bool = False
    """Whether the two ends of the scale are two responses that could be swapped."""
    generator: ItemInts | None = None
    generators: tuple[str, ...] = ()

    @property
    def index(self) -> Int[np.ndarray, "item judge sample"]:
        """The votes as class indices, -1 where missing or undecided."""
        return np.maximum(np.asarray(self.votes.index, np.int8), MISSING)

    @property
    def labelled(self) -> Int[np.ndarray, " some"]:
        """The positions of the labelled items."""
        return np.flatnonzero(self.labels >= 0)

    def names(self, of: Int[np.ndarray, " some"]) -> list[str]:
        """Return the names of items by their positions."""
        return [self.items[int(i)] for i in of]

    def sizes(self) -> str:
        """Return the sizes as text."""
        cast = int((self.index >= 0).sum())
        return (
            f"{len(self.items)} items, {len(self.judges)} judge(s), {cast} votes, "
            f"{len(self.labelled)} labels"
        )

    def checksum(self) -> str:
        """Return a digest of votes, labels and names, equal for two posteriors of the same data.

        It does not depend on the name of a file or on the order of its rows.
        """
        digest = hashlib.sha256()
        item, judge = (np.argsort(np.asarray(names)) for names in (self.items, self.judges))
        named = [sorted(self.items), sorted(self.judges), self.classes]
        digest.update(json.dumps(named).encode())
        index = np.sort(self.index[item][:, judge], axis=2)  # samples have no names
        for array in (index.astype("<i8"), np.asarray(self.labels)[item].astype("<i8")):
            digest.update(str(array.shape).encode() + array.tobytes())
        return digest.hexdigest()
