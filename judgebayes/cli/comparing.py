"""Print a comparison of methods on held-out labels."""

from collections.abc import Mapping

from rich.table import Table

from judgebayes.cli.console import Console
from judgebayes.cli.saying import say, show
from judgebayes.measures.significance import Interval
from judgebayes.workflow.comparing import HEAD, Compared, comparison_rows, comparison_words
from judgebayes.workflow.losses import Losses

__all__ = ["print_comparison"]


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
    for name in HEAD:
        table.add_column(name, justify="left" if name == "method" else "right")
    for row in comparison_rows(compared, leads, hide_nll=hide_nll):
        table.add_row(*row)
    show(console, compared.title, table)
    say(console, comparison_words(compared, leads, losses, hide_nll=hide_nll))
    console.print()
