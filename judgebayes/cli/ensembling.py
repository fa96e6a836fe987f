"""`judgebayes ensemble`: how wrong a majority vote is on a user's items, and the labels to know it."""

from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from judgebayes.cli.saying import WARNING, numbers, say, show
from judgebayes.errors import JudgeBayesError
from judgebayes.io import check_writable, write_table
from judgebayes.majority import ErrorCurve
from judgebayes.progress import shown
from judgebayes.workflow.ensembling import MajorityError, ensemble_request
from judgebayes.workflow.options import EnsembleRequest

__all__ = ["ensemble_error"]

COLUMNS = (
    "mixture: hard and easy items, fitted to the labels. model-free: smaller panels drawn from the "
    "votes there are. independent: what it would be if the votes on an item were independent."
)


def ensemble_error(request: EnsembleRequest) -> None:
    """Print the error against the number of votes, write what was asked for.

    Raises
    ------
    JudgeBayesError
        If there are no labels, or the numbers of votes or the level make no sense.
    """
    console = Console()
    check_writable(request.out)
    check_writable(request.plot, table=False)
    with shown() as progress:
        found = ensemble_request(request, progress)
    say(console, found.said)
    _print(console, found)
    say(console, found.labels_to_go)
    say(console, found.warnings, WARNING)
    if request.out is not None:
        write_table(found.errors, request.out)
        say(console, [f"The table is in {request.out}."])
    if request.plot is not None:
        _plot(found, request.plot)
        say(console, [f"The plot is in {request.plot}."])


def _print(console: Console, found: MajorityError) -> None:
    table = Table(box=None, pad_edge=False)
    numbers(table, "votes", *found.curves, "independent", "")
    first = next(iter(found.curves.values()))
    for i, size in enumerate(first.size):
        cells = [_interval(c.error[i], c.low[i], c.high[i]) for c in found.curves.values()]
        note = "extrapolated" if first.extrapolated[i] else ""
        table.add_row(str(size), *cells, f"{found.independent[i]:.3f}", note)
    show(console, f"Error of a majority vote, with {found.request.level:.0%} intervals", table)
    console.print()
    say(console, [COLUMNS])


def _interval(error: float, low: float, high: float) -> str:
    return f"{error:.3f} [{low:.3f}, {high:.3f}]" if np.isfinite(error) else "-"


def _plot(found: MajorityError, path: Path) -> None:
    from judgebayes.plots import error_curves

    like = next(iter(found.curves.values()))
    none = np.full(len(found.independent), np.nan)
    line = ErrorCurve(like.size, found.independent, none, none, like.extrapolated)
    figure = error_curves(
        found.curves | {"independent votes": line},
        title=f"Error of a majority vote ({found.request.level:.0%} intervals)",
    )
    try:
        figure.savefig(path, dpi=130)
    except (OSError, ValueError) as error:
        raise JudgeBayesError(
            f"{str(path)!r} cannot be written: {error}. Right would be a path that ends in "
            ".png, .pdf or .svg."
        ) from error
