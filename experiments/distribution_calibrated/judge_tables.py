"""Shared code of Tables 6 and 7: the method against self-consistency, judge by judge."""

from typing import Any

import numpy as np
import pandas as pd

from judgebayes.experiments.core import Output, Run, rows
from judgebayes.experiments.data import rb2, rb2_judges, rb2_tasks
from judgebayes.experiments.distribution_calibrated.common import (
    MARGIN,
    PAPER,
    Comparison,
    against,
    answers,
    cell_rows,
    graded,
    printed,
)
from judgebayes.experiments.distribution_calibrated.forests import forests
from judgebayes.experiments.distribution_calibrated.predicting import twin_note, twin_rows
from judgebayes.experiments.distribution_calibrated.twins import published_cells
from judgebayes.experiments.plots import intervals

METHODS = ("davidson", "sc", "margin-threshold", "best-constant")


def judge_table(run: Run, name: str, metric: str) -> Output:
    """Return one metric of four methods for every judge and task of the data, and every twin."""
    records: list[dict[str, Any]] = []
    comparisons: list[Comparison] = []
    if run.has("rb2_k8_scores"):
        for judge in rb2_judges(run):
            for task in rb2_tasks(run):
                run.say(f"{judge}, {task}")
                cell = rb2(run, judge, task)
                for n in (4, 8):
                    for method in METHODS:
                        answer_set = answers(run, cell, n, method)
                        records += cell_rows(cell, n, method, answer_set, metrics=(metric,))
                    comparisons += against(run, cell, n, METHODS[1:], metric=metric)
    records += graded(comparisons, MARGIN[metric])
    own_twins = run.few([c for c in published_cells() if c[0].startswith("RB2")], 2)
    records += twin_rows(run, own_twins, METHODS, metric, printed(name))
    table = rows(PAPER, name, records)
    notes = [twin_note(table)]
    real = table[(table["dataset"] != "twin") & (table["metric"] == metric)]
    figures = {}
    if len(real):
        notes = [*_summary(real, metric), *notes]
        for n in (4, 8):
            figures[f"{n}-votes"] = intervals(
                real[real["n"] == n],
                label="task",
                series="method",
                panel="judge",
                xlabel="MAE (lower is better)" if metric == "mae" else "accuracy",
                title=f"RewardBench 2, {n} votes: mean over splits with 95 % intervals",
            )
    return Output(table, figures | forests(table, metric), notes)


def _summary(real: pd.DataFrame, metric: str) -> list[str]:
    sign = -1 if metric == "mae" else 1
    value = real.pivot_table(index=["judge", "task", "n"], columns="method", values="value") * sign
    wins = {m: int((value["davidson"] > value[m]).sum()) for m in METHODS[1:]}
    gap = value["davidson"] - value["margin-threshold"]
    gain = value["davidson"] - value["sc"]
    share = float(np.mean(value["margin-threshold"] - value["sc"]) / np.mean(gain))
    by_n = value["davidson"].unstack("n")
    improved = int((by_n[8] > by_n[4]).sum())
    return [
        f"Davidson is better than SC in {wins['sc']} of {len(value)} cells, than the margin "
        f"threshold in {wins['margin-threshold']}, than the best constant in "
        f"{wins['best-constant']}.",
        f"The margin threshold, one calibrated number, gives {share:.0%} of Davidson's mean gain "
        f"over SC; it is within {gap.abs().max():.3f} of Davidson everywhere, "
        f"{gap.abs().mean():.3f} on average.",
        f"From 4 to 8 votes Davidson improves in {improved} of {len(by_n)} cells "
        f"(mean change {float(np.mean(by_n[8] - by_n[4])):+.3f}, positive is better), "
        f"SC in {int((value['sc'].unstack('n')[8] > value['sc'].unstack('n')[4]).sum())}.",
    ]
