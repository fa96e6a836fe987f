"""`judgebayes diagnose`: what is wrong with a user's judges and labels."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from judgebayes.cli.reading import Source, classes_of, open_source, read_votes
from judgebayes.diagnostics import diagnose, judge_table
from judgebayes.finding import Finding
from judgebayes.float64 import in_float64
from judgebayes.io import write_table
from judgebayes.plots import judge_map
from judgebayes.votes import MISSING

__all__ = ["Request", "diagnose_votes"]

MARKS = {"bad": "[bold red]x[/] ", "note": "[yellow]![/] ", "good": "[green]+[/] "}
INTERVALS = {"accuracy": "accuracy", "tpr": "TPR", "tnr": "TNR", "position_bias": "position bias"}


@dataclass(frozen=True)
class Request:
    """What `judgebayes diagnose` was asked for."""

    source: Source
    labels: Path | None
    classes: str | None
    pairwise: bool | None
    judges: int
    out: Path | None
    plot: Path | None
    drop_unknown_labels: bool


@in_float64
def diagnose_votes(request: Request) -> list[Finding]:
    """Read the votes, print a row per judge and the findings, write what was asked for.

    Returns the findings. Labels may be constant: that is one of the things to be found.
    """
    console = Console()
    opened = open_source(request.source, request.labels)
    read = read_votes(opened, classes_of(opened, request.classes, request.pairwise))
    labels = np.full(read.votes.n_items, MISSING)
    if opened.labels is not None:
        gold = opened.labels
        labels = read.coding.labels(
            gold.table,
            item=gold.item,
            label=gold.label,
            unknown_items="drop" if request.drop_unknown_labels else "error",
            allow_degenerate=True,
        )
    for line in read.coding.words(read.votes):
        console.print(escape(line), soft_wrap=True, highlight=False)
    table = judge_table(read.votes, labels, read.coding)
    _print_judges(console, table, request.judges)
    found = diagnose(read.votes, labels, read.coding)
    for finding in found:
        mark = MARKS[finding.severity]
        console.print(mark + escape(finding.sentence), soft_wrap=True, highlight=False)
    if request.out is not None:
        write_table(table, request.out)
        console.print(escape(f"The table of all judges is in {request.out}."), highlight=False)
    if request.plot is not None:
        judge_map(table, title="Judges, with 90 % intervals").savefig(request.plot, dpi=150)
        console.print(escape(f"The map of judges is in {request.plot}."), highlight=False)
    return found


def _print_judges(console: Console, judges: pd.DataFrame, most: int) -> None:
    """Print a row per judge, the most accurate first; of many, those at both ends."""
    ranked = judges.sort_values("accuracy", ascending=False, kind="stable")
    if len(ranked) > most:
        ranked = pd.concat([ranked.head(most - most // 2), ranked.tail(most // 2)])
    table = Table(
        title=f"{len(ranked)} of {len(judges)} judges, with 90 % intervals",
        title_justify="left",
        box=None,
        pad_edge=False,
    )
    shown = {name: head for name, head in INTERVALS.items() if name in judges}
    for head in ("judge", "votes", "missing", *shown.values(), "weight"):
        table.add_column(head, justify="left" if head == "judge" else "right")
    for _, row in ranked.iterrows():
        table.add_row(
            escape(str(row["judge"])),
            str(row["votes"]),
            f"{row['missing']:.1%}",
            *(_interval(row, name) for name in shown),
            f"{row['weight']:+.2f}",
        )
    console.print()
    console.print(table)
    console.print()


def _interval(row: "pd.Series[float]", name: str) -> str:
    if not np.isfinite(row[name]):
        return "-"
    return f"{row[name]:.2f} [{row[f'{name}_low']:.2f}, {row[f'{name}_high']:.2f}]"
