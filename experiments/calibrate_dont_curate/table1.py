"""P2 Table 1: aggregators before calibration.

Claim: without calibration, pruning weak judges improves accuracy and NLL.
Command: judgebayes reproduce calibrate-dont-curate/table1 --data DIR
Runtime: about 15 seconds.
Expected: pruning improves both on the reward models (NLL 0.52 for all, 0.20 for the top 3). Under the
correctness encoding only the calibration error changes: majority voting's is 1 minus its mean
probability, 0.31 on the reward models, near the paper's 0.27, against 0.09 in the true orientation.
The top-k rows, whose votes are public, agree with the paper's numbers. So Table 1 was computed with a
constant label.
"""

from typing import Any

import numpy as np

from judgebayes.experiments.calibrate_dont_curate.answers import Answers, advantage, answers
from judgebayes.experiments.calibrate_dont_curate.common import PAPER
from judgebayes.experiments.calibrate_dont_curate.data import benchmark, both_orientations
from judgebayes.experiments.calibrate_dont_curate.rows import (
    METRICS,
    claim_row,
    metric_rows,
    paper_values,
)
from judgebayes.experiments.core import Grade, Output, Run, experiment, rows
from judgebayes.experiments.panels import REWARDBENCH, Panel

ROUNDING = 0.0005
METHODS = (
    "majority",
    "accuracy-weighted",
    "temperature",
    "dawid-skene",
    "log-odds",
    "one-coin",
    "top-3",
    "top-5",
    "top-10",
)


@experiment(
    PAPER,
    "table1",
    "Table 1: aggregators before calibration",
    "without calibration, keeping the most accurate judges improves accuracy and NLL",
    twins=True,
)
def main(run: Run) -> Output:
    """Return four metrics of every aggregator, and the gain by pruning before calibration."""
    printed = paper_values("table1")
    records: list[dict[str, Any]] = []
    notes = [
        "The twin represents JudgeBench: simulated judges fitted to its rows in this table, so these "
        "rows are not a prediction; the twin's calibrated results in other tables are.",
        "ECE is of the probability of class 1: the ECE of the most probable class cannot detect a "
        "constant label.",
    ]
    for panel in both_orientations(run):
        run.say(f"{panel.name}, {panel.orientation}")
        by_method: dict[str, Answers] = {}
        for method in METHODS:
            if method == "temperature":
                by_method[method] = answers(run, panel, "majority", ("temperature",))["temperature"]
            else:
                by_method[method] = answers(run, panel, method, ("none",))["none"]
            for row in metric_rows(by_method[method], method):
                row["paper_value"] = printed.get((benchmark(panel), method, row["metric"]))
                records.append({**row, "grade": row["grade"] or _reproduced(panel, method, row)})
        for k in (3, 5, 10):
            for metric, gain in (
                ("nll difference", advantage(by_method[f"top-{k}"], by_method["one-coin"])),
                (
                    "accuracy difference",
                    advantage(by_method["one-coin"], by_method[f"top-{k}"], "accuracy"),
                ),
            ):
                sign = f"all minus top-{k}" if "nll" in metric else f"top-{k} minus all"
                records.append(claim_row(panel, sign, metric, gain, run.splits))
        if panel.orientation == "correctness":
            if panel.dataset == REWARDBENCH:
                notes.append(_floors(panel, by_method))
            notes.append(_constant(panel.name, by_method["majority"], printed, benchmark(panel)))
    return Output(rows(PAPER, "table1", records), notes=notes)


def _reproduced(panel: Panel, method: str, row: dict[str, Any]) -> Grade:
    """Return whether our number agrees with the paper's, where its own votes are public.

    The paper adds four judges to RewardBench's reward models. They are too weak to be among the best
    ten, so the top-k rows use the same votes.
    """
    same = panel.dataset == REWARDBENCH and panel.orientation == "correctness"
    if not same or not method.startswith("top-") or row["paper_value"] is None:
        return ""
    near = (row["high"] - row["low"]) / 2 + ROUNDING
    return "reproduced" if abs(row["value"] - row["paper_value"]) <= near else ""


def _floors(panel: Panel, by_method: dict[str, Answers]) -> str:
    """Return the NLL of the top-k rows for other floors of the probability."""
    losses = []
    for floor in (1e-6, 1e-4, 1e-3, 5e-3):
        values = [
            f"{-np.log(np.clip(np.exp(by_method[f'top-{k}'].log_probs[..., 1]), floor, 1)).mean():.3f}"
            for k in (3, 5, 10)
        ]
        losses.append(f"{floor:g}: {', '.join(values)}")
    return (
        f"{panel.name}, NLL of the top 3, 5 and 10 by the floor of the probability: "
        f"{'; '.join(losses)}. The paper prints 0.200, 0.214 and 0.257."
    )


def _constant(
    name: str, majority: Answers, printed: dict[tuple[str, str, str], float], paper_name: str
) -> str:
    """Return a sentence about the labels that follows from majority voting's calibration error."""
    mean = float(np.nanmean(np.where(majority.inside, majority.p, np.nan)))
    sentence = (
        f"{name}, correctness: majority voting's ECE is {majority.by_split('ece').mean():.3f}, "
    )
    sentence += f"1 minus its mean probability {1 - mean:.3f}"
    paper = [printed.get((paper_name, "majority", metric)) for metric in METRICS]
    if paper[0] is not None and paper[2] is not None:
        sentence += (
            f". The paper prints ECE {paper[2]:.3f} beside an accuracy of {paper[3]:.1%}: shares of "
            "votes do not miss by so much on balanced labels"
        )
    return sentence + "."
