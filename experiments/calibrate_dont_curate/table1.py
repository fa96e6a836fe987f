"""P2 Table 1: aggregators before calibration.

Claim: without calibration, pruning weak judges improves accuracy and NLL (margins 0.003 and 0.01 nats;
the twin is fitted to these rows, so it does not test this). The top-k rows have the printed numbers
(margins: NLL 0.01, Brier score 0.005, ECE 0.007, accuracy 0.003).
Command: judgebayes reproduce calibrate-dont-curate/table1 --data DIR
Runtime: about 20 seconds.
Expected: the numbers of the top-k rows, whose votes are public, are the paper's under the correctness
encoding (reproduced), so Table 1 was computed with a constant label. There the calibration error of
majority voting is one minus its mean probability, near the paper's and far above that of the true
orientation. Pruning improves NLL and accuracy on the reward models, and NLL with the best three and
five on the other two panels (replicated); accuracy with the best ten of LLMBar is contradicted.
"""

from typing import Any

import numpy as np

from judgebayes.experiments.calibrate_dont_curate.answers import Answers, advantage, answers
from judgebayes.experiments.calibrate_dont_curate.common import MARGIN, PAPER
from judgebayes.experiments.calibrate_dont_curate.data import benchmark, both_orientations
from judgebayes.experiments.calibrate_dont_curate.rows import (
    METRICS,
    Statement,
    claim_row,
    graded,
    metric_rows,
    paper_values,
    value_row,
)
from judgebayes.experiments.claims import Claim, claim_equal
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.panels import REWARDBENCH, Panel

CLAIMS = {
    metric: Statement(f"pruning weak judges improves {metric}", "paper", MARGIN[metric])
    for metric in ("nll", "accuracy")
}
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
        "Of the top-k rows of RewardBench the paper's own votes are public, so their claim is that our "
        "number is the printed one.",
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
                records.append({**row, "claim": as_printed(panel, method, row)})
        for k in (3, 5, 10):
            everyone, few = by_method["one-coin"], by_method[f"top-{k}"]
            for name, metric, gain in (
                (f"all minus top-{k}", "nll", advantage(few, everyone)),
                (f"top-{k} minus all", "accuracy", advantage(everyone, few, "accuracy")),
            ):
                cell = (panel, name, f"{metric} difference")
                if panel.dataset == "twin":
                    records.append(value_row(*cell, gain.interval(), run.splits))
                else:
                    records.append(claim_row(*cell, gain, run.splits, CLAIMS[metric]))
        if panel.orientation == "correctness":
            if panel.dataset == REWARDBENCH:
                notes.append(_floors(panel, by_method))
            notes.append(_constant(panel.name, by_method["majority"], printed, benchmark(panel)))
    return Output(rows(PAPER, "table1", graded(records)), notes=notes)


def as_printed(panel: Panel, method: str, row: dict[str, Any]) -> Claim | None:
    """Return the claim that our number is the paper's, where its own votes are public.

    The paper adds four judges to RewardBench's reward models. They are too weak to be among the best
    ten, so the top-k rows use the same votes and the same items; what differs are the splits, which
    change a mean over 100 of them by far less than the margin.
    """
    same = panel.dataset == REWARDBENCH and panel.orientation == "correctness"
    if not same or not method.startswith("top-") or row["paper_value"] is None:
        return None
    margin = MARGIN[row["metric"]]
    return claim_equal(row["value"], row["paper_value"], kind="paper", source="own", margin=margin)


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
