"""The page's section on the judges: a figure of their accuracy, and their table.

The page's section of diagnostics: the findings on judges and labels.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from judgebayes.finding import Finding, count_findings
from judgebayes.show.page import Block, Findings, Folded, Paragraph, Section
from judgebayes.show.tables import judges_figure, judges_table


def diagnostics_section(findings: Sequence[Finding]) -> Section:
    """Return the section of the diagnostics, the most serious first."""
    counted = "{problems} problem(s) and {notes} note(s)".format(**count_findings(findings))
    words = f"{counted}, from the votes and the labels only, before any method was fitted."
    return Section("Diagnostics", [Paragraph(words), Findings(findings)], name="diagnostics")


MAX_SHORT_TABLE = 16
"""The number of judges in a short table: the most and the least accurate."""

MAX_FULL_TABLE = 500


def judges_section(judges: pd.DataFrame) -> Section:
    """Return the section on the judges' accuracy: a figure, the ends of the ranking, and all judges.

    `judges` is the result of `judgebayes.panel.judges.judge_table`.
    """
    has_accuracy = bool(np.isfinite(judges["accuracy"]).any())
    words = ["Without labels the accuracy of the judges is unknown."]
    if has_accuracy:
        words = [
            "Accuracy is agreement with the labels; repeated votes of a judge on an item count "
            "as one. TPR is accuracy on items of the higher label, TNR on those of the lower. "
            "The weight is what one vote of the judge adds to the log-odds of its class, by its "
            "accuracy: negative means that it is right less often than it is wrong."
        ]
        if "undecided" in judges:
            words.append(
                "Votes and accuracies are of decided votes; undecided is the share of a judge's "
                "votes that are for no class."
            )
    blocks: list[Block] = [*map(Paragraph, words)]
    if has_accuracy and len(judges) > 1:
        blocks.append(judges_figure(judges, MAX_SHORT_TABLE))
    blocks.append(judges_table(judges, MAX_SHORT_TABLE))
    if len(judges) > MAX_SHORT_TABLE:
        every = judges_table(judges, MAX_FULL_TABLE)
        blocks.append(Folded(every.caption, [every]))
    return Section("The judges", blocks, name="judges")
