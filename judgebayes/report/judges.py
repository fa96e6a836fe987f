"""The report's section on the judges: a figure of their accuracy, and their table.

The report's section of diagnostics: the findings on judges and labels.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from judgebayes.finding import Finding, count_findings
from judgebayes.plots.judge_map import judge_map
from judgebayes.plots.style import Figure
from judgebayes.sentence import percent
from judgebayes.show.figures import drawing
from judgebayes.show.page import Block, Drawing, Findings, Folded, Paragraph, Section, Table
from judgebayes.show.text import ends_of, judge_cells, shortened_apart


def diagnostics_section(findings: Sequence[Finding]) -> Section:
    """Return the section of the diagnostics, the most serious first."""
    counted = "{problems} problem(s) and {notes} note(s)".format(**count_findings(findings))
    words = f"{counted}, from the votes and the labels only, before any method was fitted."
    return Section("Diagnostics", [Paragraph(words), Findings(findings)], name="diagnostics")


MAX_SHORT_TABLE = 16
"""The number of judges in a short table: the most and the least accurate."""

MAX_FULL_TABLE = 500

MAX_NAME_LENGTH = 28
"""The length of a name in a figure, if shorter names differ."""
IN_PERCENT = "in per cent with 90 % intervals"


def judges_section(judges: pd.DataFrame) -> Section:
    """Return the section on the judges' accuracy: a figure, the ends of the ranking, and all judges.

    `judges` is the result of `judgebayes.panel.judges.judge_table`.
    """
    has_accuracy = bool(np.isfinite(judges["accuracy"]).any())
    ranked = judges.sort_values("accuracy", ascending=False, kind="stable")
    shown = ends_of(ranked, MAX_SHORT_TABLE)
    words = ["Without labels the accuracy of the judges is unknown."]
    caption = "Judges and their votes"
    if has_accuracy:
        words = [
            "Accuracy is agreement with the labels; repeated votes of a judge on an item count "
            "as one. TPR is accuracy on items of the higher label, TNR on those of the lower. "
            "The weight is what one vote of the judge adds to the log-odds of its class, by its "
            "accuracy: negative means that it is right less often than it is wrong."
        ]
        caption = f"Judges, the most accurate first; {IN_PERCENT}"
        if "undecided" in judges:
            words.append(
                "Votes and accuracies are of decided votes; undecided is the share of a judge's "
                "votes that are for no class."
            )
    blocks: list[Block] = [*map(Paragraph, words)]
    if has_accuracy and len(judges) > 1:
        blocks.append(_judges_drawing(ranked, shown))
    if len(shown) == len(ranked):
        return Section("The judges", [*blocks, _judges_table(shown, caption)], name="judges")
    half, most = MAX_SHORT_TABLE // 2, ranked.head(MAX_FULL_TABLE)
    caption = f"The {half} most and the {half} least accurate of {len(ranked)} judges, {IN_PERCENT}"
    title = f"All {len(ranked)} judges" if len(most) == len(ranked) else f"The first {len(most)}"
    every = Folded(title, [_judges_table(most, f"{title}, {IN_PERCENT}")])
    return Section("The judges", [*blocks, _judges_table(shown, caption), every], name="judges")


def _judges_drawing(ranked: pd.DataFrame, shown: pd.DataFrame) -> Drawing:
    by_label = "tpr" in ranked and np.isfinite(ranked[["tnr", "tpr"]]).to_numpy().all(1).any()
    title, caption = "Accuracy of judges", "How often judges are right, with 90 % intervals."
    if by_label:
        title = "Accuracy of every judge on items of the lower and of the higher label"
        caption = (
            f"Each of {len(ranked)} judges, with 90 % intervals: how often it is right on items "
            "of the lower label (to the right is better) and of the higher (up is better). On "
            'the solid line, "one coin", it is equally good on both, as the one-coin model assumes; '
            "on the dashed line its votes have no information. Names without space in the figure are "
            "in the table below."
        )
    best, worst = ranked.iloc[0], ranked[np.isfinite(ranked["accuracy"])].iloc[-1]
    drawn = ranked if by_label else shown
    names = shortened_apart([*drawn["judge"].map(str)], MAX_NAME_LENGTH)

    def draw() -> Figure:
        figure = judge_map(drawn.assign(judge=names), title="", named=6, size=(5.0, 4.8))
        figure.set_figwidth(5.0)
        return figure

    return drawing(
        draw,
        "judges-figure",
        title,
        f"The most accurate is {best['judge']} with {percent(best['accuracy'])}, the least "
        f"{worst['judge']} with {percent(worst['accuracy'])}. The table below has the numbers.",
        caption,
    )


def _judges_table(judges: pd.DataFrame, caption: str) -> Table:
    cells = judge_cells(judges)
    rows = [list(row) for row in zip(judges["judge"].map(str), *cells.values(), strict=True)]
    return Table(caption, ["judge", *cells], rows)
