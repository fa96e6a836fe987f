"""P1 Table 11: MAE by sampling temperature.

Claim: low temperatures are worse, since votes become less diverse; except on RB2-Ties; margin 0.005 MAE.
Command: judgebayes reproduce distribution-calibrated/table11 --data DIR
Runtime: about 3 seconds with 100 splits.
Expected: with gpt-5.4 lower temperature is worse in most comparisons and better in none. Even at
temperature zero its votes differ on some items, but MAE there is above that at temperature one in every
cell.
"""

from typing import Any

import numpy as np

from judgebayes import Davidson
from judgebayes.experiments.core import Output, Run, expected, experiment, rows
from judgebayes.experiments.data import rb2, rb2_tasks, shared_items
from judgebayes.experiments.distribution_calibrated.common import (
    MARGIN,
    PAPER,
    Comparison,
    advantage,
    answer_splits,
    cell_rows,
    comparison,
    graded,
    splits,
)
from judgebayes.experiments.plots import curves

TEMPERATURES = (0.0, 0.3, 0.7, 1.0)
JUDGE = "gpt-5.4"
VOTES = (4, 8)


@experiment(
    PAPER,
    "table11",
    "Table 11: sampling temperature",
    "votes sampled at a low temperature give a higher error",
    needs=("rb2_k8_scores",),
)
def main(run: Run) -> Output:
    """Return MAE by temperature, and a graded row for the lowest against each higher one."""
    records: list[dict[str, Any]] = []
    comparisons: list[Comparison] = []
    agreement: dict[float, list[float]] = {t: [] for t in TEMPERATURES}
    for task in rb2_tasks(run):
        run.say(f"{JUDGE}, {task}: {len(TEMPERATURES)} temperatures")
        cells = shared_items([rb2(run, JUDGE, task, temperature=t) for t in TEMPERATURES])
        parts = splits(run, cells[0])
        for n in VOTES:
            by_temperature = [answer_splits(run, cell, n, Davidson(), parts) for cell in cells]
            for t, cell, answer_set in zip(TEMPERATURES, cells, by_temperature, strict=True):
                own = cell_rows(cell, n, f"davidson T={t:g}", answer_set, metrics=("mae",))
                records += [{**row, "_t": t} for row in own]
            for t, answer_set in list(zip(TEMPERATURES, by_temperature, strict=True))[1:]:
                lead = advantage(answer_set, by_temperature[0])
                name = f"T=0 minus T={t:g}"
                comparisons.append(
                    comparison(cells[0], n, name, "mae difference", lead, len(parts))
                )
        for t, cell in zip(TEMPERATURES, cells, strict=True):
            counts = np.asarray(cell.votes.pooled_counts())
            agreement[t].append(float((counts.max(1) == counts.sum(1)).mean()))
    figure_rows = rows(PAPER, "table11", [r for r in records if "_t" in r]).assign(
        temperature=[r["_t"] for r in records if "_t" in r]
    )
    figure = curves(
        figure_rows.assign(method=[f"{n:g} votes" for n in figure_rows["n"]]),
        "temperature",
        panel="task",
        metric="mae",
        xlabel="temperature",
        ylabel="MAE",
        title=f"{JUDGE}: Davidson's error by temperature (bands: 1.96 SE)",
    )
    records = [{k: v for k, v in r.items() if k != "_t"} for r in records]
    table = rows(PAPER, "table11", records + graded(comparisons, MARGIN["temperature"]))
    claims = table[table["metric"] == "mae difference"]
    printed = expected(PAPER, "table11")
    notes = [
        f"Lower temperature is significantly worse in {int((claims['low'] > 0).sum())} of "
        f"{len(claims)} comparisons and better in {int((claims['high'] < 0).sum())}.",
        "Items on which all eight votes agree: "
        + ", ".join(f"{np.mean(v):.0%} at T = {t:g}" for t, v in agreement.items())
        + ". Scores are drawn twice, once per response, so votes differ even at T = 0.",
        "The paper's table, gemini-2.5-flash: the mean over tasks and n falls from "
        + f"{_mean(printed, '0.1'):.3f} at T = 0.1 to {_mean(printed, '0.9'):.3f} at T = 0.9.",
    ]
    return Output(table, {"temperature": figure}, notes)


def _mean(printed: Any, temperature: str) -> float:
    return float(printed[printed["method"].str.endswith(f"={temperature}")]["value"].mean())
