"""Audit: the reward model that is wrong on every item.

Claim (audit): a judge that is wrong on every item does no harm, so that scores with and without it
are equal (within 0.01 nats). The paper says that below-chance judges help after calibration.
Command: judgebayes reproduce calibrate-dont-curate/audit-broken --data DIR
Runtime: about 45 seconds.
Expected: contradicted. The diagnostic names the judge, and names no judge when it is left out. The
judge is wrong on all items, so that its reversed vote is the label. With it stacking is nearly perfect
and the one-coin model has a lower NLL, while the five most accurate judges stay the same. This gain is
a leak of the label, not a property of the panel.
"""

from typing import Any

import numpy as np

from judgebayes.experiments.calibrate_dont_curate.answers import advantage, answers
from judgebayes.experiments.calibrate_dont_curate.common import MARGIN, PAPER
from judgebayes.experiments.calibrate_dont_curate.data import short
from judgebayes.experiments.calibrate_dont_curate.parts import FEW_SPLITS, halves
from judgebayes.experiments.calibrate_dont_curate.rows import (
    Statement,
    claim_row,
    graded,
    metric_rows,
    value_row,
)
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.panels import BROKEN, REWARDBENCH, rewardbench_panel
from judgebayes.finding import Finding
from judgebayes.measures.significance import Interval
from judgebayes.panel.diagnostics import diagnose
from judgebayes.panel.judges import judge_table
from judgebayes.show.tables import judges_figure
from judgebayes.workflow.calibration import MOST_JUDGES

HARMLESS = Statement("a broken judge changes no score", "audit", MARGIN["nll"], within=True)


@experiment(
    PAPER,
    "audit-broken",
    "Audit: the broken judge",
    "below-chance judges do no harm with a calibrated aggregator",
    needs=(REWARDBENCH,),
)
def main(run: Run) -> Output:
    """Return scores with and without the judge, and the findings of the diagnostics."""
    records: list[dict[str, Any]] = []
    notes: list[str] = []
    answers_by_arm = {}
    for broken in (True, False):
        panel = rewardbench_panel(run, broken=broken)
        if run.smoke:
            judges = [j for j, name in enumerate(panel.judges) if j % 15 == 0 or BROKEN in name]
            panel = panel.of(judges, panel.variant or "small")
        findings = diagnose(panel.votes, panel.labels, panel.judges)
        named = [f for f in findings if f.topic == "leak"]
        flag = Interval(float(_names(named)), np.nan, np.nan)
        records.append(value_row(panel, "diagnose", "broken judge named", flag, 1))
        notes += [f"{panel.name}. The program says: {f.sentence}" for f in named]
        for method, calibrator in (("one-coin", "beta"), ("top-5", "beta"), ("stacking", "none")):
            run.say(f"{panel.name}: {method}")
            parts = halves(run, panel, count=FEW_SPLITS)
            one = answers(run, panel, method, (calibrator,), parts=parts)[calibrator]
            answers_by_arm[broken, method] = one
            records += metric_rows(one, method, ("nll", "accuracy"))
        if broken:
            table = judge_table(panel.votes, panel.labels, [short(j) for j in panel.judges])
            figure = judges_figure(table, MOST_JUDGES).draw()
    for method in ("one-coin", "stacking"):
        leak = advantage(answers_by_arm[True, method], answers_by_arm[False, method])
        panel = answers_by_arm[True, method].panel
        count = len(answers_by_arm[True, method].items)
        records.append(claim_row(panel, method, "nll saved by the leak", leak, count, HARMLESS))
    notes.append("If a broken judge improves a score, the score measures the encoding.")
    return Output(rows(PAPER, "audit-broken", graded(records)), {"map": figure}, notes)


def _names(findings: list[Finding]) -> bool:
    return any(BROKEN in name for finding in findings for name in finding.judges)
