"""P1 Figs 4 and 11: MAE against the size of the calibration set, with a fixed evaluation part.

Claim: beyond 100 labels MAE changes by less than 0.002 (the margin); 20 labels already beat
self-consistency, margin 0.01.
Command: judgebayes reproduce distribution-calibrated/fig4 --data DIR
Runtime: about 75 seconds with 100 splits.
Expected: a similar shape, but MAE still falls slowly after a hundred labels. The smallest calibration
set beats SC in every task, though significantly only in some. The margin threshold's curve is the same
as the method's.
"""

from typing import Any

import pandas as pd

from judgebayes.evaluate.splits import random_splits
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.data import rb2, rb2_tasks
from judgebayes.experiments.distribution_calibrated.common import (
    MARGIN,
    PAPER,
    Answers,
    Comparison,
    advantage,
    answer_splits,
    cell_rows,
    comparison,
    graded,
    methods,
)
from judgebayes.experiments.plots import curves

SIZES = tuple(range(20, 201, 20))
METHODS = ("davidson", "margin-threshold", "best-constant", "sc")
JUDGE, VOTES = "gpt-5.4", 8


@experiment(
    PAPER,
    "fig4",
    "Figs 4 and 11: error against calibration size",
    "error falls fast up to 60-80 labels, then stays constant; 20 labels beat self-consistency",
    needs=("rb2_k8_scores",),
)
def main(run: Run) -> Output:
    """Return the curves, and graded rows for the claims at 20 and beyond 100 labels."""
    records: list[dict[str, Any]] = []
    at_first: list[Comparison] = []
    late: list[Comparison] = []
    first = SIZES[0]
    for task in rb2_tasks(run):
        cell = rb2(run, JUDGE, task)
        by_size: dict[tuple[str, int], Answers] = {}
        parts = random_splits(
            cell.votes.n_items, splits=run.splits, calibration=max(SIZES), seed=run.seed
        )
        for size in run.few(list(SIZES), 2):
            run.say(f"{JUDGE}, {task}: {size} labels")
            for name in METHODS:
                answer_set = answer_splits(
                    run, cell, VOTES, methods()[name], parts.with_calibration(size)
                )
                by_size[name, size] = answer_set
                own = cell_rows(cell, size, name, answer_set, metrics=("mae",))
                records += own
        lead = advantage(by_size["davidson", first], by_size["sc", first])
        method = f"sc minus davidson, {first} labels"
        at_first.append(comparison(cell, first, method, "mae difference", lead, run.splits))
        if ("davidson", 100) in by_size:
            gain = advantage(by_size["davidson", 200], by_size["davidson", 100])
            method = "davidson, 100 minus 200 labels"
            late.append(comparison(cell, 200, method, "mae difference", gain, run.splits))
    records += graded(at_first, MARGIN["mae"]) + graded(late, MARGIN["labels"], within=True)
    table = rows(PAPER, "fig4", records)
    figure = curves(
        table[table["metric"] == "mae"],
        "n",
        panel="task",
        metric="mae",
        xlabel="labelled items",
        ylabel="MAE",
        title=f"{JUDGE}, {VOTES} votes: error against calibration size (bands: 1.96 SE)",
    )
    return Output(
        table, {"curves": figure}, [_note(table), "In this table n is the number of labels."]
    )


def _note(table: pd.DataFrame) -> str:
    mean = (
        table[table["metric"] == "mae"]
        .pivot_table(index=["n", "task"], columns="method", values="value")["davidson"]
        .unstack("task")
    )
    drops = ", ".join(f"{size:g}: {value:.3f}" for size, value in mean.mean(axis=1).items())
    note = f"Davidson's MAE, mean over tasks, by number of labels: {drops}."
    if 100 not in mean.index:
        return note
    late = float((mean.iloc[-1] - mean.loc[100]).mean())
    return f"{note} From 100 to {mean.index[-1]:g} labels it still changes by {late:+.3f}."
