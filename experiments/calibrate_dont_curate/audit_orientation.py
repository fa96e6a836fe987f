"""Audit: what the correctness encoding measures.

Claim: the paper's calibrated NLLs (0.084, 0.046), accuracies above 99 % and 99.9 % of items kept at
100 % measure the judges. Audit: under that encoding the votes lower the NLL of an answer without any
vote (margin 0.01 nats). This claim is graded although the label is constant, because it is about that.
Command: judgebayes reproduce calibrate-dont-curate/audit-orientation --data DIR
Runtime: about 20 seconds.
Expected: contradicted. With correctness as the label, a method that sees no votes is right on every
item, and its NLL is not above that of the full pipeline; the penalty on the intercept determines the
number. The program's own diagnostic flags the labels.
"""

from typing import Any

import numpy as np

from judgebayes import BaseRate, Beta, OneCoin
from judgebayes.experiments.calibrate_dont_curate.answers import advantage, answers, answers_of
from judgebayes.experiments.calibrate_dont_curate.common import FLOOR, MARGIN, PAPER
from judgebayes.experiments.calibrate_dont_curate.data import both_orientations
from judgebayes.experiments.calibrate_dont_curate.parts import halves
from judgebayes.experiments.calibrate_dont_curate.rows import (
    Cell,
    Statement,
    graded,
    metric_rows,
    value_row,
)
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.inference.fit import Method
from judgebayes.measures.significance import Interval
from judgebayes.panel.diagnostics import diagnose

PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1)
CLAIM = Statement("votes lower the NLL under a constant label", "audit", MARGIN["nll"])


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
        maps: dict[str, Method] = {f"{x:g}": Beta(penalty=x, clip=FLOOR) for x in PENALTIES}
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
        gain = advantage(one["0.001"], blind["0.001"])
        title = "no votes minus one-coin"
        row = value_row(panel, title, "nll difference", gain.interval(), run.splits)
        if panel.orientation == "correctness":
            if panel.dataset != "twin":
                row["claim"] = Cell(CLAIM, gain)
            sentence = flagged[0].sentence if flagged else "nothing"
            notes.append(f"{panel.name}, correctness. The program says: {sentence}")
        records.append(row)
    notes.append(
        "The graded row: how much the votes lower the NLL under the paper's encoding. It is graded "
        "although the label is constant, because that is what it tests."
    )
    return Output(rows(PAPER, "audit-orientation", graded(records)), notes=notes)
