"""Simulated crowds: workers with few votes each, on items without labels."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int

from judgebayes.votes import SparseVotes


@dataclass(frozen=True)
class CrowdWorld:
    """How votes and classes of a crowd are drawn.

    A worker is right with a Beta(6, 2) probability, which differs a little by class; any other class is
    then as likely as another. A spammer's votes do not depend on the class.
    """

    items: int = 500
    workers: int = 60
    classes: int = 2
    per_item: int = 5
    shares: tuple[float, ...] | None = None
    """The probabilities of the classes; the same for all if None."""
    spam: float = 0.0
    """The probability that a worker is a spammer."""
    activity: tuple[int, int] = (1, 1)
    """The least and the most active worker's chances of voting on an item, as a ratio."""

    def draw(self, seed: int) -> tuple[SparseVotes, Int[np.ndarray, " item"]]:
        """Return votes and the true classes."""
        rng = np.random.default_rng(seed)
        classes, workers = self.classes, self.workers
        truth = rng.choice(classes, self.items, p=self.shares)
        right = rng.beta(6, 2, workers)[:, None] + rng.normal(0, 0.08, (workers, classes))
        right = np.clip(right, 0.05, 0.98)
        rows = np.repeat((1 - right)[..., None] / (classes - 1), classes, axis=2)
        rows[:, np.arange(classes), np.arange(classes)] = right
        for j in np.flatnonzero(rng.random(workers) < self.spam):
            habit = rng.dirichlet(np.full(classes, 0.5)) if rng.random() < 0.5 else 1 / classes
            rows[j] = habit
        often = np.geomspace(*self.activity, workers)
        often = often / often.sum()
        votes = [
            (i, j, rng.choice(classes, p=rows[j, truth[i]]))
            for i in range(self.items)
            for j in np.sort(rng.choice(workers, self.per_item, replace=False, p=often))
        ]
        item, judge, index = np.array(votes).T
        return SparseVotes(item, judge, index, self.items, workers, classes), truth


BALANCED = CrowdWorld()
RARE = replace(BALANCED, shares=(0.92, 0.08))
UNEQUAL = replace(BALANCED, items=600, workers=80, activity=(3, 300))
WORLDS = {
    "balanced": BALANCED,
    "92 % one class": RARE,
    "92 %, ten votes an item": replace(RARE, per_item=10, workers=30),
    "workers of 3 to 300 votes": UNEQUAL,
    "92 %, 3 to 300 votes": replace(UNEQUAL, shares=(0.92, 0.08)),
    "spammers": replace(BALANCED, spam=0.3),
    "four classes": replace(BALANCED, classes=4, items=600),
    "four classes, spammers": replace(UNEQUAL, classes=4, spam=0.3),
    "92 %, spammers": replace(RARE, spam=0.3),
    "three votes an item": replace(BALANCED, per_item=3, workers=100, items=400),
}
"""Ten crowds, by name."""
