"""Audit: the win rate of A over B from votes and few labels, beside the labels alone.

Claim: none in the paper, which has no pairs.
Command: judgebayes reproduce beyond-consensus/audit-win-rate --data DIR
Runtime: minutes on a quiet core; a stopped run continues. Without data, only the simulated worlds.
Expected: the intervals cover near the nominal level, with five independent judges at less than half the
width of the labels alone; where the votes say nothing, they are as wide as those of the labels alone.

A cell is a kind of judges (`judgebayes.experiments.beyond_consensus.win_worlds`) or a real panel, a
number of random labels, and a target. In a world the items are drawn anew in each replay, and on real
panels the labelled items; the truth is the mean outcome of the items, or the rate of the population for
the target "more". With groups, whole groups are labelled. What is asked of each cell is in `BARS`; a
cell falls short if its interval, which holds for all cells of a bar at once, lies wholly on the wrong
side (`judgebayes.experiments.beyond_consensus.world_bars`).
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from judgebayes.experiments.beyond_consensus.common import PAPER
from judgebayes.experiments.beyond_consensus.win_worlds import INDEPENDENT, WORLDS, draw_world
from judgebayes.experiments.beyond_consensus.world_bars import Ends, ratios, shares
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.data import (
    CLASSES,
    LLMBAR,
    MTBENCH_LLM,
    MTBENCH_PEOPLE,
    RB2,
    people,
    rb2,
    rb2_judges,
)
from judgebayes.experiments.panels import REWARDBENCH, llmbar_panel, rewardbench_panel
from judgebayes.generators.logit_mixture import Verdicts, verdicts
from judgebayes.generators.win_rate import WinScores, win_rates, win_scores
from judgebayes.votes import Votes, encode

NEEDS = (LLMBAR, REWARDBENCH, RB2, MTBENCH_PEOPLE)
REPLAYS = 500
ITEMS = 1000
LABELS = (20, 100, 500)
GROUPED = (50, 200)
REAL_LABELS = (20, 100)
LEVELS = (0.05, 0.5, 0.95)
OWN, ALONE = "votes and labels", "labels alone"
BARS = {
    "coverage": (0.87, 0.94),
    "width, over that of labels alone": (None, 1.02),
    "width, five independent judges": (None, 0.8),
}
"""The least and the greatest value that each bar allows."""
FEW_LABELLED = 0.1
"""The largest labelled share of the last bar."""

Replay = Callable[[np.random.Generator], tuple[Float[np.ndarray, " score"], ...]]
"""Coverage, width and error, of the estimator and of the labels alone."""


class Cell(NamedTuple):
    """A kind of judges or a panel, the number of labels, the target, and one replay of it."""

    task: str
    n: int
    target: str
    dataset: str
    replay: Replay


def scored(
    votes: Verdicts,
    outcome: Float[np.ndarray, " item"],
    known: Int[np.ndarray, " some"],
    truth: float,
    target: str,
    groups: Int[np.ndarray, " item"] | None = None,
) -> tuple[Float[np.ndarray, " score"], ...]:
    """Return coverage, width and error of both methods, with these labels."""
    shown = np.full(len(outcome), np.nan)
    shown[known] = outcome[known]
    ties = bool((outcome == 0.5).any())
    both = (
        win_rates(win_scores(votes, shown), shown, target=target, groups=groups, can_tie=ties),
        win_rates(WinScores([], []), shown, target=target, groups=groups, can_tie=ties),
    )
    rows_of = []
    for fit in both:
        low, middle, high = fit.quantiles(LEVELS)[:, 0]
        error = abs(middle - truth)
        rows_of.append(np.array([low <= truth <= high, high - low, error], float))
    return tuple(rows_of)


def simulated(
    name: str, n: int, target: str, grouped: bool, rng: np.random.Generator
) -> tuple[Float[np.ndarray, " score"], ...]:
    """Return the scores of one replay in a world."""
    world = draw_world(name, rng, ITEMS, grouped=grouped)
    truth = world.rate if target == "more" else float(world.outcome.mean())
    if world.groups is None:
        known = rng.permutation(ITEMS)[:n]
    else:
        order = rng.permutation(world.groups.max() + 1)
        size = len(world.groups) // len(order)
        known = np.flatnonzero(np.isin(world.groups, order[: n // size]))
    return scored(verdicts(world.votes), world.outcome, known, truth, target, world.groups)


def resampled(
    votes: Verdicts, outcome: Float[np.ndarray, " item"], n: int, rng: np.random.Generator
) -> tuple[Float[np.ndarray, " score"], ...]:
    """Return the scores of one replay on a real panel: other items are labelled."""
    known = rng.permutation(len(outcome))[:n]
    return scored(votes, outcome, known, float(outcome.mean()), "these")


def cells(run: Run) -> list[Cell]:
    """Return the cells: the worlds by number of labels and target, then the real panels."""
    chosen = []
    for name in run.few(list(WORLDS), 3):
        for n in run.few(list(LABELS)):
            replay = partial(simulated, name, n, "these", False)
            chosen.append(Cell(name, n, "these", "twin", replay))
    for name in (INDEPENDENT, "useless"):
        replay = partial(simulated, name, 100, "more", False)
        chosen.append(Cell(name, 100, "more", "twin", replay))
    for n in GROUPED:
        for target in ("these", "more"):
            replay = partial(simulated, INDEPENDENT, n, target, True)
            chosen.append(Cell("groups of five items", n, target, "twin", replay))
    real = panels(run) if all(run.has(name) for name in NEEDS) else iter(())
    for name, dataset, votes, outcome in run.few(list(real), 1):
        numbers = verdicts(votes)
        chosen += [
            Cell(name, n, "these", dataset, partial(resampled, numbers, outcome, n))
            for n in run.few(list(REAL_LABELS))
        ]
    return chosen


def panels(run: Run) -> Iterator[tuple[str, str, Votes, Float[np.ndarray, " item"]]]:
    """Yield the name, the data set, the votes and the outcomes of each real panel."""
    for panel in (llmbar_panel(run), rewardbench_panel(run)):
        yield panel.dataset, panel.dataset, panel.votes, np.asarray(panel.labels, float)
    for judge in rb2_judges(run)[:2]:
        cell = rb2(run, judge, None)
        yield f"{RB2}, {judge}", RB2, cell.votes, np.asarray(cell.labels, float) / 2
    votes = people(run).drop_duplicates(["item", "judge"])
    of_people = votes["judge"] != MTBENCH_LLM
    label = votes[of_people].groupby("item").sample(1, random_state=0)
    rest = votes.drop(label.index)
    rest = rest[rest["item"].isin(label["item"])]
    encoded, coding = encode(rest, classes=CLASSES)
    known = label.set_index("item")["vote"].loc[coding.items].to_numpy(float)
    yield MTBENCH_PEOPLE, MTBENCH_PEOPLE, encoded, (known + 1) / 2


Scores = Float[np.ndarray, "method replay score"]


def replays(run: Run, cell: Cell, count: int) -> Scores:
    """Return the scores of a cell in all replays."""
    stored = replace(run, splits=count)
    key = ("audit-win-rate", cell.task, cell.n, cell.target)

    def make() -> dict[str, np.ndarray]:
        name = f"{cell.task} {cell.n} {cell.target}".encode()
        both = [
            cell.replay(np.random.default_rng((run.seed + place, *name))) for place in range(count)
        ]
        return {"scores": np.array(both).transpose(1, 0, 2)}

    kept: dict[str, np.ndarray] = stored.keep(key, np.zeros(0), make)
    return kept["scores"]


def bars(done: dict[int, Scores], chosen: list[Cell]) -> Iterator[tuple[str, list[Cell], Ends]]:
    """Yield each bar with its cells and their estimates with simultaneous intervals."""
    covered = np.stack([done[i][0, :, 0] for i in done], 1)
    yield "coverage", chosen, shares(covered[None])
    own, alone = (np.stack([done[i][m, :, 1] for i in done], 1) for m in (0, 1))
    yield "width, over that of labels alone", chosen, ratios(own, alone[None])
    few = [
        i
        for i, cell in enumerate(chosen)
        if cell.task == INDEPENDENT and cell.n <= FEW_LABELLED * ITEMS
    ]
    some = ratios(own[:, few], alone[None][:, :, few])
    yield "width, five independent judges", [chosen[i] for i in few], some


@experiment(
    PAPER,
    "audit-win-rate",
    "Audit: the win rate from votes and few labels, beside the labels alone",
    "intervals cover, and are narrower than those of the labels alone, in every cell",
    needs=NEEDS,
    twins=True,
)
def main(run: Run) -> Output:
    """Return coverage, width and error by cell, and what each bar says of them."""
    chosen = cells(run)
    count = 10 if run.smoke else REPLAYS
    done: dict[int, Scores] = {}
    for place, cell in enumerate(chosen):
        run.say(f"{cell.task}: {cell.n} labels, {cell.target}")
        done[place] = replays(run, cell, count)
    records = [*_means(done, chosen), *_judged(done, chosen, count)]
    table = rows(PAPER, "audit-win-rate", records)
    return Output(table)


def _means(done: dict[int, Scores], chosen: list[Cell]) -> Iterator[dict[str, Any]]:
    """Yield the mean of every score of both methods, with its 95 % interval over replays."""
    for place, cell in enumerate(chosen):
        for method, scores in zip((OWN, ALONE), done[place], strict=True):
            error = scores.std(0, ddof=1) / np.sqrt(len(scores))
            for metric, m, e in zip(
                ("coverage", "width", "mean error"), scores.mean(0), error, strict=True
            ):
                yield _row(cell) | {
                    "method": method,
                    "metric": metric,
                    "value": float(m),
                    "low": float(m - 1.96 * e),
                    "high": float(m + 1.96 * e),
                    "splits": len(scores),
                }


def _row(cell: Cell) -> dict[str, Any]:
    return {"dataset": cell.dataset, "task": f"{cell.task}, {cell.target}", "n": cell.n}


def _judged(done: dict[int, Scores], chosen: list[Cell], count: int) -> Iterator[dict[str, Any]]:
    """Yield each bar's cells, and how many of them miss it and fall short of it."""
    for bar, of_bar, ends in bars(done, chosen):
        least, greatest = BARS[bar]
        low_bar = -np.inf if least is None else least
        high_bar = np.inf if greatest is None else greatest
        value, low, high = ends
        missed = (value < low_bar) | (value > high_bar)
        short = (high < low_bar) | (low > high_bar)
        base = {"method": OWN, "splits": count}
        for cell, v, a, b in zip(of_bar, value, low, high, strict=True):
            ends_of = {"value": float(v), "low": float(a), "high": float(b)}
            yield base | _row(cell) | {"metric": f"bar: {bar}"} | ends_of
        counts = {
            "cells": float(len(of_bar)),
            "cells that miss it": float(missed.sum()),
            "cells that fall short": float(short.sum()),
        }
        for metric, n in counts.items():
            yield base | {"dataset": "all", "task": bar, "metric": metric, "value": n}
