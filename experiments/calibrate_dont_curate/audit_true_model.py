"""Audit: the pool beside the model that drew the votes.

Claim: (none of the paper) where judges are independent, share an item's difficulty (so that any two of
them are equally correlated), or copy one another, the pool with 200 labels has an NLL within 0.01 of the
model that drew the votes, fitted to the same labels and votes.
Command: judgebayes reproduce calibrate-dont-curate/audit-true-model
Runtime: about 2 minutes, mostly compilation; 24 replays of three panels of twenty judges.
Expected: the difference is a few thousandths for independent judges; it is largest for copies, whose
true model knows which judges are copies.
"""

from typing import Any

import numpy as np
from jaxtyping import Int
from scipy.stats import t

from judgebayes import OneCoin, Pool, SharedDifficulty
from judgebayes.evaluate.splits import Splits
from judgebayes.evaluate.sweeps import evaluate_splits
from judgebayes.experiments.calibrate_dont_curate.common import PAPER
from judgebayes.experiments.calibrate_dont_curate.panel_worlds import World
from judgebayes.experiments.calibrate_dont_curate.rows import interval_row
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.inference.fit import Method
from judgebayes.measures.scores import zero_one_loss
from judgebayes.measures.significance import Interval
from judgebayes.votes import Votes

LABELS, ITEMS, JUDGES = 200, 800, 20
"""Labelled items, held-out items and judges of a replay."""
REPLAYS = 24
GENERATIVE = SharedDifficulty(scaled=False)
"""The program of the votes given the label alone, without a scale learnt from the labels."""
WORLDS: dict[str, tuple[World, Method, int]] = {
    "independent": (World("independent", True, JUDGES, 1.0), OneCoin(), JUDGES),
    "equally correlated": (World("difficulty", True, JUDGES, 1.0), GENERATIVE, JUDGES),
    "copies": (World("copies", True, JUDGES, 1.0), GENERATIVE, JUDGES // 2),
}
"""Panels, the model that drew their votes, and how many judges it needs: a copy's vote, given its
original's, says nothing about the label."""
POOL, TRUE = "pool", "true model"


@experiment(
    PAPER,
    "audit-true-model",
    "Audit: the pool beside the model that drew the votes",
    "with 200 labels the pool's NLL is within 0.01 of the true model's",
    twins=True,
)
def main(run: Run) -> Output:
    """Return both NLLs by kind of panel, and their difference over replays."""
    replays = 2 if run.smoke else REPLAYS
    quantile = float(t.ppf(0.975, replays - 1))
    records: list[dict[str, Any]] = []
    for name in run.few(list(WORLDS)):
        run.say(name)
        world, true, needed = WORLDS[name]
        nll = np.array([_replay(run, world, true, needed, replay) for replay in range(replays)])
        for method, metric, values in (
            (POOL, "nll", nll[:, 0]),
            (TRUE, "nll", nll[:, 1]),
            ("pool minus true model", "nll difference", nll[:, 0] - nll[:, 1]),
        ):
            mean = float(values.mean())
            half = quantile * float(values.std(ddof=1)) / np.sqrt(replays)
            interval = Interval(mean, mean - half, mean + half)
            records.append(
                interval_row("simulated", method, metric, interval, replays, task=name, n=LABELS)
            )
    table = rows(PAPER, "audit-true-model", records)
    notes = [
        "The model of independent judges is one-coin with its default prior; that of equally correlated "
        "judges is shared difficulty; that of copies is shared difficulty of the originals alone."
    ]
    return Output(table, notes=notes)


def _replay(run: Run, world: World, true: Method, needed: int, replay: int) -> tuple[float, float]:
    """Return the NLL of the pool and of the true model on the same held-out items."""
    votes, labels = world.sample(np.random.default_rng([run.seed, replay]), LABELS + ITEMS)
    own = Votes(votes.index[:, :needed], None, None, None, 2)
    return _nll(Pool(), votes, labels), _nll(true, own, labels)


def _nll(method: Method, votes: Votes, labels: Int[np.ndarray, " item"]) -> float:
    parts = Splits(np.arange(LABELS)[None], LABELS + np.arange(ITEMS)[None])
    held_out = evaluate_splits(
        method, votes, labels, parts, fit_on="calibration", loss=zero_one_loss(2)
    )
    return float(np.nanmean(held_out.nll()))
