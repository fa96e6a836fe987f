"""Intervals of `shares`, which `precision` prints, on the worlds and votes of `generators`."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from judgebayes.experiments.beyond_consensus.audit_regimes import GENERATORS, ITEMS, item_world
from judgebayes.experiments.beyond_consensus.common import DATASET, item_votes
from judgebayes.experiments.coverage.engine import Ends, Setting, Trials, at_levels, trials
from judgebayes.experiments.coverage.generators import (
    PART,
    SHOWN,
    orders,
    outputs,
    program_draws,
    regime,
)
from judgebayes.generators import SharePosterior, shares
from judgebayes.votes import Votes

OWN = (0, 20, 80)
"""Numbers of labels of a generator whose others are labelled in full."""
SLOW = 4
"""Part of the replays of six generators, 14 judges and labels in part: a data set takes seconds."""


class _Items(NamedTuple):
    """Items of several generators, with all of their labels."""

    votes: Votes
    labels: Int[np.ndarray, " item"]
    generator: Int[np.ndarray, " item"]

    @property
    def generators(self) -> int:
        return int(self.generator.max()) + 1

    def truth(self, place: int) -> float:
        """Return the share of a generator's items that is valid."""
        return float(self.labels[self.generator == place].mean())

    def fit(self, shown: Int[np.ndarray, " part"]) -> SharePosterior:
        """Return the fit with the labels of some items only."""
        labels = np.full(len(self.labels), -1)
        labels[shown] = self.labels[shown]
        return shares(self.votes, labels, self.generator, self.generators)

    def draw(
        self, rng: np.random.Generator, place: int, labels: int
    ) -> Int[np.ndarray, " labelled"]:
        """Return the positions of random items of a generator, to be labelled."""
        return rng.choice(np.flatnonzero(self.generator == place), labels, replace=False)


def panel(setting: Setting) -> list[Trials]:
    """Return trials of generators without labels, labelled in part, and left out of five."""
    return [*_in_full(setting), *_in_part(setting), *_left_out(setting)]


def _in_full(setting: Setting) -> Iterator[Trials]:
    worlds = (_world(*regime(setting, i)) for i in range(setting.replays))
    sources = [("simulated: weak and strong judges", worlds, GENERATORS)]
    if setting.run.has(DATASET):
        real = _feedback(setting)
        programs = item_votes(setting.run, "fcnhp").program
        draws = (_resampled(real, times[programs]) for times in program_draws(setting, programs))
        sources.append(("feedback on programs", draws, real.generators))
    for name, data, generators in sources:
        ends = []
        for items, order in zip(data, orders(setting, generators), strict=True):
            fit = items.fit(np.flatnonzero(np.isin(items.generator, order[:SHOWN])))
            ends.append(_at(fit, items, int(order[-1])))
        yield trials("generator's share, others labelled in full", name, ends)


def _in_part(setting: Setting) -> Iterator[Trials]:
    sources = [("simulated: one score per output", _scored(), setting.replays)]
    if setting.run.has(DATASET):
        sources.append(("feedback on programs", _feedback(setting), setting.fewer(SLOW)))
    for name, items, replays in sources:
        rng = setting.rng(16, items.generators)
        both: Sequence[list[tuple[Ends, float]]] = ([], [])
        for _ in range(replays):
            order = rng.permutation(items.generators)
            shown = np.concatenate(
                [items.draw(rng, place, PART) for place in order[:SHOWN].tolist()]
            )
            fit = items.fit(shown)
            for ends, place in zip(both, order[[0, SHOWN]].tolist(), strict=True):
                ends.append(_at(fit, items, place))
        for labelling, ends in zip(
            ("labelled in part", "others labelled in part"), both, strict=True
        ):
            yield trials(f"generator's share, {labelling}", name, ends)


def _left_out(setting: Setting) -> Iterator[Trials]:
    """Without labels of its own each generator has one interval, so that there is one trial of each."""
    if not setting.run.has(DATASET):
        return
    items = _feedback(setting)
    for labels in OWN:
        rng, ends = setting.rng(17, labels), []
        for i in range(setting.fewer(SLOW) if labels else items.generators):
            place = i % items.generators
            others = np.flatnonzero(items.generator != place)
            own = items.draw(rng, place, labels)
            ends.append(_at(items.fit(np.concatenate([others, own])), items, place))
        yield trials(
            f"generator's share, {labels} labels, others labelled in full",
            "feedback on programs",
            ends,
        )


def _at(fit: SharePosterior, items: _Items, place: int) -> tuple[Ends, float]:
    def ends(level: float) -> tuple[float, float]:
        low, high = fit.interval(level)
        return float(low[place]), float(high[place])

    return at_levels(ends), items.truth(place)


def _items(votes: np.ndarray, labels: np.ndarray, generator: np.ndarray) -> _Items:
    """Return items from the judges' votes, one row for each item."""
    index = jnp.asarray(votes.astype(np.int8)[..., None])
    return _Items(Votes(index, None, None, None, 2), labels.astype(int), generator)


def _world(name: str, seed: int) -> _Items:
    votes, valid = item_world(name, seed)
    generator = np.repeat(np.arange(GENERATORS), ITEMS)
    return _items(votes.reshape(len(generator), -1), valid.ravel(), generator)


def _scored() -> _Items:
    """Return the outputs with one score, which is the share of eight judges who accept."""
    score, labels, generator = outputs()
    accepting = np.random.default_rng(16).random((len(score), 8)).argsort(1)
    return _items(accepting < np.round(8 * score)[:, None], labels, generator)


def _feedback(setting: Setting) -> _Items:
    cell = item_votes(setting.run, "fcnhp")
    return _Items(cell.votes, cell.labels, cell.generator)


def _resampled(items: _Items, times: Int[np.ndarray, " item"]) -> _Items:
    at = np.repeat(np.arange(len(times)), times)
    return _Items(items.votes.take(at), items.labels[at], items.generator[at])
