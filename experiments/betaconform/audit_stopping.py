"""Audit: labelling until an interval of the split curve is narrow.

Claim: (none of the paper) an interval that is checked while one labels, at a stricter level and at few
numbers of labels, covers at its level when labelling stops.
Command: judgebayes reproduce betaconform/audit-stopping --data DIR
Runtime: about 15 minutes with data; 12 replays on each of 38 data sets and 11 simulated worlds.
Expected: checked at the level itself, intervals cover less often where the votes say little; with the
stricter level they cover, for about a quarter more labels than the smallest fixed number takes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from judgebayes.experiments.betaconform.common import PAPER
from judgebayes.experiments.betaconform.curve_worlds import WORLDS
from judgebayes.experiments.betaconform.vote_splits import split_sets
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.significance import normal_interval
from judgebayes.majority import (
    MeanLoss,
    SplitCurve,
    Splits,
    labelling_order,
    losses,
    next_check,
    odd_sizes,
    stopping_level,
)

REPLAYS = 12
WIDTHS = (0.2, 0.12, 0.08)
LEVEL = 0.9
LEVELS = {"at the level": LEVEL, "stricter": stopping_level(LEVEL)}
ITEMS = 600
"""Items of a simulated world."""


@dataclass(frozen=True)
class _Set:
    family: str
    name: str
    splits: Splits
    by_class: bool


@dataclass(frozen=True)
class _Path:
    """The intervals while one replay is labelled."""

    truth: float
    labels: Float[np.ndarray, " check"]
    low: Float[np.ndarray, "level check"]
    high: Float[np.ndarray, "level check"]

    def stop(self, level: int, width: float) -> int:
        """Return the first check at which the interval is as narrow; the last if none is."""
        narrow = self.high[level] - self.low[level] <= width
        return int(narrow.argmax()) if narrow.any() else len(self.labels) - 1

    def covers(self, level: int, check: int) -> bool:
        """Tell whether the interval contains the truth."""
        low, high = self.low[level, check], self.high[level, check]
        return bool(low - 1e-9 <= self.truth <= high + 1e-9)


@experiment(
    PAPER,
    "audit-stopping",
    "Audit: labelling until an interval is narrow",
    "intervals cover at the time of stopping, and stopping takes few labels more than a fixed number",
    needs=("p3_correct_counts", "llmbar_evaluators", "rb2_k8_scores"),
    twins=True,
)
def main(run: Run) -> Output:
    """Return coverage at the time of stopping, and labels relative to the smallest fixed number."""
    replays = 2 if run.smoke else REPLAYS
    sets = [_Set(s.family, s.name, s.splits, False) for s in split_sets(run)]
    sets += [
        _Set("simulated", w.name, w.sample([run.seed, i], ITEMS), True)
        for i, w in enumerate(run.few(list(WORLDS), 1))
    ]
    records: list[dict[str, Any]] = []
    for one in sets:
        run.say(f"{one.family} {one.name}")
        paths = [_labelled(one, run.seed + replay, run.smoke) for replay in range(replays)]
        for width in WIDTHS[:1] if run.smoke else WIDTHS:
            records += _rows(one, paths, width)
    table = rows(PAPER, "audit-stopping", records)
    return Output(table, notes=_notes(table))


def _labelled(one: _Set, seed: int, short: bool) -> _Path:
    """Return the intervals at every check until the narrowest target is met."""
    whole, items = one.splits, len(one.splits.labels)
    size = odd_sizes(int(whole.total.max()))[-1]
    truth = losses(whole, size, "wrong")[np.arange(items), whole.positions()]
    order = labelling_order(items, seed)
    counts, low, high = [], [], []
    count, least = next_check(0), max(WIDTHS) if short else min(WIDTHS)
    while count <= items:
        labels = np.full(items, -1)
        labels[order[:count]] = whole.labels[order[:count]]
        splits = whole.with_labels(labels)
        fit = SplitCurve(by_class=one.by_class).fit(splits)
        ends = [
            fit.curve(splits, (size,), MeanLoss("these", "wrong", level=level), seed=count)
            for level in LEVELS.values()
        ]
        counts.append(count)
        low.append([float(end.low[0]) for end in ends])
        high.append([float(end.high[0]) for end in ends])
        if high[-1][-1] - low[-1][-1] <= least:
            break
        count = next_check(count)
    return _Path(float(truth.mean()), np.array(counts, float), np.array(low).T, np.array(high).T)


def _rows(one: _Set, paths: Sequence[_Path], width: float) -> list[dict[str, Any]]:
    # The mean width at a fixed number of labels; a replay that is done keeps its last width.
    longest = max(paths, key=lambda path: len(path.labels)).labels
    widths = np.array(
        [
            np.pad(path.high[0] - path.low[0], (0, len(longest) - len(path.labels)), mode="edge")
            for path in paths
        ]
    ).mean(0)
    fixed = longest[(widths <= width).argmax()] if (widths <= width).any() else longest[-1]
    records = []
    for place, method in enumerate(LEVELS):
        stops = [path.stop(place, width) for path in paths]
        covered = np.array([p.covers(place, s) for p, s in zip(paths, stops, strict=True)], float)
        used = np.array([p.labels[s] for p, s in zip(paths, stops, strict=True)])
        for metric, values in (
            ("coverage", covered),
            ("labels", used),
            ("labels over fixed", used / fixed),
        ):
            interval = normal_interval(values)
            records.append(
                {
                    "dataset": one.family,
                    "task": "",
                    "judge": one.name,
                    "n": width,
                    "method": method,
                    "metric": metric,
                    "value": interval.mean,
                    "low": interval.low,
                    "high": interval.high,
                    "splits": len(values),
                }
            )
    return records


def _notes(table: Any) -> list[str]:
    """Return, by width and level, the means over sets with their simulation errors, and by family."""
    notes = []
    for (width, method), own in table.groupby(["n", "method"]):
        cover = own[own["metric"] == "coverage"]
        over = own[own["metric"] == "labels over fixed"]
        each = cover["value"].astype(float)
        error = 1.96 * np.sqrt((each * (1 - each) / cover["splits"]).sum()) / len(each)
        families = ", ".join(
            f"{name} {part['value'].astype(float).mean():.3f}"
            for name, part in cover.groupby("dataset")
        )
        notes.append(
            f"width {width}, {method}: coverage {each.mean():.3f} (simulation error {error:.3f}; "
            f"{families}), labels {over['value'].astype(float).mean():.2f} times the smallest fixed "
            f"number, at most {over['value'].astype(float).max():.2f} times."
        )
    return notes
