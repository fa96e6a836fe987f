"""Audit: what the correctness encoding measures.

Claim: the paper's calibrated NLLs (0.084, 0.046), accuracies above 99 % and 99.9 % of items kept at
100 % measure the judges.
Command: judgebayes reproduce calibrate-dont-curate/audit-orientation --data DIR
Runtime: about 20 seconds.
Expected: contradicted. With correctness as the label, a method that sees no votes scores the same
NLL as the full pipeline, at 100 %; the penalty on the intercept determines the number. The program's
own diagnostic flags the labels.
"""

from typing import Any

import numpy as np

from judgebayes.aggregators import BaseRate, OneCoin
from judgebayes.calibrators import Beta, Calibrator
from judgebayes.experiments.calibrate_dont_curate.answers import Answers, answers, answers_of
from judgebayes.experiments.calibrate_dont_curate.common import PAPER
from judgebayes.experiments.calibrate_dont_curate.data import both_orientations
from judgebayes.experiments.calibrate_dont_curate.parts import halves
from judgebayes.experiments.calibrate_dont_curate.rows import metric_rows, value_row
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.measures.significance import Interval, normal_interval
from judgebayes.panel.diagnostics import diagnose

PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1)


@experiment(
    PAPER,
    "audit-orientation",
    "Audit: a constant label",
    "calibrated NLL, accuracy and coverage under the correctness encoding measure the judges",
    twins=True,
)
def main(run: Run) -> Output:
    """Return scores of the pipeline and of an answer without votes, by penalty and orientation."""
    records: list[dict[str, Any]] = []
    notes: list[str] = []
    for panel in both_orientations(run):
        run.say(f"{panel.name}, {panel.orientation}")
        parts = halves(run, panel)
        maps: dict[str, Calibrator] = {f"{x:g}": Beta(penalty=x) for x in PENALTIES}
        one = answers_of(run, panel, OneCoin(), dict(maps), parts)
        blind = answers_of(run, panel, BaseRate(), dict(maps), parts)
        for name in maps:
            for title, answer_set in (("one-coin", one[name]), ("no votes", blind[name])):
                records += metric_rows(
                    answer_set, f"{title} + beta, penalty {name}", ("nll", "accuracy")
                )
        majority = answers(run, panel, "majority")["beta"]
        records += metric_rows(majority, "majority + beta", ("nll", "accuracy"))
        flagged = [
            f for f in diagnose(panel.votes, panel.labels, panel.judges) if f.topic == "labels"
        ]
        flag = Interval(float(len(flagged) > 0), np.nan, np.nan)
        records.append(value_row(panel, "diagnose", "labels flagged", flag, 1))
        gain = normal_interval(blind["0.001"].by_split("nll") - one["0.001"].by_split("nll"))
        row = value_row(panel, "no votes minus one-coin", "nll difference", gain, run.splits)
        if panel.orientation == "correctness":
            largest_gain = max(abs(gain.low), abs(gain.high))
            if panel.dataset != "twin":
                row["grade"] = _grade(largest_gain, one["0.001"])
            sentence = flagged[0].sentence if flagged else "nothing"
            notes.append(f"{panel.name}, correctness. The program says: {sentence}")
        records.append(row)
    notes.append(
        "contradicted: under the paper's encoding the votes are worth less than 0.01 nats, and all "
        "answers are right."
    )
    return Output(rows(PAPER, "audit-orientation", records), notes=notes)


def _grade(largest_gain: float, answers_with_votes: Answers) -> str:
    """Return contradicted where the votes are worth nothing although every answer is right."""
    always_right = float(answers_with_votes.by_split("accuracy").min()) == 1.0
    return "contradicted" if largest_gain < 0.01 and always_right else ""
