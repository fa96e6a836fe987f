"""P1 Table 12 and Fig 16: the method under another prompt.

Claim: the method beats self-consistency under either prompt, margin 0.01 MAE; and by about as much,
within 0.01.
Command: judgebayes reproduce distribution-calibrated/table12 --data DIR
Runtime: about 3 seconds with 100 splits.
Expected: with both prompts (base, criteria) and every judge that has them, Davidson beats SC in MAE;
the prompts' vote distributions hardly differ, so calibration has little to adapt to.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.data import Cell, rb2, rb2_judges, rb2_tasks, shared_items
from judgebayes.experiments.distribution_calibrated.common import (
    MARGIN,
    PAPER,
    Comparison,
    against,
    answers,
    cell_rows,
    comparison,
    graded,
)
from judgebayes.experiments.plots import bars

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
    gains: list[Comparison] = []
    changes: list[Comparison] = []
    share_bars: dict[str, dict[str, list[float]]] = {}
    judges = [j for j in rb2_judges(run) if j != "gpt-5.4-nano"]
    for judge in judges[:3]:
        for task in rb2_tasks(run)[:3]:
            run.say(f"{judge}, {task}: two prompts")
            cells = dict(zip(PROMPTS, _both(run, judge, task), strict=True))
            for prompt, cell in cells.items():
                for n in (4, 8):
                    for method in METHODS:
                        answer_set = answers(run, cell, n, method)
                        own = cell_rows(cell, n, method, answer_set, metrics=("mae",))
                        records += [{**row, "task": f"{task}, {prompt}"} for row in own]
                if judge == judges[0]:
                    share_bars[f"{task}, {prompt}"] = _shares(run, cell)
            for n in (4, 8):
                of_prompt = {p: against(run, c, n, ("sc",))[0] for p, c in cells.items()}
                for prompt, gain in of_prompt.items():
                    record = {**gain.record, "task": f"{task}, {prompt}"}
                    gains.append(replace(gain, record=record))
                base, other = (gain.evidence for gain in of_prompt.values())
                changes.append(
                    comparison(
                        cells["base"],
                        n,
                        "gain over sc, base minus criteria",
                        "change of mae difference",
                        base.less(other),
                        run.splits,
                    )
                )
    records += graded(gains, MARGIN["mae"]) + graded(changes, MARGIN["mae"], within=True)
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


def _both(run: Run, judge: str, task: str) -> list[Cell]:
    """Return the cells of both prompts, on the items that both have."""
    cells = [rb2(run, judge, task, prompt=prompt) for prompt in PROMPTS]
    if cells[0].item_names == cells[1].item_names:
        return cells
    both = shared_items(cells)
    return [replace(c, groups=both[0].groups, variant=f"{c.variant}, both prompts") for c in both]


def _shares(run: Run, cell: Cell) -> dict[str, list[float]]:
    shares = {"labels": list(np.bincount(cell.labels, minlength=3) / len(cell.labels))}
    for method in ("davidson", "sc"):
        answer_set = answers(run, cell, 8, method)
        decisions = answer_set.decisions[answer_set.items >= 0]
        shares[method] = list(np.bincount(decisions, minlength=3) / len(decisions))
    return shares
