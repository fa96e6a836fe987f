"""`judgebayes diagnose`: what is wrong with a user's judges and labels."""

import numpy as np
import pandas as pd
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from judgebayes.cli.saying import MARKS, numbers, say, show
from judgebayes.finding import Finding
from judgebayes.io import check_writable, write_table
from judgebayes.report.shares import SHARES, percent_with_interval
from judgebayes.report.text import shortened
from judgebayes.workflow.diagnosing import diagnose_request
from judgebayes.workflow.options import DiagnoseRequest

__all__ = ["diagnose_votes", "print_judges"]

LEAST_NEEDED = ("votes", "not asked", "TNR", "TPR")
"""What a narrow console does without, in this order."""
SHORTEST_NAME = 22
"""Names may be shortened to so many characters, or as many as tell them apart."""


def diagnose_votes(request: DiagnoseRequest) -> list[Finding]:
    """Print a row per judge and the findings, write what was asked for.

    Returns the findings.
    """
    console = Console()
    check_writable(request.out)
    check_writable(request.plot, table=False)
    found = diagnose_request(request)
    say(console, found.said)
    print_judges(console, found.judges, request.judges)
    if found.grouped:
        say(console, found.grouped)
        console.print()
    for finding in found.findings:
        say(console, [finding.sentence], MARKS[finding.severity])
    if request.out is not None:
        write_table(found.judges, request.out)
        console.print(escape(f"The table of all judges is in {request.out}."), highlight=False)
    if request.plot is not None:
        from judgebayes.plots import judge_map  # Matplotlib takes half a second to import

        figure = judge_map(found.judges, title="Judges, with 90 % intervals")
        figure.savefig(request.plot, dpi=150)
        console.print(escape(f"The map of judges is in {request.plot}."), highlight=False)
    return found.findings


def print_judges(console: Console, judges: pd.DataFrame, most: int) -> None:
    """Print a line per judge, the most accurate first; of many, those at both ends.

    Shares are in per cent. Where the console is narrow, long names lose their middle, and columns
    that would not fit are left out, and named. Columns of which nothing is known are not there, nor
    those that the table lacks.
    """
    labelled = bool(np.isfinite(judges["accuracy"]).any())
    weighed = labelled and "weight" in judges
    ranked = judges.sort_values("accuracy", ascending=False, kind="stable")
    shown = f"{min(most, len(judges))}"
    if len(ranked) > most:
        best, worst = ranked.head(most - most // 2), ranked.tail(most // 2)
        ranked = pd.concat([best, worst])
        if labelled:
            shown = f"{len(best)} most and {len(worst)} least accurate"
    cells = {
        "votes": [str(n) for n in ranked["votes"]],
        **(
            {"missing": [f"{share:.0%}" for share in ranked["missing"]]}
            if "missing" in judges
            else {}
        ),
        **(
            {"not asked": [f"{share:.0%}" for share in ranked["not_asked"]]}
            if "not_asked" in judges and (judges["not_asked"] > 0).any()
            else {}
        ),
        **{
            head: [percent_with_interval(row, name) for _, row in ranked.iterrows()]
            for name, head in SHARES.items()
            if name in judges and np.isfinite(judges[name]).any()
        },
        **({"weight": [f"{weight:+.2f}" for weight in ranked["weight"]]} if weighed else {}),
    }
    taken = {head: max(len(cell) for cell in (head, *column)) for head, column in cells.items()}
    left_out = []
    needed = _least_room([str(name) for name in ranked["judge"]])
    for head in LEAST_NEEDED:
        if head in cells and console.width - sum(taken.values()) - 2 * len(taken) < needed:
            left_out.append(head)
            del cells[head], taken[head]
    room = max(console.width - sum(taken.values()) - 2 * len(taken), needed)
    of = "The judge" if len(judges) == 1 else f"{shown} of {len(judges)} judges"
    table = Table(box=None, pad_edge=False)
    table.add_column("judge", no_wrap=True)
    numbers(table, *cells)
    for name, *row in zip(ranked["judge"], *cells.values(), strict=True):
        table.add_row(escape(shortened(str(name), room)), *row)
    show(console, f"{of}, in % with 90 % intervals", table)
    if left_out:
        columns = " and ".join(", ".join(left_out).rsplit(", ", 1))
        console.print(f"Too wide to show here: {columns} (--out FILE).", highlight=False)
    if weighed:
        words = (
            "Weight: what one vote of the judge adds to the log-odds of its class, by its accuracy."
        )
        say(console, [words])
    console.print()


def _least_room(names: list[str]) -> int:
    """Return how many characters the names need so that none looks like another."""
    longest = max(map(len, names))
    rooms = range(min(SHORTEST_NAME, longest), longest)
    apart = (room for room in rooms if len({shortened(n, room) for n in names}) == len(names))
    return next(apart, longest)
