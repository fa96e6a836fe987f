"""The first lines of the report: who wins."""

import numpy as np
import pandas as pd

from judgebayes.report.page import Block, Paragraph, Table
from judgebayes.sentence import percent
from judgebayes.workflow.win_rates import LEVEL, WinRate


def wins_blocks(wins: WinRate) -> list[Block]:
    """Return who wins in sentences, with the tables of pairs and systems if there are several."""
    blocks: list[Block] = [Paragraph(" ".join(wins.lead))]
    if len(wins.pairs) > 1:
        blocks.append(_table("Win rates", wins.pairs, {"naive": "naive rate"}))
        if wins.systems is not None:
            blocks.append(_table("Systems", wins.systems, {}))
    return blocks


def _table(caption: str, frame: pd.DataFrame, heads: dict[str, str]) -> Table:
    names = [str(name) for name in frame.columns]
    shown = [name for name in names if not name.endswith(("low", "high"))]
    if "low" in names:
        shown.insert(2, "low")
        heads = {**heads, "low": f"{percent(LEVEL)} interval"}
    rows = [
        [str(row.iloc[0]), *(_cell(row, name) for name in shown[1:])] for _, row in frame.iterrows()
    ]
    return Table(caption, [heads.get(name, name) for name in shown], rows)


def _cell(row: pd.Series, name: str) -> str:
    value = row[name]
    if np.isnan(value):
        return "-"
    if name == "low":
        return f"{100 * value:.1f} to {100 * row['high']:.1f}"
    if name in ("labelled", "items"):
        return f"{value:.0f}"
    return f"{value:.2f}" if name.startswith("P(") else f"{100 * value:.1f} %"
