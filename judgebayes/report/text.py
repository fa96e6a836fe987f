"""Sanitise text of unknown origin: control characters, long names, HTML escapes.

A judge's accuracies as text for tables.
"""

import html
import re
import unicodedata
from collections.abc import Iterable

import numpy as np
import pandas as pd

SHARES = {"accuracy": "accuracy", "tpr": "TPR", "tnr": "TNR", "position_bias": "position bias"}
"""The columns of `judgebayes.panel.judges.judge_table` with intervals, and their titles."""


def percent_with_interval(row: pd.Series, name: str) -> str:
    """Return a share of a row of `judge_table` in per cent, with its interval; "-" if unknown."""
    if not np.isfinite(row[name]):
        return "-"
    sign = "+" if name == "position_bias" else ""
    value, low, high = (
        f"{100 * row[column]:{sign}.0f}" for column in (name, f"{name}_low", f"{name}_high")
    )
    return f"{value} [{low}, {high}]"


def percent_of(part: int, whole: int) -> str:
    """Return a share in per cent as text; a hyphen if the whole is 0."""
    return f"{part / whole:.1%}" if whole else "-"


MAX_TEXT = 4000
MAX_NAME = 72
# Control characters that a page must not contain, and marks that change the direction of text.
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)
_ISOLATES = re.compile("[\u2066-\u2069]")
_LINES = re.compile("[\t\n\u2028\u2029]+")


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


def escaped(text: str) -> str:
    """Return a text as HTML, safe as an element's content and in a quoted attribute."""
    return html.escape(clean(shortened(text, MAX_TEXT)), quote=True)


def presentable(names: Iterable[object], most: int = MAX_NAME) -> list[str]:
    """Return names for sentences, tables and figures: one short line each, all distinct.

    A right-to-left name is isolated, so that it does not reverse the text beside it.
    """
    unique_names: list[str] = []
    used: set[str] = set()
    for name in names:
        line = shortened(str(name), 4 * most)  # avoids searching a megabyte
        line = (
            shortened(_LINES.sub(" ", _ISOLATES.sub("", clean(line))).strip(), most) or "(no name)"
        )
        candidate, number = line, 1
        while candidate in used:
            number += 1
            candidate = f"{line} ({number})"
        used.add(candidate)
        unique_names.append(_isolated(candidate))
    return unique_names


def _isolated(name: str) -> str:
    leftward = any(unicodedata.bidirectional(c) in ("R", "AL", "AN") for c in name)
    return f"\u2068{name}\u2069" if leftward else name
