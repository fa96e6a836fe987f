"""The items to label next, printed and written."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from judgebayes.cli.console import Console
from judgebayes.cli.saying import say
from judgebayes.io.tables import write_table

SHOWN = 20


def show_next_items(
    console: Console,
    table: pd.DataFrame,
    draw: Callable[[pd.DataFrame, str], None],
    out: Path | None,
    columns: tuple[str, ...] = ("item",),
) -> None:
    """Draw the first items with a title, and write `columns` of all to `out` if it is named."""
    draw(table.head(SHOWN), f"Label next: {len(table)} item(s)")
    if len(table) > SHOWN:
        more = " --next-out FILE writes all." if out is None else ""
        say(console, [f"{len(table) - SHOWN} more are not shown.{more}"])
    if out is not None:
        write_table(table[list(columns)].assign(label=""), out)
        say(
            console,
            [
                f"{out} has a row for each item: fill in the label column, add the rows to the labels, "
                "and run again."
            ],
        )
