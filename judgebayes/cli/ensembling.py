"""`judgebayes ensemble`: the error of a majority vote on a user's items, printed and plotted."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from judgebayes.cli.console import WARNING, say, say_next, say_plainly, show_rows
from judgebayes.io.tables import check_writable, write_table
from judgebayes.majority import ErrorCurve
from judgebayes.progress import shown
from judgebayes.sentence import percent, with_interval
from judgebayes.show.text import readable
from judgebayes.workflow.ensembling import MajorityError, ensemble
from judgebayes.workflow.machine import CommandResult
from judgebayes.workflow.options import EnsembleRequest

MEANINGS = {
    "split curve": "labels of all items, known or drawn given how the votes split.",
    "model-free": "smaller panels drawn from the votes of labelled items.",
    "mixture": "a model of hard and easy items, fitted to the labels.",
    "independent": "the error if the votes on an item were independent.",
    "no decision": "items on which the votes are tied, which do not count as wrong.",
}
"""What the columns of the printed tables mean."""

SHOWN = 20
"""The most items to label next that are printed."""


def ensemble_error(request: EnsembleRequest) -> CommandResult:
    """Print the error by number of votes, write the requested files, and return the results.

    Raises
    ------
    JudgeBayesError
        If there are no labels, or the numbers of votes or the level are invalid.
    """
    check_writable(request.out)
    check_writable(request.next_out)
    check_writable(request.plot, table=False)
    with shown() as progress:
        result = ensemble(request, progress=progress)
    say(*result.said)
    _print(result)
    say(*result.labels_to_go)
    say(*result.warnings, mark=WARNING)
    if result.next_items is not None:
        show_next_items(result.next_items, request.next_out)
    if request.out is not None:
        write_table(result.errors, request.out)
        say(f"The table is in {request.out}.")
    if request.plot is not None:
        from judgebayes.plots.curves import error_curves  # Matplotlib takes half a second to import

        both = "mixture" in result.curves
        other = {"independent votes": result.independent} if both else {}
        figure = error_curves(
            result.curves | other, title=f"Error of a majority vote on {result.about}"
        )
        figure.savefig(request.plot, dpi=130)
        say(f"The plot is in {request.plot}.")
    say_next(result.next_steps)
    return result.for_machines()


def _print(result: MajorityError) -> None:
    level = percent(result.estimates.request.level)
    decision = "majority vote" if "mixture" in result.curves else "plurality"
    decision = "median" if result.distance else decision
    independent = {"independent": result.independent}
    main = result.curves | (independent if "mixture" in result.curves else {})
    main |= {} if result.abstained is None else {"no decision": result.abstained}
    tables = {f"Error of a {decision} on {result.about}, in %": main}
    if result.distance:
        tables["Its mean distance from the label, in hundredths of a class"] = result.distance
    if result.paper:
        title = "Items with less than half of k votes right, P(S < k/2) (P3), in %"
        tables[title] = result.paper | independent
    for title, curves in tables.items():
        head, rows = ("votes", *curves, ""), _rows(curves)
        show_rows(f"{title}, with {level} intervals", head, rows, texts=0)
        say_plainly("")
    columns = {name for curves in tables.values() for name in curves}
    say(" ".join(f"{name}: {MEANINGS[name]}" for name in MEANINGS if name in columns))
    panels = [
        (panel, with_interval(ends, ".1f", unit=""))
        for panel, *ends in result.panels.itertuples(index=False)
    ]
    title = f"Error of the votes that each item has, in %, with {level} intervals"
    show_rows(title, ("panel", "error"), panels)
    say_plainly("")


def _rows(curves: dict[str, ErrorCurve]) -> list[list[str]]:
    """Return a row per number of votes: the error of each curve with its interval, if it has one."""
    every, rows = list(curves.values()), []
    for i, size in enumerate(every[0].size):
        ends = ((each.error[i], each.low[i], each.high[i]) for each in every)
        cells = (with_interval(each, ".1f", unit="") for each in ends)
        beyond = any(each.extrapolated[i] for each in every)
        rows.append([str(size), *cells, "extrapolated" if beyond else ""])
    return rows


def show_next_items(
    table: pd.DataFrame, out: Path | None, columns: Sequence[str] = ("item",)
) -> None:
    """Print the first items to label next, and write `columns` of all to `out` if it is named."""
    show_rows(f"Label next: {len(table)} item(s)", *readable(table.head(SHOWN)))
    if len(table) > SHOWN:
        more = " --next-out FILE writes all." if out is None else ""
        say(f"{len(table) - SHOWN} more are not shown.{more}")
    if out is not None:
        write_table(table[list(columns)].assign(label=""), out)
        say(
            f"{out} has a row for each item: fill in the label column, add the rows to the labels, "
            "and run again."
        )
