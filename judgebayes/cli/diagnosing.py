"""`judgebayes diagnose`: what is wrong with a user's judges and labels."""

import numpy as np
import pandas as pd

from judgebayes.cli.console import Console, say, say_findings, say_next, say_plainly, show_rows
from judgebayes.io.tables import check_writable, write_table
from judgebayes.show.text import ends_of, judge_cells, percent_with_interval
from judgebayes.workflow.diagnosing import diagnose
from judgebayes.workflow.machine import CommandResult
from judgebayes.workflow.options import DiagnoseRequest

LEAST_NEEDED = ("votes", "not asked", "TNR", "TPR")
"""Columns that a narrow console leaves out, in this order."""
ROOM = 22
"""The room for names; longer ones are broken."""


def diagnose_votes(request: DiagnoseRequest) -> CommandResult:
    """Print a row per judge and the findings, write the requested files, and return the results."""
    check_writable(request.out)
    check_writable(request.plot, table=False)
    diagnosis = diagnose(request)
    say(*diagnosis.said)
    print_judges(diagnosis.judges, request.judges)
    table = diagnosis.judges
    if diagnosis.by is not None and request.by is not None:
        table = diagnosis.by
        _print_by(table, request.by, request.judges)
        say(*diagnosis.by_words)
        say_plainly("")
    if diagnosis.grouped:
        say(*diagnosis.grouped)
        say_plainly("")
    say_findings(diagnosis.findings)
    if request.out is not None:
        write_table(table, request.out)
        what = "all judges" if request.by is None else f"all judges by {request.by!r}"
        say(f"The table of {what} is in {request.out}.")
    if request.plot is not None:
        from judgebayes.plots.judge_map import judge_map  # Matplotlib takes half a second to import

        figure = judge_map(diagnosis.judges, title="Judges, with 90 % intervals")
        figure.savefig(request.plot, dpi=150)
        say(f"The plot of the judges is in {request.plot}.")
    say_next(diagnosis.next_steps)
    return diagnosis.for_machines()


def _print_by(rates: pd.DataFrame, column: str, most: int) -> None:
    """Print the rates of the first judges by the values of a column, without rates of no item."""
    judges = rates["judge"].unique()
    shown = rates[rates["judge"].isin(judges[:most])]
    there = [
        (rate, noun)
        for rate, noun in (("tpr", "valid"), ("tnr", "invalid"))
        if np.isfinite(rates[rate]).any()
    ]
    heads = [head for rate, noun in there for head in (rate.upper(), f"on {noun}")]
    rows = []
    for _, row in shown.iterrows():
        cells = [(percent_with_interval(row, rate), str(row[noun])) for rate, noun in there]
        rows.append([str(row["judge"]), row["value"], *(cell for pair in cells for cell in pair)])
    rates_shown = " and ".join(rate.upper() for rate, _ in there) or "Rates"
    title = f"{rates_shown} by {column!r}, in % with 90 % intervals"
    show_rows(title, ["judge", column, *heads], rows, texts=2)
    if len(judges) > most:
        say(f"{len(judges) - most} more judges are not shown. --out FILE writes all.")


def print_judges(judges: pd.DataFrame, most: int) -> None:
    """Print a line per judge, the most accurate first; of many, only the best and the worst.

    Shares are in per cent. On a narrow console, long names are broken, and columns that do not fit are
    left out and named below. Columns without values are not shown.
    """
    labelled = bool(np.isfinite(judges["accuracy"]).any())
    first = "accuracy" if labelled or "agreement" not in judges else "agreement"
    ranked = ends_of(judges.sort_values(first, ascending=False, kind="stable"), most)
    shown = f"{len(ranked)}"
    if len(ranked) < len(judges) and labelled:
        shown = f"{most - most // 2} most and {most // 2} least accurate"
    cells = judge_cells(ranked)
    widths = {head: max(len(cell) for cell in (head, *column)) for head, column in cells.items()}
    left_out = []
    room = min(ROOM, max(len(str(name)) for name in ranked["judge"]))
    for head in LEAST_NEEDED:
        if head in cells and room + sum(widths.values()) + 2 * len(widths) > Console().width:
            left_out.append(head)
            del cells[head], widths[head]
    of = "The judge" if len(judges) == 1 else f"{shown} of {len(judges)} judges"
    title = f"{of}, in % with 90 % intervals" if labelled else f"{of}, in %"
    rows = zip(ranked["judge"].map(str), *cells.values(), strict=True)
    show_rows(title, ["judge", *cells], rows)
    if left_out:
        columns = ", ".join(left_out)
        say(
            f"Not shown, because the terminal is too narrow: {columns}. Use --out FILE for all "
            "columns."
        )
    if "weight" in cells:
        say("Weight: what a vote adds to the log-odds of its class, given the judge's accuracy.")
    say_plainly("")
