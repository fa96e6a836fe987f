"""Audit: random splits leak, and intervals over pairs that share a question are too narrow.

Claim: P1 splits at random and tests pair by pair, although there are six pairs per question.
Command: judgebayes reproduce distribution-calibrated/audit-groups --data DIR
Runtime: about 7 seconds with 100 splits.
Expected: splitting by question changes Davidson's mean MAE by about 0.01 at most and -0.001 on
average. Intervals of its MAE that treat a question's pairs as dependent are 1.1 to 1.4 times as wide,
except on Precise IF (0.4 to 1.2 times), where every question has three ties and three other pairs, and
so the same share of hard pairs; intervals of its lead over SC are 0.9 to 1.2 times as wide.
"""

from typing import Any

import numpy as np

from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.data import rb2, rb2_judges, rb2_tasks
from judgebayes.experiments.distribution_calibrated.common import (
    PAPER,
    answers,
    cell_rows,
    claim_row,
)
from judgebayes.measures.significance import clustered_interval

METHODS = ("davidson", "sc", "margin-threshold")
VOTES = 8


@experiment(
    PAPER,
    "audit-groups",
    "Audit: splits and intervals by question",
    "random splits and pairwise intervals are adequate for pairs that share a question",
    needs=("rb2_k8_scores",),
)
def main(run: Run) -> Output:
    """Return MAE under random and grouped splits, and how much wider clustered intervals are."""
    records: list[dict[str, Any]] = []
    change: list[float] = []
    ratio: dict[str, list[float]] = {"davidson": [], "sc minus davidson": []}
    for judge in rb2_judges(run)[:3]:
        for task in rb2_tasks(run):
            run.say(f"{judge}, {task}")
            cell = rb2(run, judge, task)
            for method in METHODS:
                both = {g: answers(run, cell, VOTES, method, grouped=g) for g in (False, True)}
                for grouped, group_answers in both.items():
                    kind = "by question" if grouped else "at random"
                    described = cell_rows(
                        cell, VOTES, f"{method}, {kind}", group_answers, metrics=("mae",)
                    )
                    records += described
                if method == "davidson":
                    change.append(
                        both[True].scores["mae"].mean() - both[False].scores["mae"].mean()
                    )
            own = answers(run, cell, VOTES, "davidson").by_item
            gain = answers(run, cell, VOTES, "sc").by_item - own
            for what, values in (("davidson", own), ("sc minus davidson", gain)):
                naive, clustered = (
                    clustered_interval(values),
                    clustered_interval(values, cell.groups),
                )
                ratio[what].append((clustered.high - clustered.low) / (naive.high - naive.low))
                for name, interval in (("pair by pair", naive), ("by question", clustered)):
                    row = claim_row(
                        cell, VOTES, f"{what}, {name}", "interval", interval, run.splits
                    )
                    records.append(row if what != "davidson" else {**row, "grade": ""})
    notes = [
        f"Splitting by question changes Davidson's mean MAE by {np.mean(change):+.4f} on average "
        f"(from {min(change):+.4f} to {max(change):+.4f}).",
        *(
            f"Treating a question's pairs as dependent makes the interval of {what} "
            f"{np.mean(r):.2f} times as wide as pair by pair ({min(r):.2f} to {max(r):.2f})."
            for what, r in ratio.items()
        ),
    ]
    return Output(rows(PAPER, "audit-groups", records), notes=notes)
