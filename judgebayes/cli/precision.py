"""`judgebayes precision`: the share of each generator's items that is valid, printed."""

from pathlib import Path

import numpy as np
import pandas as pd

from judgebayes.cli.console import WARNING, say, say_next, show_rows
from judgebayes.cli.ensembling import show_next_items
from judgebayes.io.tables import check_writable, write_table
from judgebayes.sentence import percent
from judgebayes.show.text import readable
from judgebayes.workflow.machine import CommandResult
from judgebayes.workflow.options import TARGETS, PrecisionRequest
from judgebayes.workflow.precision import precision
from judgebayes.workflow.precision_tables import LEVEL, SETTLED


def estimate_precision(request: PrecisionRequest) -> CommandResult:
    """Print the tables, write the requested files, and return the results.

    Raises
    ------
    JudgeBayesError
        For bad input, or if the generator of an item is unknown.
    """
    check_writable(request.out)
    check_writable(request.next_out)
    check_writable(request.plot, table=False)
    result = precision(request)
    say(*result.said)
    title = "Generators"
    if "estimate" not in result.shares:
        title += " (raw means, not corrected)"
    if result.target:
        title += f", with {percent(LEVEL)} intervals about {TARGETS[result.target]}"
    shares = _shares(result.shares)
    show_rows(title, *readable(shares))
    lines = []
    if result.legend and (result.shares["labelled"] > 0).any():
        certain = result.target == "these" and result.data.log_likelihood is None
        known = " Known: every item is labelled." if certain else ""
        lines.append(f"{result.legend}{known} Raw mean: the mean of the votes, uncorrected.")
    if "beats next" in shares:
        never = (
            "" if (result.shares["labelled"] > 0).all() else " and both have labels of their own"
        )
        lines.append(
            f"Beats next: the probability of being better than the next row; settled if at least "
            f"{SETTLED:g}{never}."
        )
    say(*lines)
    show_rows("Judges", *readable(result.judges))
    if result.held_out is not None:
        title = "Check: each labelled generator, predicted from the others"
        show_rows(title, *readable(result.held_out))
    say(
        'TPR: the share of valid items that the judge calls valid; their number is in the column "on '
        'valid". TNR: the share of invalid items that it calls invalid; their number is in the column '
        '"on invalid". Both are over all generators.'
    )
    say(*result.warnings, mark=WARNING)
    if result.next_items is not None:
        show_next_items(result.next_items, request.next_out, ["item", "generator"])
    if request.out is not None:
        write_table(result.shares, request.out)
    if request.plot is not None:
        _plot(result.shares, request.plot)
    say_next(result.next_steps)
    return result.for_machines()


def _shares(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table of generators with fewer columns: labels of items, and the order."""
    labelled = zip(table["labelled"], table["items"], strict=True)
    shown = table.assign(labelled=[f"{a}/{b}" for a, b in labelled]).drop(columns="items")
    if "order settled" not in table:
        return shown
    orders = zip(table["P(better than next)"], table["order settled"], strict=True)
    shown["beats next"] = [
        "" if np.isnan(p) else f"{p:.2f}, {'settled' if settled == 'yes' else 'open'}"
        for p, settled in orders
    ]
    return shown.drop(columns=["P(better than next)", "order settled"])


def _plot(table: pd.DataFrame, path: Path) -> None:
    from judgebayes.plots.series import intervals  # Matplotlib takes half a second to import

    nothing = {"low": np.nan, "high": np.nan}
    parts = [table.assign(value=table["raw mean"], **nothing, series="raw mean")]
    if "estimate" in table:
        ends, series = ({}, "estimate, 90 % interval") if "low" in table else (nothing, "estimate")
        parts.insert(0, table.assign(value=table["estimate"], **ends, series=series))
    both = pd.concat(parts)
    both[["value", "low", "high"]] *= 100
    intervals(
        both,
        label="generator",
        series="series",
        xlabel="valid items, %",
        title="Generator precision",
    ).savefig(path, dpi=150)
