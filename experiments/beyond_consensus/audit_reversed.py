"""Audit: how often judges are said to have turned their votes round, with and without cause.

Claim: none in the paper.
Command: judgebayes reproduce beyond-consensus/audit-reversed
Runtime: about 2 minutes of one core.
Expected: a panel has a false alarm in at most one world of thirty, most often where judges know
nothing and few items are labelled; a strong judge who is turned round is found in half of the worlds
with labels of 40 items, and nearly always with those of all items of one generator.

`judgebayes precision` says that a judge's votes are turned round from a posterior probability of .95
that its Youden index is below 0 (`judgebayes.generators.own_labels`). The worlds are those of
`audit-worlds`: judges with the same Youden index, weak and strong ones; shifts between generators of
each kind; labels of 40 items of one generator, and of all 400 of one, three and five. In a world with a
turned judge, the first of the strong judges votes the opposite.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool

from judgebayes.experiments.beyond_consensus.common import PAPER
from judgebayes.experiments.beyond_consensus.worlds import (
    ITEMS,
    Counts,
    Setting,
    Shift,
    draw,
    judges,
)
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.generators import PrecisionCounts, judge_youden
from judgebayes.workflow.precision_tables import SETTLED

YOUDEN = (0.0, 0.05, 0.1, 0.3, 0.6)
SHIFTS: tuple[Shift, ...] = ("none", "cell", "common")
LABELS = ((1, 40), (1, ITEMS), (3, ITEMS), (5, ITEMS))
"""Labelled generators, and the labelled items of each."""
REPLAYS = 300
TURNED = "strong, one turned round"


@dataclass(frozen=True)
class World:
    """A kind of judges and of shifts, and whether the first judge votes the opposite."""

    name: str
    setting: Setting
    turned: bool = False


def worlds(run: Run) -> list[World]:
    """Return the worlds, those without a turned judge first."""
    kinds: list[tuple[str, dict[str, Any], bool]] = [
        (f"Youden {youden:g}", {"kind": "uninformative", "youden": youden}, False)
        for youden in run.few(list(YOUDEN))
    ]
    kinds += [("weak", {"kind": "weak"}, False), ("strong", {"kind": "strong"}, False)]
    kinds += [(TURNED, {"kind": "strong"}, True)]
    return [
        World(name, Setting(shift=shift, **options), turned)
        for name, options, turned in kinds
        for shift in SHIFTS
    ]


@experiment(
    PAPER,
    "audit-reversed",
    "Audit: judges said to have turned their votes round",
    "how often judges are said to vote the opposite, with and without cause",
    twins=True,
)
def main(run: Run) -> Output:
    """Return the share of judges, and of panels with a judge, of whom it is said."""
    records: list[dict[str, Any]] = []
    replays = 10 if run.smoke else REPLAYS
    for place, world in enumerate(worlds(run)):
        run.say(f"{world.name}, shift {world.setting.shift}")
        made_from = (world.name, world.setting.name, replays)
        make = partial(_said, world, replays, [run.seed, place])
        said = run.keep((world.name, world.setting.name), made_from, make)
        for generators, items in LABELS:
            own = said[_name(generators, items)]
            right = own[:, 1:] if world.turned else own
            values = {"judges, without cause": right.mean(), "panels, without cause": _any(right)}
            if world.turned:
                values["judges, with cause"] = own[:, 0].mean()
            records += [
                {
                    "dataset": "twin",
                    "task": f"{world.name}, shift {world.setting.shift}",
                    "n": generators * items,
                    "method": world.name,
                    "metric": metric,
                    "value": float(value),
                    "splits": replays,
                }
                for metric, value in values.items()
            ]
    return Output(rows(PAPER, "audit-reversed", records))


def _any(said: Bool[np.ndarray, "replay judge"]) -> float:
    return float(said.any(1).mean())


def _name(generators: int, items: int) -> str:
    return f"{generators} x {items}"


def _said(
    world: World, replays: int, seed: list[int]
) -> dict[str, Bool[np.ndarray, "replay judge"]]:
    """Return of which judges it is said, by replay, for each number of labels."""
    rng = np.random.default_rng(seed)
    said: dict[str, list[Bool[np.ndarray, " judge"]]] = {_name(*size): [] for size in LABELS}
    for _ in range(replays):
        panel = judges(world.setting, rng)
        for generators, items in LABELS:
            counts = labelled(draw(panel, rng, generators, items), turned=world.turned)
            said[_name(generators, items)].append(judge_youden(counts).below(0.0) >= SETTLED)
    return {name: np.stack(each) for name, each in said.items()}


def labelled(votes: Counts, *, turned: bool) -> PrecisionCounts:
    """Return the counts of labelled items; a turned first judge votes the opposite."""
    true, false = votes.true_accepted.copy(), votes.false_accepted.copy()
    if turned:
        true[:, 0] = votes.valid_judged[:, 0] - true[:, 0]
        false[:, 0] = votes.invalid_judged[:, 0] - false[:, 0]
    none = np.zeros_like(true)
    judged = votes.valid_judged, votes.invalid_judged
    parts = none, none, true, judged[0], false, judged[1], votes.valid, votes.invalid, none[:, 0]
    return PrecisionCounts(*map(jnp.asarray, parts))
