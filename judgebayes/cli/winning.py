"""Print who wins: the win rate of a pair, or the tables of pairs and systems."""

import numpy as np
import pandas as pd

from judgebayes.cli.console import Console
from judgebayes.cli.saying import say, show_rows
from judgebayes.sentence import percent
from judgebayes.workflow.win_rates import LEVEL, WinRate


def print_wins(console: Console, wins: WinRate) -> None:
    """Print the answer, and the tables of pairs and systems if there are several pairs."""
    say(console, wins.lead)
    if len(wins.pairs) > 1:
        _print(console, "Win rates", wins.pairs)
        if wins.systems is not None:
            _print(console, "Systems", wins.systems)
        console.print()


def _print(console: Console, title: str, frame: pd.DataFrame) -> None:
    """Print a table with its interval in one column, and shares in per cent."""
    rest = [name for name in frame.columns[1:] if not str(name).endswith(("low", "high"))]
    interval = "low" in frame
    heads = [str(name) for name in rest]
    if interval:
        heads.insert(1, f"{percent(LEVEL)} interval")
    rows = []
    for _, row in frame.iterrows():
        cells = [_cell(name, row[name]) for name in rest]
        if interval:
            unknown = np.isnan(row["low"])
            ends = "" if unknown else f"{100 * row['low']:.1f} - {100 * row['high']:.1f}"
            cells.insert(1, ends)
        rows.append([str(row.iloc[0]), *cells])
    show_rows(console, title, [str(frame.columns[0]), *heads], rows)


def _cell(name: str, value: float) -> str:
    if isinstance(value, float) and np.isnan(value):
        return ""
    if name in ("labelled", "items"):
        return f"{value:.0f}"
    return f"{value:.2f}" if name.startswith("P(") else f"{100 * value:.1f} %"
