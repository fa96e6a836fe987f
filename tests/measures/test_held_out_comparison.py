"""How often one of two methods is said to decide better on held-out labels, if it does, and if not.

Votes have few distinct patterns. One method is a fixed rule, the other answers each pattern by the
majority of its fitted labels. On patterns whose labels are even, both are right on half of new items.
"""

import numpy as np
import pytest
from jaxtyping import Float, Int

from judgebayes.evaluate.splits import random_splits
from judgebayes.experiments.significance import clustered_interval
from judgebayes.measures.significance import Interval, item_means, two_way_interval

REPLAYS = 500
WORLDS: dict[str, tuple[list[float], list[float], list[int]]] = {
    "two judges, who differ on 30 %": ([0.35, 0.35, 0.15, 0.15], [0.95, 0.05, 0.5, 0.5], [1, 0, 1, 0]),
    "two judges, who differ on 60 %": ([0.2, 0.2, 0.3, 0.3], [0.9, 0.1, 0.5, 0.5], [1, 0, 1, 0]),
    "one even pattern": ([0.4, 0.4, 0.2], [0.95, 0.05, 0.5], [1, 0, 1]),
    "six even patterns": ([0.2] * 2 + [0.1] * 6, [0.95, 0.05] + [0.5] * 6, [1, 0] * 4),
    "nothing else": ([0.25] * 4, [0.5] * 4, [1, 0, 1, 0]),
}  # fmt: skip
"""Shares of the patterns, P(label 1) of each, and the rule's answers."""


def extra_loss(
    world: tuple[list[float], list[float], list[int]], n: int, rng: np.random.Generator
) -> tuple[Float[np.ndarray, "split item"], Int[np.ndarray, "split item"], float]:
    """Return the learner's loss minus the rule's on 100 splits of n labels, and the fitted number."""
    share, chance, rule = map(np.asarray, world)
    pattern = rng.choice(len(share), n, p=share)
    labels = (rng.random(n) < chance[pattern]).astype(int)
    parts = random_splits(n, splits=100, calibration=0.8, seed=int(rng.integers(2**31)))
    extra = []
    for fitted, tested in zip(parts.calibration, parts.evaluation, strict=True):
        lean = np.bincount(pattern[fitted], weights=2 * labels[fitted] - 1, minlength=len(share))
        answers = np.where(lean == 0, rule, lean > 0)[pattern[tested]]
        extra.append((answers != labels[tested]) - 1.0 * (rule[pattern[tested]] != labels[tested]))
    return np.stack(extra), parts.evaluation, parts.calibration.shape[1]


def clear(world: tuple[list[float], list[float], list[int]], n: int) -> dict[str, float]:
    """Return the share of replays in which one method is said to be better, and by items alone."""
    rng = np.random.default_rng(n)
    counts = {"two-way": 0, "items": 0}
    for _ in range(REPLAYS):
        extra, items, fitted = extra_loss(world, n, rng)
        for name, interval in (
            ("two-way", two_way_interval(extra, items, n, fitted=fitted)),
            ("items", clustered_interval(item_means(extra, items, n))),
        ):
            counts[name] += excludes_zero(interval)
    return {name: count / REPLAYS for name, count in counts.items()}


def excludes_zero(interval: Interval) -> bool:
    return interval.low > 0 or interval.high < 0


@pytest.mark.parametrize("world", list(WORLDS)[:1])
def test_equal_methods_are_rarely_told_apart(world: str) -> None:
    said = clear(WORLDS[world], 100)
    assert said["two-way"] <= 0.05
    assert said["items"] > 0.15  # what splits without replacement add is not small
