"""P1 Fig 2: MAE and accuracy against the number of votes.

Claim: more votes improve the method, while self-consistency stays flat or gets worse; the method is
best at every number of votes.
Command: judgebayes reproduce distribution-calibrated/fig2 --data DIR
Runtime: about 12 seconds with 100 splits.
Expected: from two to eight votes Davidson's MAE falls in 9 of 10 cells and SC's rises in all 10; with
one vote both can decide a tie only where the judge does. With one and two votes SC is ahead in 7 and 9
of 10 cells, by at most 0.034.
"""

from typing import Any

import numpy as np

from judgebayes.experiments.core import Output, Run, experiment, grade, rows
from judgebayes.experiments.data import rb2, rb2_tasks
from judgebayes.experiments.distribution_calibrated.common import (
    PAPER,
    answers,
    cell_rows,
    interval_columns,
)
from judgebayes.measures.significance import two_way_interval
from judgebayes.plots import curves

METHODS = ("davidson", "sc", "soft-sc-mean", "margin-threshold", "best-constant")
JUDGES = ("gpt-5.4", "claude-haiku-4.5")


@experiment(
    PAPER,
    "fig2",
    "Fig 2: error against the number of votes",
    "more votes improve the method, and self-consistency stays flat or gets worse",
    needs=("rb2_k8_scores",),
)
def main(run: Run) -> Output:
    """Return the curves, and a graded row for the change from 2 to 8 votes."""
    records: list[dict[str, Any]] = []
    counts = run.few(list(range(1, 9)), 2)
    for judge in run.few(list(JUDGES)):
        for task in rb2_tasks(run):
            run.say(f"{judge}, {task}")
            cell = rb2(run, judge, task)
            for n in counts:
                for method in METHODS:
                    records += cell_rows(cell, n, method, answers(run, cell, n, method))
            for method in ("davidson", "sc"):
                few, many = (answers(run, cell, n, method) for n in (counts[1], counts[-1]))
                sign = 1 if method == "davidson" else -1
                change = two_way_interval(
                    sign * (few.errors - many.errors), few.items, cell.votes.n_items, cell.groups
                )
                records.append(
                    {
                        "dataset": cell.dataset,
                        "task": task,
                        "judge": judge,
                        "n": counts[-1],
                        "method": f"{method} {'falls' if sign > 0 else 'rises'}",
                        "metric": f"mae change from {counts[1]} votes",
                        **interval_columns(change),
                        "splits": run.splits,
                        "grade": grade(change),
                    }
                )
    table = rows(PAPER, "fig2", records)
    figures = {
        f"{metric}-{judge}": curves(
            table[(table["judge"] == judge) & table["metric"].isin(["mae", "accuracy"])],
            "n",
            panel="task",
            metric=metric,
            xlabel="votes per item",
            ylabel=metric,
            title=f"{judge}: {metric} against the number of votes (bands: 1.96 SE over splits)",
        )
        for judge in dict.fromkeys(table["judge"])
        for metric in ("mae", "accuracy")
    }
    graded = table[table["metric"].str.startswith("mae change")]
    falls = graded[graded["method"] == "davidson falls"]
    rises = graded[graded["method"] == "sc rises"]
    note = (
        f"From {counts[1]} to {counts[-1]} votes Davidson's MAE falls significantly in "
        f"{int(np.sum(falls['low'] > 0))} of {len(falls)} cells and rises in "
        f"{int(np.sum(falls['high'] < 0))}; SC's rises significantly in "
        f"{int(np.sum(rises['low'] > 0))} and falls in {int(np.sum(rises['high'] < 0))}."
    )
    return Output(table, figures, [note])
