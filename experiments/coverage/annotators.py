"""Intervals from labels of two annotators who err, merged by `labels_merge`."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int
from scipy.special import expit, logit

from judgebayes.arrays import AnyArray
from judgebayes.experiments.coverage.engine import Ends, Setting, Trials, at_levels, trials
from judgebayes.generators.panel import Posterior
from judgebayes.panel.by_value import rates_by
from judgebayes.votes.annotators import NODE_WEIGHTS
from judgebayes.votes.columns import Evidence
from judgebayes.workflow.asking import read
from judgebayes.workflow.data import Study
from judgebayes.workflow.precision import precision

RATES = (0.1, 0.2)
"""Shares of wrong labels of each annotator."""
MERGES = {"not adjudicated": "noisy", "adjudicated": "adjudicated"}
ITEMS, JUDGES = 120, 4
SHOWN = (0, 60, 120, 120)
"""Items of each generator that both annotators label."""
SLOW = 4
"""Part of the replays of `precision`, which takes a second."""
CLASSES = np.array(["invalid", "valid"])
VALUES = ("easy", "hard")
SHIFT = 0.2
"""How much the logits of the judges' rates differ between generators."""
LOWER = 0.8
"""How much lower the logits of the judges' rates are on hard items."""


class _World(NamedTuple):
    """Votes and labels as tables, with the truth."""

    votes: pd.DataFrame
    labels: pd.DataFrame
    valid: Bool[np.ndarray, " item"]
    generator: Int[np.ndarray, " item"]
    rates: Float[np.ndarray, "value label judge"]
    """The rates of the judges on easy and hard items: TNR and TPR."""

    def read(self, how: str) -> Study:
        """Return the votes with merged labels."""
        eve = "eve" if how == "adjudicated" else None
        return read(self.votes, self.labels, labels_merge=how, adjudicator=eve)

    def share(self, place: int) -> float:
        """Return the share of a generator's items that is valid."""
        return float(self.valid[self.generator == place].mean())


def annotators(setting: Setting) -> list[Trials]:
    """Return trials of generators, and of judges' TPR and TNR by difficulty."""
    return [*_generators(setting), *_rates(setting)]


def _generators(setting: Setting) -> Iterator[Trials]:
    kinds = ("no label", "labelled in part", "labelled in full")
    for cell, name, rate, how in _cells():
        ends: dict[str, list[tuple[Ends, float]]] = {kind: [] for kind in kinds}
        for i in range(setting.fewer(SLOW)):
            world = _world(setting.rng(18, cell, i), rate, SHIFT, adjudicated=how == "adjudicated")
            # The annotators' errors are about these items.
            fit = precision(world.read(how), target="these").fit
            assert isinstance(fit, Posterior)
            for place, kind in enumerate(kinds):
                ends[kind].append((at_levels(_of(fit.interval, place)), world.share(place)))
        for kind in kinds:
            yield trials(f"generator's share, {kind}, two annotators", name, ends[kind])


def _rates(setting: Setting) -> Iterator[Trials]:
    for cell, name, rate, how in _cells():
        both: dict[str, list[tuple[Ends, float]]] = {"tpr": [], "tnr": []}
        for i in range(setting.replays):
            world = _world(setting.rng(19, cell, i), rate, 0.0, adjudicated=how == "adjudicated")
            data = world.read(how)
            for label, column in enumerate(("tnr", "tpr")):
                value, judge = i % 2, (i // 2) % JUDGES
                ends = at_levels(_rate_at(data, column, value, judge))
                both[column].append((ends, float(world.rates[value, label, judge])))
        for column, ends_of in both.items():
            yield trials(f"{column.upper()} by difficulty, two annotators", name, ends_of)


def _cells() -> Iterator[tuple[int, str, float, str]]:
    pairs = [(rate, name) for rate in RATES for name in MERGES]
    for cell, (rate, name) in enumerate(pairs):
        yield cell, f"simulated: {rate:.0%} of labels wrong, {name}", rate, MERGES[name]


def _of(
    interval: Callable[[float], tuple[AnyArray, AnyArray]], place: int
) -> Callable[[float], tuple[float, float]]:
    def ends(level: float) -> tuple[float, float]:
        low, high = interval(level)
        return float(low[place]), float(high[place])

    return ends


def _rate_at(
    data: Study, column: str, value: int, judge: int
) -> Callable[[float], tuple[float, float]]:
    assert data.log_likelihood is not None
    known = data.labels >= 0
    low, high = (np.where(known, data.log_likelihood[..., k], 0.0) for k in (0, 1))
    own = pd.Series(data.coding.items).str.endswith(VALUES[value]).to_numpy()

    def ends(level: float) -> tuple[float, float]:
        rates = rates_by(
            data.votes,
            data.labels,
            np.where(own, 0, -1),
            [VALUES[value]],
            data.coding,
            level=level,
            evidence=Evidence(high - low, NODE_WEIGHTS),
        )
        return float(rates[f"{column}_low"][judge]), float(rates[f"{column}_high"][judge])

    return ends


def _world(
    rng: np.random.Generator, rate: float, shift_scale: float, *, adjudicated: bool
) -> _World:
    """Return a world of four generators, whose outputs are easy or hard for the judges."""
    generators = len(SHOWN)
    generator = np.repeat(np.arange(generators), ITEMS)
    valid = rng.random(len(generator)) < rng.uniform(0.6, 0.9, generators)[generator]
    hard = rng.integers(0, 2, len(generator))
    tnr, tpr = rng.uniform(0.4, 0.8, JUDGES), rng.uniform(0.85, 0.97, JUDGES)
    at = logit(np.stack([tnr, tpr]))
    rates = expit(at[None] - LOWER * np.arange(2)[:, None, None])
    shift = shift_scale * rng.normal(0, 1, (generators, 2, JUDGES))
    sign = valid.astype(int)
    of_item = expit(at[sign] - LOWER * hard[:, None] + shift[generator, sign])
    right = rng.random(of_item.shape) < of_item
    names = np.array(
        [f"{g} {n} {VALUES[h]}" for n, (g, h) in enumerate(zip(generator, hard, strict=True))]
    )
    votes = pd.DataFrame(
        {
            "item": np.repeat(names, JUDGES),
            "generator": np.repeat(generator, JUDGES).astype(str),
            "judge": np.tile([f"judge {j}" for j in range(JUDGES)], len(names)),
            "vote": CLASSES[np.where(right, valid[:, None], ~valid[:, None]).astype(int)].ravel(),
        }
    )
    shown = np.flatnonzero(np.arange(len(generator)) % ITEMS < np.array(SHOWN)[generator])
    given = valid[shown, None] ^ (rng.random((len(shown), 2)) < rate)
    labels = pd.DataFrame(
        {
            "item": np.repeat(names[shown], 2),
            "annotator": np.tile(["ann", "ben"], len(shown)),
            "label": CLASSES[given.astype(int)].ravel(),
        }
    )
    if adjudicated:
        split = shown[given[:, 0] != given[:, 1]]
        own = pd.DataFrame(
            {"item": names[split], "annotator": "eve", "label": CLASSES[valid[split].astype(int)]}
        )
        labels = pd.concat([labels, own], ignore_index=True)
    return _World(votes, labels, valid, generator, rates)
