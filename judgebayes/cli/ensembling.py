"""`judgebayes ensemble`: the error of a majority vote on a user's items, printed and plotted."""

from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from judgebayes.cli.saying import WARNING, numbers, say, show
from judgebayes.errors import JudgeBayesError
from judgebayes.io import check_writable, write_table
from judgebayes.majority import ErrorCurve
from judgebayes.progress import shown
from judgebayes.sentence import percent
from judgebayes.workflow.ensembling import MajorityError, ensemble_request
from judgebayes.workflow.options import EnsembleRequest

__all__ = ["ensemble_error"]

COLUMNS = (
    "mixture: a model of hard and easy items, fitted to the labels. model-free: smaller panels drawn "
    "from the observed votes. independent: the error if the votes on an item were independent."
)


def ensemble_error(request: EnsembleRequest) -> None:
    """Print the error by number of votes, and write the requested files.

    Raises
    ------
    JudgeBayesError
        If there are no labels, or the numbers of votes or the level are invalid.
    """
    console = Console()
    check_writable(request.out)
    check_writable(request.plot, table=False)
    with shown() as progress:
        result = ensemble_request(request, progress)
    say(console, result.said)
    _print(console, result)
    say(console, result.labels_to_go)
    say(console, result.warnings, WARNING)
    if request.out is not None:
        write_table(result.errors, request.out)
        say(console, [f"The table is in {request.out}."])
    if request.plot is not None:
        _plot(result, request.plot)
        say(console, [f"The plot is in {request.plot}."])


def _print(console: Console, result: MajorityError) -> None:
    table = Table(box=None, pad_edge=False)
    numbers(table, "votes", *result.curves, "independent", "")
    first = next(iter(result.curves.values()))
    for i, size in enumerate(first.size):
        cells = [_interval(c.error[i], c.low[i], c.high[i]) for c in result.curves.values()]
        note = "extrapolated" if first.extrapolated[i] else ""
        table.add_row(str(size), *cells, f"{result.independent[i]:.3f}", note)
    level = percent(result.request.level)
    show(console, f"Error of a majority vote on {result.about}, with {level} intervals", table)
    console.print()
    say(console, [COLUMNS])


def _interval(error: float, low: float, high: float) -> str:
    return f"{error:.3f} [{low:.3f}, {high:.3f}]" if np.isfinite(error) else "-"


def _plot(result: MajorityError, path: Path) -> None:
    from judgebayes.plots import error_curves

    like = next(iter(result.curves.values()))
    none = np.full(len(result.independent), np.nan)
    line = ErrorCurve(like.size, result.independent, none, none, like.extrapolated)
    figure = error_curves(
        result.curves | {"independent votes": line},
        title=f"Error of a majority vote on {result.about}",
    )
    try:
        figure.savefig(path, dpi=130)
    except (OSError, ValueError) as error:
        raise JudgeBayesError(
            f"{str(path)!r} cannot be written: {error}. Choose a path that ends in .png, .pdf or "
            ".svg."
        ) from error
