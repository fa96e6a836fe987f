"""Labels that may be wrong, as evidence: the log-odds that they give for the higher of two classes."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float

from judgebayes.arrays import ItemInts

MOST_VALUES, DECIMALS = 40, 1
"""Evidence of more different values is rounded: equal values are computed once."""


@dataclass(frozen=True)
class Evidence:
    """The evidence of each item's labels, at several values of the annotators' error rates."""

    nodes: Float[np.ndarray, "node item"]
    """Infinite for certain labels, and 0 for items without a label."""
    weights: tuple[float, ...]
    """The probabilities of the nodes."""

    @property
    def valid(self) -> int:
        """The number of items that are certainly valid."""
        return int((self.nodes[0] == np.inf).sum())

    @property
    def unknown(self) -> int:
        """The number of items that are not certain."""
        return int(np.isfinite(self.nodes[0]).sum())

    def take(self, items: Bool[np.ndarray, " item"]) -> "Evidence":
        """Return the evidence on some of the items."""
        return replace(self, nodes=self.nodes[:, items])

    def rounded(self) -> "Evidence":
        """Return the evidence with values rounded to .1 if there are many."""
        few = all(len(np.unique(node)) <= MOST_VALUES for node in self.nodes)
        return self if few else replace(self, nodes=self.nodes.round(DECIMALS))


def certain(labels: ItemInts) -> Evidence:
    """Return the evidence of labels without error: 1 valid, 0 invalid, -1 unknown."""
    return Evidence(np.array([0.0, -np.inf, np.inf])[labels + 1][None], (1.0,))
