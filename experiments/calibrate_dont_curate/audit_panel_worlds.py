"""Audit: the pool beside the best single method in simulated panels of many kinds.

Claim: (none of the paper) where judges are independent, share an item's difficulty, copy one another or
lean to a class, with three judges or twenty, few labels or many, all votes or a third of them, the pool
is never far behind the best single method, which differs from world to world.
Command: judgebayes reproduce calibrate-dont-curate/audit-panel-worlds
Runtime: about 8 minutes; 12 replays in each of 35 worlds, with 20, 50 and 400 labels.
Expected: the pool is the best or close to it in nearly all cells; it loses most with the fewest labels,
where the assumption of one of the others is exactly right.
"""

from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.stats import t

from judgebayes import Beta, Calibrated, Davidson, OneCoin, Pool, SharedDifficulty, Stacking
from judgebayes.evaluate.splits import Splits
from judgebayes.evaluate.sweeps import evaluate_splits
from judgebayes.experiments.calibrate_dont_curate.common import PAPER
from judgebayes.experiments.calibrate_dont_curate.panel_worlds import World, worlds
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.inference.fit import Method
from judgebayes.measures.scores import zero_one_loss
from judgebayes.panel.judges import top_k

LABELS = (20, 50, 400)
ITEMS = 800
"""Held-out items of a replay."""
REPLAYS = 12
FOLDS = 5
TOP = 3
POOL = "pool"
PART = "shared-difficulty"
"""A part of the pool, which is shown but is not among its rivals."""


@experiment(
    PAPER,
    "audit-panel-worlds",
    "Audit: the pool in simulated panels",
    "the pool is close to the best single method in every kind of panel",
    twins=True,
)
def main(run: Run) -> Output:
    """Return every method's NLL by world and number of labels, and what the pool loses to the best."""
    replays = 2 if run.smoke else REPLAYS
    chosen = worlds()[2:3] if run.smoke else worlds()
    cells: dict[tuple[World, int], dict[str, Float[np.ndarray, " replay"]]] = {}
    for world in chosen:
        run.say(f"{world.name}, {world.judges} judges")
        for name, by_size in _replayed(run, world, replays).items():
            for size, values in zip(LABELS, by_size.T, strict=True):
                cells.setdefault((world, size), {})[name] = values
    quantile = float(t.ppf(1 - 0.025 / len(cells), replays - 1))
    records = []
    for (world, size), nll in cells.items():
        records += [_row(world, size, name, "nll", values, 1.96) for name, values in nll.items()]
        means = {name: v.mean() for name, v in nll.items() if name not in (POOL, PART)}
        best = min(means, key=means.__getitem__)
        excess = nll[POOL] - nll[best]
        records.append(
            _row(world, size, "pool minus the best other", "nll difference", excess, quantile)
        )
    table = rows(PAPER, "audit-panel-worlds", records)
    excess = table[table["metric"] == "nll difference"]
    return Output(table, notes=_notes(excess))


def arms(world: World) -> dict[str, Method]:
    """Return the methods as `judgebayes calibrate` builds them, by name."""
    pairs = world.pairs
    classes: Any = "uniform" if pairs else "labels"

    def mapped(method: Method) -> Method:
        return Calibrated(method, Beta(symmetric=pairs), cross_fit=FOLDS)

    coin = OneCoin(class_prior=classes)
    methods: dict[str, Method] = {
        POOL: Pool(symmetric=pairs, class_prior=classes),
        PART: SharedDifficulty(symmetric=pairs, class_prior=classes),
        "stacking": Stacking(symmetric=pairs),
        "one-coin + beta": mapped(coin),
        "davidson": Davidson(symmetric=pairs),
    }
    return methods | ({"top-3 + beta": mapped(top_k(coin, TOP))} if world.judges > TOP else {})


def _replayed(run: Run, world: World, replays: int) -> dict[str, Float[np.ndarray, "replay size"]]:
    """Return the mean NLL of each method on held-out items, by replay and number of labels."""
    results: dict[str, list[list[float]]] = {}
    most = LABELS[-1]
    place = np.arange(most)
    parts = Splits(
        np.stack([np.where(place < size, place, -1) for size in LABELS]),
        np.tile(most + np.arange(ITEMS), (len(LABELS), 1)),
    )
    for replay in range(replays):
        votes, labels = world.sample(np.random.default_rng([run.seed, replay]), most + ITEMS)
        for name, method in arms(world).items():
            held_out = evaluate_splits(
                method, votes, labels, parts, fit_on="calibration", loss=zero_one_loss(2)
            )
            results.setdefault(name, []).append(list(np.nanmean(held_out.nll(), axis=1)))
    return {name: np.array(values) for name, values in results.items()}


def _row(
    world: World,
    size: int,
    method: str,
    metric: str,
    values: Float[np.ndarray, " replay"],
    quantile: float,
) -> dict[str, Any]:
    mean = float(values.mean())
    half = quantile * float(values.std(ddof=1)) / np.sqrt(len(values))
    return {
        "dataset": "simulated",
        "task": world.name,
        "judge": f"{world.judges} judges",
        "n": size,
        "method": method,
        "metric": metric,
        "value": mean,
        "low": mean - half,
        "high": mean + half,
        "splits": len(values),
    }


def _notes(excess: pd.DataFrame) -> list[str]:
    worst = excess.sort_values("value", ascending=False).head(5)
    listed = "; ".join(
        f"{r.task}, {r.judge}, {r.n} labels: {r.value:+.3f} [{r.low:+.3f}, {r.high:+.3f}]"
        for r in worst.itertuples()
    )
    mean = excess["value"].mean()
    return [
        f"The pool's NLL minus that of the best other method is {mean:+.4f} on average over "
        f"{len(excess)} cells.",
        f"The five largest, with intervals over all cells at once: {listed}.",
        "The best other method is chosen on the same replays, which favours it.",
    ]
