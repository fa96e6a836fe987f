"""Simulated generators whose judges know much: Youden indices of .3 to .8."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from judgebayes.generators import PrecisionCounts, count_votes
from judgebayes.votes import Votes

GENERATORS, JUDGES, ITEMS = 8, 6, 200


class World(NamedTuple):
    """Votes (item, judge), -1 where missing, with all labels and the generator of each item."""

    vote: np.ndarray
    label: np.ndarray
    generator: np.ndarray

    @property
    def truth(self) -> np.ndarray:
        """The share of valid items of each generator."""
        size = np.bincount(self.generator, minlength=GENERATORS)
        return np.bincount(self.generator, self.label, GENERATORS) / size

    @property
    def votes(self) -> Votes:
        return Votes(jnp.asarray(self.vote[..., None], jnp.int32), None, None, None, 2)

    @property
    def counts(self) -> PrecisionCounts:
        """Counts with every item labelled."""
        return count_votes(self.votes, self.label, self.generator, GENERATORS)


def world(seed: int) -> World:
    """Draw votes of judges who know a share of the items, and guess the others alike everywhere."""
    rng = np.random.default_rng(seed)
    precision = rng.uniform(0.35, 0.95, GENERATORS)
    know, accept = rng.uniform(0.3, 0.8, JUDGES), rng.uniform(0.4, 0.8, JUDGES)
    generator = np.repeat(np.arange(GENERATORS), ITEMS)
    label = (rng.random(len(generator)) < precision[generator]).astype(int)
    p = know * label[:, None] + (1 - know) * accept
    return World((rng.random(p.shape) < p).astype(int), label, generator)


def with_silent(of: World, judges: int = 2) -> World:
    """Add judges who never vote."""
    return of._replace(vote=np.pad(of.vote, ((0, 0), (0, judges)), constant_values=-1))


def with_saturated(of: World, judges: int = 2) -> World:
    """Add judges who call every item valid."""
    return of._replace(vote=np.pad(of.vote, ((0, 0), (0, judges)), constant_values=1))
