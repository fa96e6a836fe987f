"""Tables of an answer as text: the judges, with a figure of them, and shares."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from judgebayes.sentence import percent, rounded, with_interval
from judgebayes.show.page import Plot, Table
from judgebayes.show.text import shortened_apart

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

LEAST_NEEDED = ("votes", "not asked", "TNR", "TPR")
"""Columns that a narrow console leaves out, in this order."""
MAX_NAME_LENGTH = 28
"""The length of a name in a figure, if shorter names differ."""
SHARES = {"accuracy": "accuracy", "tpr": "TPR", "tnr": "TNR", "position_bias": "position bias"}
"""The columns of `judgebayes.panel.judges.judge_table` with intervals, and their titles."""
PARTS = {"missing": "missing", "undecided": "undecided", "not_asked": "not asked"}
"""The columns with shares of a judge's votes."""
MOST_CLASSES = 5
"""The shares of more classes are left to the files."""


def judge_cells(judges: pd.DataFrame) -> dict[str, list[str]]:
    """Return the columns of a table of judges as text, those with values; shares are in per cent.

    `judges` is the result of `judge_table`, with the shares of agreement where labels are unknown.
    """
    cells = {"votes": [f"{n:,.0f}" for n in judges["votes"]]}
    for name, head in PARTS.items():
        if name in judges and (name != "not_asked" or (judges[name] > 0).any()):
            cells[head] = [rounded(share, ".0%") for share in judges[name]]
    for name, head in SHARES.items():
        if name in judges and np.isfinite(judges[name]).any():
            cells[head] = [percent_with_interval(row, name) for _, row in judges.iterrows()]
    if np.isfinite(judges["accuracy"]).any():
        if "weight" in judges:
            cells["weight"] = [f"{weight:+.2f}" for weight in judges["weight"]]
        return cells
    classes = [name for name in judges if str(name).startswith("share ")]
    for name in ["agreement", *(classes if len(classes) <= MOST_CLASSES else [])]:
        if name in judges:
            cells[name] = [rounded(share, ".0%") for share in judges[name]]
    return cells


def percent_with_interval(row: pd.Series, name: str) -> str:
    """Return a share of a row of `judge_table` in per cent, with its interval; "-" if unknown."""
    form = "+.0f" if name == "position_bias" else ".0f"
    return with_interval((row[name], row[f"{name}_low"], row[f"{name}_high"]), form, unit="")


def ends_of(ranked: pd.DataFrame, most: int) -> pd.DataFrame:
    """Return the rows of a ranked table; of more than `most`, the highest and the lowest."""
    if len(ranked) <= most:
        return ranked
    return pd.concat([ranked.head(most - most // 2), ranked.tail(most // 2)])


def judges_table(judges: pd.DataFrame, most: int) -> Table:
    """Return a row per judge, the most accurate first; of many, only the best and the worst.

    `judges` is as in `judge_cells`. Columns without values are not shown.
    """
    labelled = bool(np.isfinite(judges["accuracy"]).any())
    first = "accuracy" if labelled or "agreement" not in judges else "agreement"
    ranked = ends_of(judges.sort_values(first, ascending=False, kind="stable"), most)
    shown = f"{len(ranked)}"
    if len(ranked) < len(judges) and labelled:
        shown = f"{most - most // 2} most and {most // 2} least accurate"
    of = "The judge" if len(judges) == 1 else f"{shown} of {len(judges)} judges"
    cells = judge_cells(ranked)
    return Table(
        f"{of}, in % with 90 % intervals" if labelled else f"{of}, in %",
        ["judge", *cells],
        [*zip(ranked["judge"].map(str), *cells.values(), strict=True)],
        least_needed=LEAST_NEEDED,
    )


def judges_figure(judges: pd.DataFrame, most: int) -> Plot:
    """Return how often the judges are right: on the items of each of two labels, or on all items.

    `judges` is the result of `judge_table`; the accuracy of some judge is known. Of many judges, only
    the best and the worst are drawn.
    """
    known = judges[np.isfinite(judges["accuracy"])]
    ranked = known.sort_values("accuracy", ascending=False, kind="stable")
    by_label = "tpr" in ranked and np.isfinite(ranked[["tnr", "tpr"]]).to_numpy().all(1).any()
    best, worst, drawn = ranked.iloc[0], ranked.iloc[-1], ends_of(ranked, most)
    drawn = drawn.assign(judge=shortened_apart([*drawn["judge"].map(str)], MAX_NAME_LENGTH))
    parts = [
        drawn.assign(
            value=drawn[n], low=drawn[f"{n}_low"], high=drawn[f"{n}_high"], series=SHARES[n]
        )
        for n in (("tpr", "tnr") if by_label else ("accuracy",))
    ]

    def draw() -> "Picture":
        from judgebayes.plots import intervals  # Matplotlib takes half a second to import

        both = pd.concat(parts)
        return intervals(both, label="judge", series="series", xlabel="share right")

    few = "" if len(drawn) == len(ranked) else f" The best and worst {len(drawn)} of {len(ranked)}."
    of = " on items of the higher label (TPR) and of the lower (TNR)" if by_label else ""
    return Plot(
        draw,
        "judges-figure",
        "Accuracy of judges",
        f"The most accurate is {best['judge']} with {percent(best['accuracy'])}, the least "
        f"{worst['judge']} with {percent(worst['accuracy'])}. The table has the numbers.",
        f"How often judges are right{of}, with 90 % intervals.{few}",
    )


INTERVAL = "90 % interval"


def readable(table: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Return the heading and the rows of a table of shares as text; blank where one is unknown.

    The first column has names. Shares are in per cent, probabilities `P(...)` are not, and `low` and
    `high` are one column.
    """
    if "low" in table:
        ends = zip(100 * table["low"], 100 * table["high"], strict=True)
        between = ["known" if b - a < 1e-7 else f"{a:.1f} - {b:.1f}" for a, b in ends]
        column = pd.Series(between, table.index, object).where(table["low"].notna(), "")
        table = table.assign(low=column).rename(columns={"low": INTERVAL}).drop(columns="high")
    rows = [
        [str(first), *map(_cell, map(str, table.columns[1:]), others)]
        for first, *others in table.itertuples(index=False)
    ]
    return [str(name) for name in table.columns], rows


def _cell(name: str, value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    if np.isnan(value):
        return ""
    return f"{value:.2f}" if name.startswith("P(") else f"{value:.1%}"
