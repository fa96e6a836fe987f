"""The report's section on the judges: a figure of their accuracy, and their table.

The report's section of diagnostics: the findings on judges and labels.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from judgebayes.finding import Finding
from judgebayes.plots.judge_map import judge_map
from judgebayes.report.figures import inline_svg, names_as_they_are
from judgebayes.report.page import Block, Drawing, Findings, Folded, Paragraph, Section, Table
from judgebayes.report.text import SHARES, percent_with_interval, presentable
from judgebayes.sentence import percent


def diagnostics_section(findings: Sequence[Finding]) -> Section:
    """Return the section of the diagnostics, the most serious first."""
    counts = {kind: sum(f.severity == kind for f in findings) for kind in ("bad", "note")}
    return Section(
        "Diagnostics",
        [
            Paragraph(
                f"{counts['bad']} problem(s) and {counts['note']} note(s), from the votes and the "
                "labels only, before any method was fitted."
            ),
            Findings(findings),
        ],
        name="diagnostics",
    )


MAX_SHORT_TABLE = 16
"""The number of judges in a short table: the most and the least accurate."""

MAX_FULL_TABLE = 500

MAX_NAME_LENGTH = 28
"""The maximal length of a name in a figure."""


def judges_section(judges: pd.DataFrame) -> Section:
    """Return the section on the judges' accuracy: a figure, the ends of the ranking, and all judges.

    `judges` is the result of `judgebayes.panel.judges.judge_table`.
    """
    has_accuracy = bool(np.isfinite(judges["accuracy"]).any())
    ranked = judges.sort_values("accuracy", ascending=False, kind="stable")
    shown = ranked
    if len(ranked) > MAX_SHORT_TABLE:
        shown = pd.concat([ranked.head(MAX_SHORT_TABLE // 2), ranked.tail(MAX_SHORT_TABLE // 2)])
    blocks: list[Block] = []
    if has_accuracy:
        blocks.append(
            Paragraph(
                "Accuracy is agreement with the labels; repeated votes of a judge on an item count "
                "as one. TPR is accuracy on items of the higher label, TNR on those of the lower. "
                "The weight is what one vote of the judge adds to the log-odds of its class, by its "
                "accuracy: negative means that it is right less often than it is wrong."
            )
        )
        if "undecided" in judges:
            blocks.append(
                Paragraph(
                    "Votes and accuracies are of decided votes; undecided is the share of a judge's "
                    "votes that are for no class."
                )
            )
    else:
        blocks.append(Paragraph("Without labels the accuracy of the judges is unknown."))
    if has_accuracy and len(judges) > 1:
        blocks.append(_judges_drawing(ranked, shown))
    all_shown = len(shown) == len(ranked)
    caption = "Judges, the most accurate first; shares in per cent with 90 % intervals"
    if not has_accuracy:
        caption = "Judges and their votes"
    if not all_shown:
        half = MAX_SHORT_TABLE // 2
        caption = (
            f"The {half} most and the {half} least accurate of {len(ranked)} judges, in per cent "
            "with 90 % intervals"
        )
    blocks.append(_judges_table(shown, caption, has_accuracy))
    if not all_shown:
        most = ranked.head(MAX_FULL_TABLE)
        title = (
            f"All {len(ranked)} judges" if len(most) == len(ranked) else f"The first {len(most)}"
        )
        full_table = _judges_table(most, f"{title}, in per cent with 90 % intervals", has_accuracy)
        blocks.append(Folded(title, [full_table]))
    return Section("The judges", blocks, name="judges")


def _judges_drawing(ranked: pd.DataFrame, shown: pd.DataFrame) -> Drawing:
    ranked, shown = (
        each.assign(judge=presentable(each["judge"], MAX_NAME_LENGTH)) for each in (ranked, shown)
    )
    by_label = "tpr" in ranked and np.isfinite(ranked[["tnr", "tpr"]]).to_numpy().all(1).any()
    with names_as_they_are():
        if by_label:
            figure = judge_map(ranked, title="", named=6, size=(5.0, 4.8))
            title = "Accuracy of every judge on items of the lower and of the higher label"
            caption = (
                f"Each of {len(ranked)} judges, with 90 % intervals: how often it is right on items "
                "of the lower label (to the right is better) and of the higher (up is better). On "
                'the solid line, "one coin", it is equally good on both, as the one-coin model assumes; '
                "on the dashed line its votes have no information."
            )
            names_in_figure = {text.get_text() for text in figure.axes[0].texts}
            if not names_in_figure.issuperset(ranked["judge"]):
                caption += " Names without space in the figure are in the table below."
        else:
            figure = judge_map(shown, title="")
            figure.set_size_inches(5.0, 0.28 * len(shown) + 1.0)
            title = "Accuracy of judges"
            caption = "How often judges are right, with 90 % intervals."
        best, worst = ranked.iloc[0], ranked[np.isfinite(ranked["accuracy"])].iloc[-1]
        description = (
            f"The most accurate is {best['judge']} with {percent(best['accuracy'])}, the least "
            f"{worst['judge']} with {percent(worst['accuracy'])}. The table below has the numbers."
        )
        return Drawing(inline_svg(figure, "judges-figure", title, description), caption)


def _judges_table(judges: pd.DataFrame, caption: str, has_accuracy: bool) -> Table:
    shares = [name for name in SHARES if name in judges and np.isfinite(judges[name]).any()]
    head = ["judge", *(SHARES[name] for name in shares), *(["weight"] if has_accuracy else [])]
    some_not_asked = "not_asked" in judges and bool((judges["not_asked"] > 0).any())
    rows = [
        [
            str(row["judge"]),
            *(percent_with_interval(row, name) for name in shares),
            *([f"{row['weight']:+.2f}"] if has_accuracy else []),
            f"{int(row['votes']):,}",
            f"{row['missing']:.0%}",
            *([_share(row["undecided"])] if "undecided" in judges else []),
            *([f"{row['not_asked']:.0%}"] if some_not_asked else []),
        ]
        for _, row in judges.iterrows()
    ]
    return Table(
        caption,
        [
            *head,
            *("votes", "missing"),
            *(["undecided"] if "undecided" in judges else []),
            *(["not asked"] if some_not_asked else []),
        ],
        rows,
    )


def _share(share: float) -> str:
    return f"{share:.0%}" if np.isfinite(share) else "-"
