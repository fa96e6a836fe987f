"""P2 section 4.5 and H.8: the operating checks P1-P3, and the program's additional checks.

Claim: three checks on the calibration set show when inclusion is safe: parseability, saturation and
whether the aggregator fits; below-chance judges should be left out.
Command: judgebayes reproduce calibrate-dont-curate/h8-diagnostics --data DIR
Runtime: about 3 seconds.
Expected: the checks do not predict where selection wins: it wins on RewardBench 2, which passes P2 and
P3. Redundancy is found on all panels, which are worth few independent judges each. Only the additional
check of the labels detects the correctness encoding.
"""

from collections import Counter
from typing import Any

import numpy as np

from judgebayes.experiments.calibrate_dont_curate.common import PAPER
from judgebayes.experiments.calibrate_dont_curate.data import both_orientations, short
from judgebayes.experiments.calibrate_dont_curate.rows import degenerate, value_row
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.panels import Panel
from judgebayes.measures.significance import Interval
from judgebayes.panel.checks import Thresholds
from judgebayes.panel.diagnostics import diagnose, panel_curve
from judgebayes.panel.judges import effective_judges, judge_table, residual_correlation, tally_of
from judgebayes.show.tables import judges_figure
from judgebayes.workflow.calibration import MOST_JUDGES

TOPICS = (
    "labels",
    "leak",
    "parseability",
    "saturation",
    "one-coin",
    "missingness",
    "below-chance",
    "redundancy",
)
READABLE = (0.8, 0.9, 0.95)
BELOW = (0.9, 0.95, 0.99)


@experiment(
    PAPER,
    "h8-diagnostics",
    "Section 4.5, H.8: diagnostics",
    "three checks on the calibration set show when keeping all judges is safe",
    twins=True,
)
def main(run: Run) -> Output:
    """Return the number of judges named by each diagnostic, by threshold, and plots of the judges."""
    records: list[dict[str, Any]] = []
    figures = {}
    notes = ["H.8's thresholds are blank in the text: the program's are our choice, and vary here."]
    for panel in both_orientations(run):
        run.say(f"{panel.name}, {panel.orientation}")
        findings = diagnose(panel.votes, panel.labels, panel.judges)
        count = Counter(f.topic for f in findings)
        for topic in TOPICS:
            named = sum(len(f.judges) for f in findings if f.topic == topic)
            for metric, value in (("findings", count[topic]), ("judges named", named)):
                records.append(_row(panel, topic, metric, value))
        records += [
            _named(panel, "parseability", f"readable below {x:g}", Thresholds(readable=x))
            for x in READABLE
        ]
        records += [
            _named(panel, "below-chance", f"surely below chance, {x:g}", Thresholds(below_chance=x))
            for x in BELOW
        ]
        effective_number = effective_judges(
            residual_correlation(tally_of(panel.votes, panel.labels))
        )
        records.append(_row(panel, "redundancy", "effective judges", effective_number))
        if not degenerate(panel):
            curve = panel_curve(panel.votes, panel.labels, orders=4 if run.smoke else 20)
            records += [
                {**_row(panel, "random panels", "nll by size", row.nll), "n": row.judges}
                for row in curve.itertuples()
            ]
            table = judge_table(panel.votes, panel.labels, [short(j) for j in panel.judges])
            figures[panel.dataset.replace("_", "-")] = judges_figure(table, MOST_JUDGES).draw()
        grave = [f.sentence for f in findings if f.severity == "bad"]
        if grave:
            notes.append(f"{panel.name}, {panel.orientation}: {' '.join(grave)}")
    return Output(rows(PAPER, "h8-diagnostics", records), figures, notes)


def _row(panel: Panel, method: str, metric: str, value: float) -> dict[str, Any]:
    return value_row(panel, method, metric, Interval(float(value), np.nan, np.nan), 1)


def _named(panel: Panel, topic: str, name: str, limits: Thresholds) -> dict[str, Any]:
    findings = diagnose(panel.votes, panel.labels, panel.judges, thresholds=limits)
    named = sum(len(f.judges) for f in findings if f.topic == topic)
    return _row(panel, f"{topic}, {name}", "judges named", named)
