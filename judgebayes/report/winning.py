"""The first lines of the report: who wins."""

import numpy as np
import pandas as pd

from judgebayes.report.page import Block, Paragraph, Table
from judgebayes.sentence import percent
from judgebayes.workflow.win_rates import LEVEL, WinRate

HEADS = {"naive": "naive rate", "low": f"{percent(LEVEL)} interval"}


def wins_blocks(wins: WinRate) -> list[Block]:
    """Return who wins in sentences, with the tables of pairs and systems if there are several."""
    return [Paragraph(" ".join(wins.lead)), *(Table(*each) for each in wins_tables(wins))]


def wins_tables(wins: WinRate) -> list[tuple[str, list[str], list[list[str]]]]:
    """Return title, head and rows of the tables of pairs and systems, if there are several pairs."""
    if len(wins.pairs) == 1:
        return []
    systems = [] if wins.systems is None else [("Systems", *_rows(wins.systems))]
    return [("Win rates", *_rows(wins.pairs)), *systems]


def _rows(frame: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    names = [str(name) for name in frame.columns]
    shown = [name for name in names if not name.endswith(("low", "high"))]
    if "low" in names:
        shown.insert(2, "low")
    rows = [
        [str(row.iloc[0]), *(_cell(row, name) for name in shown[1:])] for _, row in frame.iterrows()
    ]
    return [HEADS.get(name, name) for name in shown], rows


def _cell(row: pd.Series, name: str) -> str:
    value = row[name]
    if np.isnan(value):
        return "-"
    if name == "low":
        return f"{100 * value:.1f} to {100 * row['high']:.1f}"
    if name in ("labelled", "items"):
        return f"{value:.0f}"
    return f"{value:.2f}" if name.startswith("P(") else f"{100 * value:.1f} %"
