"""P1 Table 12 and Fig 16: the method under another prompt.

Claim: the method beats self-consistency by about as much under either prompt.
Command: judgebayes reproduce distribution-calibrated/table12 --data DIR
Runtime: about 3 seconds with 100 splits.
Expected: with both prompts of RewardBench 2 (base, criteria) and every judge that has them, Davidson
beats SC in MAE; the prompts' vote distributions hardly differ, so calibration has little to adapt to.
"""

from typing import Any

import numpy as np

from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.data import Cell, rb2, rb2_judges, rb2_tasks
from judgebayes.experiments.distribution_calibrated.common import (
    PAPER,
    against,
    answers,
    cell_rows,
)
from judgebayes.plots import bars

PROMPTS = ("base", "criteria")
METHODS = ("davidson", "sc", "margin-threshold")


@experiment(
    PAPER,
    "table12",
    "Table 12, Fig 16: another prompt",
    "the gain over self-consistency is about the same under either prompt",
    needs=("rb2_k8_scores",),
)
def main(run: Run) -> Output:
    """Return MAE by prompt, and a graded row for the gain over SC under each."""
    records: list[dict[str, Any]] = []
    share_bars: dict[str, dict[str, list[float]]] = {}
    judges = [j for j in rb2_judges(run) if j != "gpt-5.4-nano"]
    for judge in judges[:3]:
        for task in rb2_tasks(run)[:3]:
            run.say(f"{judge}, {task}: two prompts")
            for prompt in PROMPTS:
                cell = rb2(run, judge, task, prompt=prompt)
                for n in (4, 8):
                    for method in METHODS:
                        answer_set = answers(run, cell, n, method)
                        own = cell_rows(cell, n, method, answer_set, metrics=("mae",))
                        records += [{**row, "task": f"{task}, {prompt}"} for row in own]
                    claim = against(run, cell, n, ("sc",))
                    records += [{**row, "task": f"{task}, {prompt}"} for row in claim]
                if judge == judges[0]:
                    share_bars[f"{task}, {prompt}"] = _shares(run, cell)
    table = rows(PAPER, "table12", records)
    claims = table[table["metric"] == "mae difference"]
    by_prompt = claims.groupby(claims["task"].str.split(", ").str[1])["value"].mean()
    note = "Mean gain over SC: " + ", ".join(
        f"{value:.3f} with the {prompt} prompt" for prompt, value in by_prompt.items()
    )
    figure = bars(
        share_bars,
        ("B", "tie", "A"),
        ylabel="share",
        title=f"{judges[0]}, 8 votes: labels and decisions under two prompts",
    )
    return Output(table, {"prompts": figure}, [note + "."])


def _shares(run: Run, cell: Cell) -> dict[str, list[float]]:
    shares = {"labels": list(np.bincount(cell.labels, minlength=3) / len(cell.labels))}
    for method in ("davidson", "sc"):
        answer_set = answers(run, cell, 8, method)
        decisions = answer_set.decisions[answer_set.items >= 0]
        shares[method] = list(np.bincount(decisions, minlength=3) / len(decisions))
    return shares
