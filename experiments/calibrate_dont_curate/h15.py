"""P2 H.15 (Fig 9): reliability before and after calibration.

Claim: uncalibrated answers fill all bins, far from the diagonal; after beta calibration they are in
three confident bins near the diagonal.
Command: judgebayes reproduce calibrate-dont-curate/h15 --data DIR
Runtime: about 3 seconds.
Expected: in the true orientation calibrated answers use all bins. Stacking's are nearer to the diagonal
than those of one-coin + beta except on RewardBench 2. Under the correctness encoding the answers of
one-coin + beta are in a single bin: they are sharp because the label is constant.
"""

from typing import Any

import numpy as np

from judgebayes.experiments.calibrate_dont_curate.answers import CLIP, Answers, answers
from judgebayes.experiments.calibrate_dont_curate.common import PAPER
from judgebayes.experiments.calibrate_dont_curate.data import both_orientations
from judgebayes.experiments.calibrate_dont_curate.rows import value_row
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.plots import reliability_diagrams
from judgebayes.experiments.significance import bootstrap_interval
from judgebayes.measures.scores import Reliability, reliability
from judgebayes.measures.significance import Interval

BINS = 15
SHOWN = (
    ("majority", "majority", "none"),
    ("one-coin", "one-coin", "none"),
    ("one-coin + beta", "one-coin", "beta"),
    ("stacking", "stacking", "none"),
)


@experiment(
    PAPER,
    "h15",
    "H.15, Fig 9: reliability",
    "after beta calibration answers are sharp and on the diagonal",
    twins=True,
)
def main(run: Run) -> Output:
    """Return bins in use, largest bin error and ECE, and reliability diagrams of class 1."""
    records: list[dict[str, Any]] = []
    diagrams: dict[str, dict[str, Reliability]] = {}
    for panel in both_orientations(run):
        run.say(f"{panel.name}, {panel.orientation}")
        diagram = diagrams.setdefault(f"{panel.dataset}\n{panel.orientation}", {})
        for name, method, calibrator in SHOWN:
            answer_set = answers(run, panel, method, (calibrator,))[calibrator]
            pooled = pooled_reliability(answer_set)
            diagram[name] = pooled
            mass, predicted, observed = (np.asarray(part) for part in pooled)
            here = mass > 0
            point = {
                "bins in use": float(here.sum()),
                "bins with 1 % of the answers": float((mass > 0.01 * mass.sum()).sum()),
                "largest bin error": float(np.abs(predicted - observed)[here].max()),
            }
            records += [
                value_row(panel, name, metric, Interval(v, np.nan, np.nan), run.splits)
                for metric, v in point.items()
            ]
            ece = bootstrap_interval(answer_set.by_split("ece"))
            records.append(value_row(panel, name, "ece", ece, run.splits))
    figure = reliability_diagrams(
        diagrams,
        xlabel="probability of class 1",
        ylabel="share of class 1",
        title=f"Reliability over all splits, {BINS} bins (area: share of the answers)",
        columns=4,
    )
    notes = [f"{BINS} bins of the probability of class 1, with the answers of all splits pooled."]
    return Output(rows(PAPER, "h15", records), {"diagrams": figure}, notes)


def pooled_reliability(answer_set: Answers) -> Reliability:
    """Return the reliability of class 1 over the answers of all splits."""
    p = answer_set.p[answer_set.inside]
    log_probs = np.log(np.clip(np.stack([1 - p, p], 1), CLIP, 1))
    return reliability(log_probs, answer_set.labels[answer_set.inside], bins=BINS, of=1)
