"""Simulated judges: worlds in which the split of the votes says much, nothing or the wrong thing."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from judgebayes.majority import Splits

Draw = Callable[[np.random.Generator, int], tuple[Int[np.ndarray, " item"], np.ndarray]]
"""From a generator and a number of items: the label, 0 or 1, and the votes (item, judge)."""


@dataclass(frozen=True)
class World:
    """Simulated judges."""

    name: str
    draw: Draw
    good: bool = False
    """Whether the curve can describe it: clearer splits are right more often, whatever the item."""

    def sample(self, seed: Int[np.ndarray, " _"] | list[int], items: int) -> Splits:
        """Return new items with votes and all labels."""
        label, votes = self.draw(np.random.default_rng(seed), items)
        ones = votes.sum(1)
        return Splits(np.stack([votes.shape[1] - ones, ones], axis=1), label, (0, 1))


def _labels(rng: np.random.Generator, items: int, share: float = 0.5) -> Int[np.ndarray, " item"]:
    return (rng.random(items) < share).astype(int)


def _votes(rng: np.random.Generator, label: np.ndarray, chance: np.ndarray) -> np.ndarray:
    right = rng.random(chance.shape) < chance
    return np.where(right, label[:, None], 1 - label[:, None])


def _beta(alpha: float, beta: float, judges: int = 11) -> Draw:
    """Return judges who are right on an item with the item's own probability."""

    def draw(rng: np.random.Generator, items: int) -> tuple[np.ndarray, np.ndarray]:
        label = _labels(rng, items)
        chance = np.repeat(rng.beta(alpha, beta, items)[:, None], judges, axis=1)
        return label, _votes(rng, label, chance)

    return draw


def _hard_and_easy(rng: np.random.Generator, items: int) -> tuple[np.ndarray, np.ndarray]:
    label = _labels(rng, items)
    easy = rng.random(items) < 0.8
    chance = np.where(easy, rng.beta(12, 1.5, items), rng.beta(2, 3, items))
    return label, _votes(rng, label, np.repeat(chance[:, None], 11, axis=1))


def _plurality_right(chance: Callable[[np.ndarray], np.ndarray]) -> Draw:
    """Return judges whose plurality is right with a given probability at each margin."""

    def draw(rng: np.random.Generator, items: int) -> tuple[np.ndarray, np.ndarray]:
        most = rng.integers(6, 12, items)
        label = _labels(rng, items)
        right = rng.random(items) < chance((2 * most - 11) / 11)
        said = np.where(right, label, 1 - label)
        ones = np.where(said == 1, most, 11 - most)
        return label, (np.arange(11) < ones[:, None]).astype(int)

    return draw


def _copies(rng: np.random.Generator, items: int) -> tuple[np.ndarray, np.ndarray]:
    """Return six judges who nearly copy one, and five who judge alone."""
    label = _labels(rng, items)
    alone = _votes(rng, label, np.full((items, 6), 0.7))
    changed = rng.random((items, 5)) < 0.03
    return label, np.hstack([alone, np.where(changed, 1 - alone[:, :1], alone[:, :1])])


def _class_biased(rng: np.random.Generator, items: int) -> tuple[np.ndarray, np.ndarray]:
    """Return judges who lean to class 0: they miss half of class 1, which 40 % of the items have."""
    label = _labels(rng, items, 0.4)
    item = rng.normal(0, 0.7, items)
    log_odds = np.where(label == 0, 2.5, 0.0) + item
    chance = np.repeat(1 / (1 + np.exp(-log_odds))[:, None], 11, axis=1)
    return label, _votes(rng, label, chance)


def _two_groups(rng: np.random.Generator, items: int) -> tuple[np.ndarray, np.ndarray]:
    """Return judges who are mostly right on two thirds of the items, and mostly wrong on the others."""
    label = _labels(rng, items)
    plain = rng.random(items) < 2 / 3
    chance = np.where(plain, rng.beta(10, 1.5, items), rng.beta(3, 6, items))
    return label, _votes(rng, label, np.repeat(chance[:, None], 11, axis=1))


WORLDS = (
    World("similar judges", _beta(6, 1.5), good=True),
    World("hard and easy items", _hard_and_easy, good=True),
    World("split says nothing", _plurality_right(lambda z: np.full(z.shape, 0.75))),
    World("split misleads", _plurality_right(lambda z: np.where(z > 0.7, 0.25, 0.85))),
    World("copies among judges", _copies),
    World("class-biased judges", _class_biased),
    World("two groups", _two_groups),
    World("1 % error", _beta(10, 1), good=True),
    World("40 % error", _beta(2.7, 2), good=True),
    World("3 judges", _beta(6, 1.5, 3), good=True),
    World("101 judges", _beta(6, 1.5, 101), good=True),
)
