"""Audit: random splits leak, and intervals over pairs that share a question are too narrow.

Claim: P1 splits at random and tests pair by pair, although there are six pairs per question. Ours:
splitting by question changes Davidson's MAE by less than 0.01 (the margin), and the lead over SC holds
by question, margin 0.01.
Command: judgebayes reproduce distribution-calibrated/audit-groups --data DIR
Runtime: about 7 seconds with 100 splits.
Expected: splitting by question hardly changes Davidson's mean MAE. Intervals of its MAE that treat a
question's pairs as dependent are mostly wider. On Precise IF they can be narrower: there every question
has three ties and three other pairs, and so the same share of hard pairs. Intervals of its lead over SC
hardly change.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from judgebayes.experiments.claims import Evidence, evidence
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.data import rb2, rb2_judges, rb2_tasks
from judgebayes.experiments.distribution_calibrated.common import (
    MARGIN,
    PAPER,
    Answers,
    Comparison,
    against,
    answers,
    cell_rows,
    comparison,
    graded,
    interval_columns,
    seed_of,
)
from judgebayes.experiments.significance import clustered_interval

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
    leads: list[Comparison] = []
    changes: list[Comparison] = []
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
                    of = _mae(both[True]).less(_mae(both[False]))
                    name = "davidson, by question minus at random"
                    changes.append(
                        comparison(cell, VOTES, name, "mae change", of, run.splits, "audit")
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
                    records.append(
                        {
                            "dataset": cell.dataset,
                            "task": cell.task,
                            "judge": cell.judge,
                            "n": VOTES,
                            "method": f"{what}, {name}",
                            "metric": "interval",
                            **interval_columns(interval),
                            "splits": run.splits,
                        }
                    )
            (lead,) = against(run, cell, VOTES, ("sc",))
            leads.append(replace(lead, kind="audit"))
    records += graded(changes, MARGIN["mae"], within=True) + graded(leads, MARGIN["mae"])
    change = [each.evidence.estimate for each in changes]
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


def _mae(of: Answers) -> Evidence:
    """Return evidence on the MAE, for new questions and splits."""
    cell = of.cell
    return evidence(of.errors, of.items, cell.votes.n_items, cell.groups, seed=seed_of(cell))
