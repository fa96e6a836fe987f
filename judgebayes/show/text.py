"""Sanitise text of unknown origin: control characters, long texts, HTML escapes.

A judge's accuracies as text for tables.
"""

import html
import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from judgebayes.sentence import rounded, with_interval

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


MAX_TEXT = 4000
# Control characters that a page must not contain, and marks that change the direction of text.
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)


def clean(text: str) -> str:
    """Replace control characters by U+FFFD, the replacement character."""
    return _CONTROLS.sub("\ufffd", text)


def shortened(text: str, most: int) -> str:
    """Return at most `most` characters of a text: its beginning and its end.

    >>> shortened("abcdefghij", 5)
    'ab…ij'
    """
    if len(text) <= most:
        return text
    tail = (most - 1) // 2
    return f"{text[: most - 1 - tail]}…{text[len(text) - tail :]}"


def shortened_apart(names: Sequence[str], most: int) -> list[str]:
    """Return different names, shortened to `most` characters, or to as many as tell them apart."""
    short = [shortened(name, most) for name in names]
    return short if len({*short}) == len({*names}) else shortened_apart(names, 2 * most)


def escaped(text: str) -> str:
    """Return a text as HTML, safe as an element's content and in a quoted attribute."""
    return html.escape(clean(shortened(text, MAX_TEXT)), quote=True)
