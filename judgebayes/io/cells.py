"""Cells of votes and labels: decimal commas, and values that mean no vote."""

import json
import re
from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
import pandas as pd

from judgebayes.io.options import split_names
from judgebayes.votes.classes import canonical, folded, listing

INT64_LIMIT = 2**63
"""Whole numbers from here on do not fit into 64 bits."""


def plain_column(column: pd.Series) -> pd.Series:
    """Return cells as numbers if all are numbers, else as text; None where missing."""
    code, different = pd.factorize(column)
    if any(isinstance(value, str) for value in different):
        return pd.Series(np.array([*map(_text, different), None], object)[code], dtype=object)
    if (code >= 0).all() and all(abs(value) < INT64_LIMIT for value in different):
        return pd.Series(np.array(list(different))[code])
    return pd.Series(np.array([*map(float, different), np.nan])[code])


def _text(value: object) -> str:
    """Return a value as text, a whole number without a decimal point."""
    return str(canonical(value)) if isinstance(value, int | float) else str(value)


COMMA = re.compile(r"[+-]?\d*,\d+")
NUMBER = re.compile(r"[+-]?\d+(?:,\d+)?")
PERCENT = re.compile(r"[+-]?\d+(?:[.,]\d+)?\s?%")
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+")


def plain_cells(
    table: pd.DataFrame, columns: list[str], missing: str | None, what: str
) -> tuple[pd.DataFrame, list[str]]:
    """Return the table with decimal points, and with empty cells for missing values; and notes.

    `what` the cells are, `vote` or `label`, is named in the notes.
    """
    table, messages = with_points(table, columns)
    table, several = _single(table, columns)
    messages += [
        f"{n} {what}(s) of {c!r} are lists of several or none: read as missing."
        for c, n in several.items()
    ]
    table, emptied = without(table, columns, missing)
    if emptied:
        shown = ", ".join(f"{value!r} {n}" for value, n in emptied.most_common(8))
        messages.append(f"Read as missing {what}s: {shown}.")
    elif missing and what == "vote":  # labels need not have them
        messages.append(f"missing has no effect: no vote is {listing(split_names(missing))}.")
    return table, messages


def with_points(table: pd.DataFrame, columns: Iterable[str]) -> tuple[pd.DataFrame, list[str]]:
    """Replace the decimal commas of some columns by points; return the table and notes for the user.

    A column has decimal commas if all of its cells are whole numbers or numbers with a comma, and at
    least one comma does not separate thousands. One of percentages only has the numbers without signs.
    """
    notes: list[str] = []
    examples: dict[str, str] = {}
    for name in columns:
        texts = [v for v in table[name].unique() if isinstance(v, str) and canonical(v) is not None]
        plain = list(map(str.strip, texts))
        commas = [v for v in plain if COMMA.fullmatch(v) and not THOUSANDS.fullmatch(v)]
        if texts and all(map(PERCENT.fullmatch, plain)):
            numbers = {v: v.strip(" \t%").replace(",", ".") for v in texts}
            notes.append(
                f"Column {name!r}: percentages, {texts[0]!r} is read as {numbers[texts[0]]}."
            )
        elif commas and all(COMMA.fullmatch(v) or NUMBER.fullmatch(v) for v in plain):
            numbers = {v: v.replace(",", ".") for v in texts}
            examples[name] = commas[0]
        else:
            continue
        table = table.assign(**{name: table[name].astype(object).replace(numbers)})
    if examples:
        first = next(iter(examples.values()))
        notes.append(
            f"Column {listing(examples, 20)}: decimal commas, {first!r} is read as "
            f"{canonical(first.replace(',', '.'))}."
        )
    return table, notes


def _single(table: pd.DataFrame, columns: Iterable[str]) -> tuple[pd.DataFrame, Counter[str]]:
    """Return the table with a list of one as this one, and other lists empty; and their numbers."""
    several: Counter[str] = Counter()
    for name in columns:
        column = table[name]
        lists = {v: words for v in column.unique() if (words := _list_in(v)) is not None}
        if lists:
            one = {v: words[0] if len(words) == 1 else None for v, words in lists.items()}
            several[name] = int(column.isin([v for v in lists if len(lists[v]) != 1]).sum())
            table = table.assign(
                **{name: column.astype(object).map(lambda v, one=one: one.get(v, v))}
            )
    return table, +several


def _list_in(value: object) -> list[Any] | None:
    """Return the list of words or numbers that a cell has as JSON, None if it has another value."""
    text = value.strip() if isinstance(value, str) else ""
    if not (text.startswith("[") and text.endswith("]")):
        return None
    try:
        words = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return None if any(isinstance(each, list | dict) for each in words) else words


def without(
    table: pd.DataFrame, columns: Iterable[str], missing: str | None
) -> tuple[pd.DataFrame, Counter[Hashable]]:
    """Empty the cells whose values mean no vote; return the table and the count of each value.

    An option has these values, separated by commas.
    """
    no_vote = {folded(canonical(name)) for name in split_names(missing or "")}
    counts: Counter[Hashable] = Counter()
    for name in columns if no_vote else ():
        values = table[name].dropna().unique()
        matches = {value for value in values if folded(canonical(value)) in no_vote}
        if matches:
            column = table[name].astype(object)
            counts.update(map(canonical, column[column.isin(matches)]))
            table = table.assign(**{name: column.mask(column.isin(matches), None)})
    return table, counts
