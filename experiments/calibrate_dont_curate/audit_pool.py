"""Audit: the pool of shared difficulty and stacking, on dense panels and where votes are missing.

Claim: with missing votes the pool has a lower NLL than every other method, and on dense panels it is not
worse than stacking. All are audits: the pool beats the best other method where votes are missing (margin
0.01 nats), and equals stacking or beats it where they are not (within 0.01 nats).
Command: judgebayes reproduce calibrate-dont-curate/audit-pool --data DIR
Runtime: about 10 minutes on a quiet core.
Expected: where most votes are missing, the pool beats the best other method; shared difficulty alone is
a little better still, because stacking can learn no weight there. On dense panels the pool and stacking
hardly differ.
"""

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from judgebayes import (
    Beta,
    Calibrated,
    Davidson,
    Identity,
    OneCoin,
    Pool,
    SharedDifficulty,
    Stacking,
)
from judgebayes.experiments.calibrate_dont_curate.answers import advantage, answers_of
from judgebayes.experiments.calibrate_dont_curate.audit_stacking import few_shapes
from judgebayes.experiments.calibrate_dont_curate.common import MARGIN, PAPER
from judgebayes.experiments.calibrate_dont_curate.data import panels
from judgebayes.experiments.calibrate_dont_curate.parts import halves
from judgebayes.experiments.calibrate_dont_curate.rows import (
    Statement,
    claim_row,
    graded,
    value_row,
)
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.data import LLMBAR, RB2
from judgebayes.experiments.panels import REWARDBENCH, Panel
from judgebayes.inference.fit import Method

BUDGETS = (50, 100, 200)
COUNT = 20
FOLDS = 5
NO_FLOOR = 1e-300
KEPT = {LLMBAR: (1.0, 0.2, 0.07), REWARDBENCH: (1.0, 0.1, 0.03), RB2: (1.0,), "twin": (1.0, 0.2)}
"""The shares of votes that are kept, by panel."""
MASK_SEED = 1
BEATS = Statement(
    "the pool beats the best other method where votes are missing", "audit", MARGIN["nll"]
)
EQUALS = Statement("the pool equals stacking on dense panels", "audit", MARGIN["nll"], within=True)


def arms(*, smoke: bool) -> dict[str, Method]:
    """Return the methods as `judgebayes calibrate` builds them for pairs, by name."""
    coin = Calibrated(OneCoin(), Beta(symmetric=True, clip=NO_FLOOR), cross_fit=FOLDS)
    methods: dict[str, Method] = {
        "pool": Pool(),
        "shared-difficulty": SharedDifficulty(),
        "stacking": Stacking(),
        "one-coin + beta": coin,
    }
    return methods if smoke else methods | {"davidson": Davidson()}


def masked(panel: Panel, share: float) -> Panel:
    """Return the panel with this share of its votes, kept at random."""
    if share == 1:
        return panel
    index = np.asarray(panel.votes.index)
    kept = np.random.default_rng(MASK_SEED).random(index.shape) <= share
    votes = replace(panel.votes, index=jnp.asarray(np.where(kept, index, -1)))
    return replace(panel, votes=votes, variant=f"{share:g} of the votes")


@experiment(
    PAPER,
    "audit-pool",
    "Audit: the pool of shared difficulty and stacking",
    "where votes are missing the pool beats every other method, elsewhere it equals stacking",
    twins=True,
)
def main(run: Run) -> Output:
    """Return every method's NLL by panel, share of votes and budget, and the pool's leads."""
    records: list[dict[str, Any]] = []
    every = panels(run)
    for panel in [one for one in every if one.dataset != "twin"] or every:
        for share in KEPT[panel.dataset][-2 if run.smoke else 0 :]:
            cell = masked(panel, share)
            for size in run.few(list(BUDGETS)):
                run.say(f"{cell.name}: {size} labels")
                records += compared(run, cell, size, dense=share == 1)
    table = rows(PAPER, "audit-pool", graded(records))
    notes = [
        "In this table n is the number of labels. The best other method is chosen on the same numbers, "
        "which favours it; shared-difficulty, a part of the pool, is not among the others.",
        "Intervals account for sampling of items and of labels.",
    ]
    return Output(table, notes=notes)


def compared(run: Run, panel: Panel, size: int, *, dense: bool) -> list[dict[str, Any]]:
    """Return the result rows of one panel and budget."""
    parts = few_shapes(halves(run, panel, labels=size, count=COUNT))
    plain = {"none": Identity()}
    by_method = {
        name: answers_of(run, panel, method, plain, parts, fit_on="calibration")["none"]
        for name, method in arms(smoke=run.smoke).items()
    }
    count = len(parts.splits)
    records = [
        value_row(panel, name, "nll", one.interval(), count, n=size)
        for name, one in by_method.items()
    ]
    others = [name for name in by_method if name not in ("pool", "shared-difficulty")]
    nll = {name: float(by_method[name].by_split("nll").mean()) for name in others}
    rival = "stacking" if dense else min(others, key=nll.__getitem__)
    lead = advantage(by_method["pool"], by_method[rival])
    title = f"{'stacking' if dense else 'best other'} minus pool"
    claim = EQUALS if dense else BEATS
    return [*records, claim_row(panel, title, "nll difference", lead, count, claim, n=size)]
