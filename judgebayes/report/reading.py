"""Sections of what was read: the data, the diagnostics, the judges."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Int

from judgebayes.finding import Finding
from judgebayes.plots import intervals, judge_map
from judgebayes.report.figures import inline_svg, names_as_they_are
from judgebayes.report.page import (
    Block,
    Drawing,
    Facts,
    Findings,
    Folded,
    Paragraph,
    Section,
    Table,
)
from judgebayes.report.shares import SHARES, percent_with_interval
from judgebayes.report.text import presentable

__all__ = ["data_section", "diagnostics_section", "judges_section", "percent_of"]

MOST_JUDGES = 16
"""Judges of a short table: the most and the least accurate."""

ALL_JUDGES = 500

LONGEST_DRAWN = 28
"""Letters of a name in a figure."""


def data_section(
    words: Sequence[str],
    files: Sequence[tuple[str, str]],
    classes: Sequence[str],
    votes: Int[np.ndarray, " class"],
    labels: Int[np.ndarray, " class"],
) -> Section:
    """Return what was read: sentences, files with their checksums, votes and labels by class."""
    rows = [
        (
            name,
            f"{n:,}",
            percent_of(int(n), int(votes.sum())),
            f"{k:,}",
            percent_of(int(k), int(labels.sum())),
        )
        for name, n, k in zip(classes, votes, labels, strict=True)
    ]
    head = ("class", "votes", "share", "labels", "share")
    return Section(
        "The data",
        [
            *map(Paragraph, words),
            Table("Votes and labels by class, from the lowest to the highest", head, rows),
            Facts(files),
        ],
        name="data",
    )


def percent_of(part: int, whole: int) -> str:
    """Return a share in per cent as text; a hyphen where the whole is 0."""
    return f"{part / whole:.1%}" if whole else "-"


def diagnostics_section(findings: Sequence[Finding]) -> Section:
    """Return what the diagnostics say, the gravest first."""
    counts = {kind: sum(f.severity == kind for f in findings) for kind in ("bad", "note")}
    problems = "No problem" if not counts["bad"] else _counted(counts["bad"], "problem")
    return Section(
        "Diagnostics",
        [
            Paragraph(
                f"{problems} and {_counted(counts['note'], 'note')}, from the votes and the labels "
                "alone, before any method was fitted."
            ),
            Findings(findings),
        ],
        name="diagnostics",
    )


def _counted(n: int, what: str) -> str:
    return f"{n or 'no'} {what}{'' if n == 1 else 's'}"


def judges_section(judges: pd.DataFrame) -> Section:
    """Return how often each judge is right: a figure, the ends of the ranking, and all judges.

    `judges` is what `judgebayes.panel.judges.judge_table` returned.
    """
    known = bool(np.isfinite(judges["accuracy"]).any())
    ranked = judges.sort_values("accuracy", ascending=False, kind="stable")
    shown = ranked
    if len(ranked) > MOST_JUDGES:
        shown = pd.concat([ranked.head(MOST_JUDGES // 2), ranked.tail(MOST_JUDGES // 2)])
    blocks: list[Block] = []
    if known:
        blocks.append(
            Paragraph(
                "Accuracy is agreement with the labels; repeated votes of a judge on an item count "
                "as one. TPR is accuracy on items of the higher label, TNR on those of the lower. "
                "The weight is what one vote of the judge adds to the log-odds of its class, by its "
                "accuracy: negative means that it is right less often than it is wrong."
            )
        )
    else:
        blocks.append(Paragraph("Without labels nothing is known of how often a judge is right."))
    if known and len(judges) > 1:
        blocks.append(_judges_drawing(ranked, shown))
    few = len(shown) == len(ranked)
    caption = "Judges, the most accurate first; shares in per cent with 90 % intervals"
    if not known:
        caption = "Judges and their votes"
    if not few:
        half = MOST_JUDGES // 2
        caption = (
            f"The {half} most and the {half} least accurate of {len(ranked)} judges, in per cent "
            "with 90 % intervals"
        )
    blocks.append(_judges_table(shown, caption, known))
    if not few:
        most = ranked.head(ALL_JUDGES)
        title = (
            f"All {len(ranked)} judges" if len(most) == len(ranked) else f"The first {len(most)}"
        )
        every = _judges_table(most, f"{title}, in per cent with 90 % intervals", known)
        blocks.append(Folded(title, [every]))
    return Section("The judges", blocks, name="judges")


def _judges_drawing(ranked: pd.DataFrame, shown: pd.DataFrame) -> Drawing:
    ranked, shown = (
        each.assign(judge=presentable(each["judge"], LONGEST_DRAWN)) for each in (ranked, shown)
    )
    by_label = "tpr" in ranked and np.isfinite(ranked[["tnr", "tpr"]]).to_numpy().all(1).any()
    with names_as_they_are():
        if by_label:
            figure = judge_map(ranked, title="", named=6, size=(5.0, 4.8))
            title = "Accuracy of every judge on items of the lower and of the higher label"
            caption = (
                f"Each of {len(ranked)} judges, with 90 % intervals: how often it is right on items "
                "of the lower label (to the right is better) and of the higher (up is better). On "
                'the solid line, "one coin", it is equally good on both, as the one-coin model takes '
                "every judge to be; on the dashed one it knows nothing."
            )
            written = {text.get_text() for text in figure.axes[0].texts}
            if not written.issuperset(ranked["judge"]):
                caption += " Where there was no room for a name, the table below tells it."
        else:
            table = shown.rename(
                columns={"accuracy": "value", "accuracy_low": "low", "accuracy_high": "high"}
            ).assign(series="accuracy")
            figure = intervals(table, label="judge", series="series", xlabel="accuracy", title="")
            figure.set_size_inches(5.0, 0.28 * len(table) + 1.0)
            title = "Accuracy of judges"
            caption = "How often judges are right, with 90 % intervals."
        best, worst = ranked.iloc[0], ranked[np.isfinite(ranked["accuracy"])].iloc[-1]
        spoken = (
            f"The most accurate is {best['judge']} with {best['accuracy']:.0%}, the least "
            f"{worst['judge']} with {worst['accuracy']:.0%}. The table below holds the numbers."
        )
        return Drawing(inline_svg(figure, "judges-figure", title, spoken), caption)


def _judges_table(judges: pd.DataFrame, caption: str, known: bool) -> Table:
    shares = [name for name in SHARES if name in judges and np.isfinite(judges[name]).any()]
    head = ["judge", *(SHARES[name] for name in shares), *(["weight"] if known else [])]
    partly = "not_asked" in judges and bool((judges["not_asked"] > 0).any())
    rows = [
        [
            str(row["judge"]),
            *(percent_with_interval(row, name) for name in shares),
            *([f"{row['weight']:+.2f}"] if known else []),
            f"{int(row['votes']):,}",
            f"{row['missing']:.0%}",
            *([f"{row['not_asked']:.0%}"] if partly else []),
        ]
        for _, row in judges.iterrows()
    ]
    return Table(caption, [*head, "votes", "missing", *(["not asked"] if partly else [])], rows)
