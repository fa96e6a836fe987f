"""Print a comparison of methods on held-out labels."""

from collections.abc import Mapping

import pandas as pd

from judgebayes.cli.console import Console
from judgebayes.cli.saying import say, show_rows
from judgebayes.measures.significance import Interval
from judgebayes.workflow.comparing import Compared, comparison_rows, comparison_words
from judgebayes.workflow.conformal_sets import strata_rows
from judgebayes.workflow.losses import Losses


def print_comparison(
    console: Console,
    compared: Compared,
    leads: Mapping[str, Interval],
    losses: Losses,
    *,
    hide_nll: bool,
) -> None:
    """Print a row per method with its metrics and extra loss, and explain the columns."""
    rows = comparison_rows(compared, leads, hide_nll=hide_nll)
    show_rows(console, compared.title, compared.head, rows)
    say(console, comparison_words(compared, leads, losses, hide_nll=hide_nll))
    console.print()


def print_strata(console: Console, strata: pd.DataFrame, *, no_empty: bool) -> None:
    """Print the coverage of conformal sets by stratum."""
    head, rows = strata_rows(strata, no_empty=no_empty)
    show_rows(console, "Conformal sets on labelled items, coverage in %", head, rows)
