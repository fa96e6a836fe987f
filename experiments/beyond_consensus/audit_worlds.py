"""Audit: `Panel` in simulated worlds, cell by cell, beside its rivals and an oracle.

Claim: none in the paper, which uses one data set with weak judges.
Command: judgebayes reproduce beyond-consensus/audit-worlds
Runtime: about 5 minutes of one core for ten replays of all cells, and 10 for the first ten, so that the
100 of the page take an hour; a stopped run continues.
Expected: with weak judges `Panel` is as good as the logit shift, the best rival, and better with two or
more saturated judges; with strong judges it is as good as the regression at its optimum without common
shifts, and better with them. Its intervals cover too much where strong judges share no shift and where
judges know nothing, and too little where weak judges share a shift.

A cell is a kind of judges (weak or strong), a number of saturated judges, a dense panel or one with
missing votes, independent judges or copies, a kind of shift between generators
(`judgebayes.experiments.beyond_consensus.worlds`), and the number s of labelled generators. Errors are
those of the generators without labels. The rivals are the row mean, the logit shift, pooled
Rogan-Gladen and the paper's regression at its true optimum; `Impression`, and s = 1, are in the first
replays only. The oracle (`judgebayes.experiments.beyond_consensus.oracle`) is told the law of judges.
What is asked of each cell is in `BARS`; a cell falls short if its interval, which holds for all cells of
a bar at once, lies wholly on the wrong side (`judgebayes.experiments.beyond_consensus.world_bars`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from judgebayes.arrays import AnyArray
from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.beyond_consensus.common import PAPER
from judgebayes.experiments.beyond_consensus.impression import Impression
from judgebayes.experiments.beyond_consensus.logit_shift import logit_shift
from judgebayes.experiments.beyond_consensus.oracle import interval, law
from judgebayes.experiments.beyond_consensus.regression import starts, targets
from judgebayes.experiments.beyond_consensus.true_minimum import true_minimum
from judgebayes.experiments.beyond_consensus.world_bars import Ends, ratios, shares
from judgebayes.experiments.beyond_consensus.worlds import (
    GENERATORS,
    ITEMS,
    Setting,
    draw,
    grid,
    judges,
)
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.generators import Panel, PrecisionCounts, mean_prediction, rogan_gladen

SIZES = (2, 3, 4, 5)
PART = 10
"""Replays of a stored part; the first part also has `Impression` and s = 1."""
STARTS = 4
RIVALS = ("row mean", "logit shift", "Rogan-Gladen", "regression at its optimum")
YOUDEN = (0.0, 0.05, 0.1, 0.3, 0.6)
BARS = {
    "error, over the best rival's": (None, 1.1),
    "largest error, over the best rival's": (None, 1.1),
    "coverage, mean of shifts": (0.87, 0.94),
    "coverage of a cell": (0.75, None),
    "coverage of a cell, shifts by cell": (0.85, None),
    "width, over the oracle's, s = 2": (None, 3.0),
    "width, over the oracle's, s > 2": (None, 2.0),
    "coverage, uninformative judges": (0.87, 0.94),
}
"""The least and the greatest value that each bar allows."""


def settings(run: Run) -> list[Setting]:
    """Return the panels of the grid with each kind of shift, and then the uninformative panels."""
    nothing = [
        Setting("uninformative", shift=shift, youden=youden)
        for youden in run.few(list(YOUDEN))
        for shift in ("none", "cell", "common")
    ]
    return [*run.few(grid(), 3), *nothing]


SCORES = ("mean error", "mean largest error", "coverage", "width")
"""What a method scores in a replay, on the generators without labels; NaN without interval."""


def _labelled(sizes: Sequence[int]) -> np.ndarray:
    return np.arange(GENERATORS) < np.array(sizes)[:, None]


@jax.jit
def _fits(
    counts: PrecisionCounts, masks: jax.Array
) -> dict[str, tuple[jax.Array, jax.Array, jax.Array]]:
    """Return estimates and interval ends by replay, number of labels and generator."""

    def one(counts: PrecisionCounts, mask: jax.Array) -> dict[str, Any]:
        shown = counts.reveal(mask)
        fit = Panel().fit(shown)
        plain = {
            "row mean": mean_prediction(shown),
            "logit shift": logit_shift(shown),
            "Rogan-Gladen": rogan_gladen(shown),
        }
        none = jnp.full(GENERATORS, jnp.nan)
        return {
            "panel": (fit.estimate(), *fit.interval(0.9)),
            "status": (fit.status, none, none),
            **{name: (value, none, none) for name, value in plain.items()},
        }

    each: dict[str, Any] = jax.vmap(jax.vmap(one, (None, 0)), (0, None))(counts, masks)
    return each


@jax.jit
def _impression(
    counts: PrecisionCounts, masks: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    def one(counts: PrecisionCounts, mask: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        fit = Impression().fit(counts.reveal(mask))
        return fit.estimate(), *fit.interval(0.9)

    each: tuple[jax.Array, jax.Array, jax.Array] = jax.vmap(jax.vmap(one, (None, 0)), (0, None))(
        counts, masks
    )
    return each


def _regression(counts: PrecisionCounts, masks: jax.Array) -> np.ndarray:
    """Return the precisions at the smallest minimum from all starts; worlds share no start."""
    aims = jax.vmap(lambda c: jax.vmap(lambda m: targets(c.reveal(m)))(masks))(counts)
    estimates = []
    for place, matrix in enumerate(np.asarray(counts.matrix)):
        aim = jax.tree.map(lambda a, at=place: a[at], aims)
        fit = true_minimum(aim, starts(matrix, STARTS))
        best = np.asarray(fit.loss).argmin(1)
        estimates.append(np.asarray(fit.precision)[np.arange(len(best)), best])
    return np.stack(estimates)


@in_float64
def part(setting: Setting, seeds: Sequence[int], *, first: bool) -> dict[str, np.ndarray]:
    """Return the scores of all methods in the worlds of these seeds, as one array for each method."""
    sizes = (1, *SIZES) if first else SIZES
    masks = jnp.asarray(_labelled(sizes))
    drawn, ends = [], []
    for seed in seeds:
        rng = np.random.default_rng((seed, *setting.name.encode()))
        panel = judges(setting, rng)
        counts = draw(panel, rng)
        judged = counts.valid_judged + counts.invalid_judged
        accepted = counts.true_accepted + counts.false_accepted
        ends.append(interval(accepted / judged, judged, ITEMS, law(panel)))
        drawn.append(counts)
    fields = [np.stack(field) for field in zip(*drawn, strict=True)]
    none = np.zeros_like(fields[0])
    batch = PrecisionCounts(*map(jnp.asarray, (none, none, *fields, none[..., 0])))
    truth = (fields[-2] / ITEMS)[:, None]
    every: dict[str, Any] = dict(_fits(batch, masks))
    status = np.asarray(every.pop("status")[0])
    nothing = np.full((len(seeds), len(sizes), GENERATORS), np.nan)
    every["regression at its optimum"] = (_regression(batch, masks), nothing, nothing)
    low, high = (np.stack(end)[:, None] for end in zip(*ends, strict=True))
    every["oracle"] = (nothing, low, high)
    if first:
        every["impression"] = _impression(batch, masks)
    scores = {name: _scores(fit, truth, sizes) for name, fit in every.items()}
    return {**scores, "unfinished": (status != 0).astype(float)}


def _scores(
    fit: tuple[AnyArray, AnyArray, AnyArray], truth: np.ndarray, sizes: Sequence[int]
) -> np.ndarray:
    """Return `SCORES` of each replay and number of labelled generators: the first axis."""
    estimate, low, high = (np.asarray(each) for each in fit)
    hidden = ~_labelled(sizes)
    gap = np.abs(estimate - truth)
    held_out = hidden.sum(1)
    covered = np.where(np.isnan(low), np.nan, (low <= truth) & (truth <= high))
    means = [np.where(hidden, x, 0.0).sum(2) / held_out for x in (gap, covered, high - low)]
    return np.stack([means[0], np.where(hidden, gap, 0.0).max(2), *means[1:]])


Part = dict[str, np.ndarray]


def parts(run: Run, chosen: Sequence[Setting]) -> dict[Setting, list[Part]]:
    """Return the parts of all settings; the first part of each is computed first.

    A stored part is the same for every number of replays, so that another number continues a stopped
    run.
    """
    stored = replace(run, splits=PART)
    done: dict[Setting, list[Part]] = {setting: [] for setting in chosen}
    for start in range(0, run.splits, PART):
        seeds = range(run.seed + start, run.seed + min(start + PART, run.splits))
        run.say(f"replays {start + 1} to {start + len(seeds)}")
        for setting in chosen:
            key = ("audit-worlds", setting.name, seeds.start, seeds.stop)

            def make(setting: Setting = setting, seeds: range = seeds) -> Part:
                return part(setting, seeds, first=seeds.start == run.seed)

            done[setting].append(stored.keep(key, np.zeros(0), make))
    return done


def joined(all_parts: list[Part], name: str) -> Float[np.ndarray, "score replay size"]:
    """Return a method's scores in all replays, at the sizes that all parts have."""
    return np.concatenate([one[name][..., -len(SIZES) :] for one in all_parts], axis=1)


def bars(done: dict[Setting, list[Part]]) -> Iterator[tuple[str, list[tuple[Any, int]], Ends]]:
    """Yield each bar with its cells (task, s) and their estimates with simultaneous intervals."""
    full = [setting for setting in done if setting.youden is None]
    panel, oracle, *rivals = (
        np.stack([joined(done[setting], name) for setting in full], axis=2)
        for name in ("panel", "oracle", *RIVALS)
    )  # score replay setting size
    cells = [(setting.name, size) for setting in full for size in SIZES]
    replays = panel.shape[1]
    names = list(BARS)

    def flat(values: np.ndarray) -> np.ndarray:
        return np.asarray(values.reshape(replays, -1))

    for place in (0, 1):
        others = np.stack([flat(rival[place]) for rival in rivals])
        yield names[place], cells, ratios(flat(panel[place]), others)
    yield names[2], *_over_shifts(done, full)
    yield names[3], cells, shares(flat(panel[2])[None])
    by_cell = np.array([setting.shift == "cell" for setting in full])
    some = [cell for cell, one in zip(cells, np.repeat(by_cell, len(SIZES)), strict=True) if one]
    yield names[4], some, shares(flat(panel[2][:, by_cell])[None])
    for name, chosen in ((names[5], [0]), (names[6], [1, 2, 3])):
        at = [(setting.name, SIZES[place]) for setting in full for place in chosen]
        own, oracles = (flat(method[3][..., chosen]) for method in (panel, oracle))
        yield name, at, ratios(own, oracles[None])
    nothing = [setting for setting in done if setting.youden is not None]
    yield names[7], *_over_shifts(done, nothing)


def _over_shifts(
    done: dict[Setting, list[Part]], chosen: list[Setting]
) -> tuple[list[tuple[Any, int]], Ends]:
    """Return the coverage of each panel and s, as the mean over kinds of shift."""
    panels = list(dict.fromkeys(setting.panel for setting in chosen))
    covered = [
        np.stack([joined(done[s], "panel")[2] for s in chosen if s.panel == panel])
        for panel in panels
    ]  # shift replay size, by panel
    cells = [(panel, size) for panel in panels for size in SIZES]
    return cells, shares(np.concatenate(covered, axis=2))


def _scored(done: dict[Setting, list[Part]]) -> Iterator[dict[str, Any]]:
    """Yield the mean of every score with its 95 % interval over replays."""
    for setting, all_parts in done.items():
        for name in ("panel", "impression", "oracle", *RIVALS):
            here = [one for one in all_parts if name in one]
            for place, size in enumerate((1, *SIZES)):
                some = here[:1] if size == 1 else here
                from_end = place - len(SIZES) - 1
                values = np.concatenate([one[name][:, :, from_end] for one in some], axis=1)
                mean, error = values.mean(1), values.std(1, ddof=1) / np.sqrt(values.shape[1])
                for metric, m, e in zip(SCORES, mean, error, strict=True):
                    if np.isfinite(m):
                        yield {
                            "task": setting.name,
                            "n": size,
                            "method": name,
                            "metric": metric,
                            "value": float(m),
                            "low": float(m - 1.96 * e),
                            "high": float(m + 1.96 * e),
                            "splits": values.shape[1],
                        }


def _judged(done: dict[Setting, list[Part]], replays: int) -> Iterator[dict[str, Any]]:
    """Yield each bar's cells, and how many of them miss it and fall short of it."""
    for bar, cells, ends in bars(done):
        least, greatest = BARS[bar]
        value, low, high = ends
        missed, short = np.zeros((2, len(cells)), bool)
        if least is not None:
            missed, short = missed | (value < least), short | (high < least)
        if greatest is not None:
            missed, short = missed | (value > greatest), short | (low > greatest)
        base = {"method": "panel", "splits": replays}
        for (task, size), *each in zip(cells, *ends, strict=True):
            record = dict(zip(("value", "low", "high"), map(float, each), strict=True))
            yield base | {"task": task, "n": size, "metric": bar} | record
        for metric, which in (("cells that miss it", missed), ("cells that fall short", short)):
            yield base | {"task": bar, "metric": metric, "value": float(which.sum())}
        yield base | {"task": bar, "metric": "cells", "value": float(len(cells))}


@experiment(
    PAPER,
    "audit-worlds",
    "Audit: the panel estimator in simulated worlds, cell by cell",
    "errors, coverage and width hold in every cell, beside the best rival and an oracle",
    twins=True,
)
def main(run: Run) -> Output:
    """Return errors, coverage and width by cell, and what each bar says of them."""
    run = replace(run, splits=2) if run.smoke else run
    done = parts(run, settings(run))
    records = [*_scored(done), *_judged(done, run.splits)]
    fits = [one["unfinished"] for all_parts in done.values() for one in all_parts]
    records.append(
        {
            "task": "all worlds",
            "method": "panel",
            "metric": "share of fits without convergence",
            "value": float(np.concatenate([x.ravel() for x in fits]).mean()),
            "splits": run.splits,
        }
    )
    table = rows(PAPER, "audit-worlds", [{"dataset": "twin", **record} for record in records])
    return Output(table)
