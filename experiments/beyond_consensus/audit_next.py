"""Audit: which outputs to label next, for more outputs like these and for the better of two generators.

Claim: none in the paper, which leaves the choice of what to annotate to future work.
Command: judgebayes reproduce beyond-consensus/audit-next --data DIR
Runtime: about 6 minutes of one core (40 replays a setting).
Expected: chosen labels are fewer than random ones for every target, by less where the interval must
count that future outputs differ from these.

The replays are those of `audit-labelling`, whose target is each generator's share among these outputs.
Here it is the share among more outputs like these; or the difference of two generators without labels,
among these outputs or among more like them (`judgebayes precision --next N --between A,B`). Four or five
other generators of P4 are labelled in full. Random labels are of the same generators. Without data, the
outputs are those of a simulated world.
"""

from typing import Any

import numpy as np
import pandas as pd

from judgebayes.experiments.beyond_consensus.audit_labelling import (
    REPLAYS,
    Pooled,
    Setting,
    add,
    compared,
    ratios,
)
from judgebayes.experiments.beyond_consensus.common import DATASET, PAPER, item_votes
from judgebayes.experiments.beyond_consensus.program_worlds import GENERATORS, simulated
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.generators import stratify, valid_share
from judgebayes.votes import Votes

WIDTHS = (0.10, 0.08, 0.07, 0.06, 0.05)
WIDTHS_BETWEEN = (0.16, 0.14, 0.12, 0.10, 0.08, 0.07)
PAIRS = [(place, (place + 1) % GENERATORS) for place in range(GENERATORS)]
MORE = "new generator, more outputs"
BETWEEN = "two new generators, these outputs"
BETWEEN_MORE = "two new generators, more outputs"
PROGRAMS = 40
"""Programs of a simulated world."""


def settings(run: Run) -> list[tuple[str, Setting]]:
    """Return every setting with the name of its target."""
    votes, labels, generator, names, dataset = _outputs(run)
    strata = stratify(valid_share(votes))

    def setting(chosen: tuple[int, ...], *, more: bool) -> Setting:
        targets = np.isin(np.arange(GENERATORS), chosen)
        task = f"{'more' if more else 'these'}: {' against '.join(names[g] for g in chosen)}"
        known = ~targets[generator]
        between = len(chosen) > 1
        return Setting(
            dataset, task, strata, labels, generator, known, targets, between=between, more=more
        )

    alone = run.few(list(range(GENERATORS)))
    pairs = run.few(PAIRS)
    return [
        *((MORE, setting((place,), more=True)) for place in alone),
        *((BETWEEN, setting(pair, more=False)) for pair in pairs),
        *((BETWEEN_MORE, setting(pair, more=True)) for pair in pairs),
    ]


def _outputs(run: Run) -> tuple[Votes, np.ndarray, np.ndarray, list[str], str]:
    if run.has(DATASET):
        cell = item_votes(run, "fcnhp")
        return cell.votes, cell.labels, cell.generator, cell.generators, DATASET
    world = simulated("weak", run.seed, PROGRAMS)
    names = [f"generator {place}" for place in range(GENERATORS)]
    return world.votes, world.labels, world.generator, names, "twin"


@experiment(
    PAPER,
    "audit-next",
    "Audit: which outputs to label next, for other targets",
    "for more outputs like these and for differences, chosen labels are fewer than random ones",
    twins=True,
)
def main(run: Run) -> Output:
    """Return labels needed, their ratio to those of random choice, coverage and mean widths."""
    records: list[dict[str, Any]] = []
    pooled: dict[str, Pooled] = {}
    chosen = settings(run)
    for target, setting in chosen:
        run.say(f"{target}, {setting.task}")
        goals = WIDTHS_BETWEEN if setting.between else WIDTHS
        of_setting, counts = compared(setting, min(REPLAYS, run.splits), run.seed, goals)
        records += of_setting
        add(pooled.setdefault(target, {}), counts)
    for target, by_goal in pooled.items():
        of = sum(name == target for name, _ in chosen)
        own = [
            row | {"dataset": chosen[0][1].dataset} for row in ratios(by_goal, target, run.seed, of)
        ]
        records += own
    table = rows(PAPER, "audit-next", records)
    return Output(table, notes=_notes(table))


def _notes(table: pd.DataFrame) -> list[str]:
    own = table[
        (table["metric"] == "ratio of labels") & (table["method"] == "acquisition / random")
    ]
    own = own[own["task"].str.contains(" of ")]
    return [
        f"{row.task}, {row.judge}: {100 * row.value:.0f} % of the labels that random choice needs "
        f"({100 * row.low:.0f} to {100 * row.high:.0f})."
        for row in own.itertuples()
    ]
