"""Print a comparison of methods on held-out labels."""

from collections.abc import Mapping

import pandas as pd
from rich.table import Table

from judgebayes.cli.console import Console
from judgebayes.cli.saying import say, show
from judgebayes.measures.significance import Interval
from judgebayes.workflow.comparing import Compared, comparison_rows, comparison_words
from judgebayes.workflow.conformal_sets import strata_rows
from judgebayes.workflow.losses import Losses

__all__ = ["print_comparison", "print_strata"]


def print_comparison(
    console: Console,
    compared: Compared,
    leads: Mapping[str, Interval],
    losses: Losses,
    *,
    hide_nll: bool,
) -> None:
    """Print a row per method with its metrics and extra loss, and explain the columns."""
    table = Table(box=None, pad_edge=False)
    for name in compared.head:
        table.add_column(name, justify="left" if name == "method" else "right")
    for row in comparison_rows(compared, leads, hide_nll=hide_nll):
        table.add_row(*row)
    show(console, compared.title, table)
    say(console, comparison_words(compared, leads, losses, hide_nll=hide_nll))
    console.print()


def print_strata(console: Console, strata: pd.DataFrame, *, no_empty: bool) -> None:
    """Print the coverage of conformal sets by stratum."""
    head, rows = strata_rows(strata, no_empty=no_empty)
    table = Table(box=None, pad_edge=False)
    for name in head:
        table.add_column(name, justify="left" if name == "items" else "right")
    for row in rows:
        table.add_row(*row)
    show(console, "Conformal sets on labelled items, coverage in %", table)
