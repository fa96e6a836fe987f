"""Audit: the split curve in simulated worlds, some of which break it.

Claim: (none of the paper) the 90 % intervals of the split curve cover at least 87 % where the split of
the votes says nothing or the wrong thing, where judges copy each other or lean to a class, and where
items come from two groups.
Command: judgebayes reproduce betaconform/audit-curve-worlds
Runtime: about 8 minutes; 200 replays in each of 11 worlds.
Expected: coverage near its level in every world, least where items come from two groups and where the
split says nothing.
"""

from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.stats import norm

from judgebayes.experiments.betaconform.common import PAPER
from judgebayes.experiments.betaconform.curve_worlds import WORLDS, World
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.majority import ErrorCurve, SplitCurve, Splits, Thinning, counts_of, losses
from judgebayes.majority.split_curve import MeanLoss

REPLAYS = 200
LABELS = (10, 20, 50)
ITEMS = 300
POPULATION = 100_000
"""Items whose mean loss stands for that of more items like these."""
LEVEL = 0.9
COVER = 0.87
METRICS = ("error", "width", "coverage", "too high")
FEW_SIZES = {3: (1, 3), 11: (1, 3, 5, 7, 9, 11), 101: (1, 11, 51, 101)}


@experiment(
    PAPER,
    "audit-curve-worlds",
    "Audit: the split curve where the split misleads",
    "intervals of the split curve cover in worlds that it does not describe",
    twins=True,
)
def main(run: Run) -> Output:
    """Return error, width and coverage by world, target, method and number of labels."""
    replays = 3 if run.smoke else REPLAYS
    records: list[dict[str, Any]] = []
    for world in run.few(list(WORLDS), 2):
        run.say(world.name)
        for n in run.few(list(LABELS), 1):
            for (target, method), values in _replayed(run, world, n, replays).items():
                for metric, column in zip(METRICS, values.T, strict=True):
                    records.append(_row(world, n, method, f"{metric}, {target}", column))
    table = rows(PAPER, "audit-curve-worlds", records)
    cover = table[table["metric"].str.startswith("coverage")]
    return Output(table, notes=_notes(cover))


def _replayed(
    run: Run, world: World, n: int, replays: int
) -> dict[tuple[str, str], Float[np.ndarray, "replay metric"]]:
    """Return error, width, coverage and how often the interval lies above the truth, by replay."""
    everyone = world.sample([run.seed, 0], POPULATION)
    sizes = FEW_SIZES[everyone.most]
    population = _truth(everyone, sizes)
    results: dict[tuple[str, str], list[list[float]]] = {}
    for replay in range(replays):
        # The first n of the items, which are drawn anew in each replay, are a random part of them.
        complete = world.sample([run.seed, 1, n, replay], ITEMS)
        splits = complete.with_labels(np.where(np.arange(ITEMS) < n, complete.labels, -1))
        fit = SplitCurve().fit(splits)
        right = complete.given[np.arange(n), complete.labels[:n]]
        free = Thinning().fit(counts_of(right, complete.most))
        these = _truth(complete, sizes)
        cells: list[tuple[str, str, ErrorCurve, np.ndarray]] = []
        for target, truth in (("these", these), ("more", population)):
            of = MeanLoss("these" if target == "these" else "more", "wrong", level=LEVEL)
            curve = fit.curve(splits, sizes, of, seed=replay)
            every = ITEMS if target == "these" else None
            cells.append((target, "split curve", curve, truth))
            cells.append(
                (target, "model-free", free.curve(sizes, level=LEVEL, population=every), truth)
            )
        for target, method, curve, truth in cells:
            results.setdefault((target, method), []).append(_scores(curve, truth))
    return {key: np.array(values) for key, values in results.items()}


def _truth(complete: Splits, sizes: tuple[int, ...]) -> Float[np.ndarray, " size"]:
    """Return the error of a majority over items that all have labels."""
    rows_, first, count = np.unique(
        np.column_stack([complete.given, complete.labels]),
        axis=0,
        return_index=True,
        return_counts=True,
    )
    cells, label = complete.take(first), rows_[:, -1]
    each = [losses(cells, size, "wrong")[np.arange(len(first)), label] for size in sizes]
    return np.array([count @ one / count.sum() for one in each])


def _scores(curve: ErrorCurve, truth: Float[np.ndarray, " size"]) -> list[float]:
    high = curve.low > truth + 1e-9
    covered = ~high & (truth <= curve.high + 1e-9)
    each = (np.abs(curve.error - truth), curve.high - curve.low, covered, high)
    return [float(one.mean()) for one in each]


def _row(
    world: World, n: int, method: str, metric: str, values: Float[np.ndarray, " replay"]
) -> dict[str, Any]:
    mean, half = float(values.mean()), 1.96 * float(values.std(ddof=1)) / np.sqrt(len(values))
    return {
        "dataset": "simulated",
        "task": world.name,
        "judge": "",
        "n": n,
        "method": method,
        "metric": metric,
        "value": mean,
        "low": mean - half,
        "high": mean + half,
        "splits": len(values),
    }


def _notes(cover: Any) -> list[str]:
    """Return, by method, the cells whose coverage is short by an interval over all cells at once."""
    z = float(norm.ppf(1 - 0.05 / (2 * max(len(cover), 1))))
    above = cover["value"] + (cover["high"] - cover["value"]) * z / 1.96
    notes = []
    for method, own in cover.groupby("method"):
        short = own[above[own.index] < COVER]
        names = [f"{r.task}, {r.n} labels, {r.metric.split(', ')[1]}" for r in short.itertuples()]
        notes.append(
            f"{method}: coverage {own['value'].astype(float).min():.3f} to "
            f"{own['value'].astype(float).max():.3f}, mean {own['value'].astype(float).mean():.3f}; "
            f"below {COVER} in {len(short)} of {len(own)} cells"
            + (f": {'; '.join(names)}." if names else ".")
        )
    return notes
