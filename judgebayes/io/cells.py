"""Cells of votes and labels: decimal commas, and values that mean no vote.

A column as codes into its different values, so that millions of rows cost arrays and not objects.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Int
from pandas.api.types import is_object_dtype

from judgebayes.io.options import split_names
from judgebayes.votes.classes import canonical, listing

INT64_LIMIT = 2**63
"""Whole numbers from here on do not fit into 64 bits."""
SAFE = frozenset({str, type(None)})
"""Types of cells of which equal ones are the same cell: 1, 1.0 and True are equal, but not the same."""


@dataclass(frozen=True)
class Coded:
    """The cells of a column: `values[code]`, and None where the code is -1.

    The values are different (1, 1.0 and True count as different). Some may occur in no row.
    """

    code: Int[np.ndarray, " row"]
    values: tuple[Any, ...]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.code)

    def present(self) -> Bool[np.ndarray, " row"]:
        """Return the rows that are not None."""
        return self.code >= 0

    def where(self, rows: Bool[np.ndarray, " row"]) -> "Coded":
        """Return some of the rows; values may be left that occur in none of them."""
        return self if rows.all() else Coded(self.code[rows], self.values)

    def changed(self, value_of: Callable[[Any], Hashable | None]) -> "Coded":
        """Return the cells after a function of their values; None stays None."""
        return _merged(self.code, [*map(value_of, self.values), None])

    def emptied(self, rows: Bool[np.ndarray, " row"]) -> "Coded":
        """Return the column with None in some rows."""
        return Coded(np.where(rows, -1, self.code), self.values)

    def counts(self) -> Counter[Any]:
        """Return how often each value occurs, without None, in order of appearance."""
        code, used = pd.factorize(self.code[self.present()])
        sizes = np.bincount(code, minlength=len(used)).tolist()
        return Counter({self.values[at]: n for at, n in zip(used.tolist(), sizes, strict=True)})

    def column(self) -> pd.Series:
        """Return the cells as numbers if all are numbers, else as text; None where missing."""
        some = self._used()
        if any(isinstance(value, str) for value in some.values):
            texts = np.array([*map(_text, some.values), None], dtype=object)
            return pd.Series(texts[some.code], dtype=object)
        if some.present().all() and all(abs(value) < INT64_LIMIT for value in some.values):
            return pd.Series(pd.Series(some.values).to_numpy()[some.code])
        return pd.Series(np.array([*map(float, some.values), np.nan])[some.code])

    def names(self) -> pd.Series:
        """Return a column of text, none of which is missing."""
        return pd.Series(self.values).take(self.code).reset_index(drop=True)

    def _used(self) -> "Coded":
        """Return the column with only those values that occur."""
        used = np.bincount(self.code + 1, minlength=len(self.values) + 1)[1:] > 0
        if used.all():
            return self
        place = np.append(np.cumsum(used) - 1, -1)
        return Coded(
            place[self.code], tuple(v for v, u in zip(self.values, used, strict=True) if u)
        )


def coded_column(column: pd.Series, plain: Callable[[Any], Hashable | None]) -> Coded:
    """Return a function of each cell of a column, called once for each different cell.

    `plain` is called with None for cells that are missing.
    """
    # Values of several types, such as 1 and True, would have one code; lists have none.
    if is_object_dtype(column.dtype) and not set(map(type, column.dropna())) <= SAFE:
        return coded_values(map(plain, column))
    code, different = pd.factorize(column, use_na_sentinel=True)
    return _merged(code, [*map(plain, different), plain(None)])


def coded_values(values: Iterable[Hashable | None]) -> Coded:
    """Return values, or None, as codes."""
    code_of: dict[Any, int] = {}
    code = [
        -1 if value is None else code_of.setdefault((type(value), value), len(code_of))
        for value in values
    ]
    return Coded(np.array(code, np.int32), tuple(value for _, value in code_of))


def constant(value: Hashable | None, rows: int) -> Coded:
    """Return a column that has the same value in each row."""
    if value is None:
        return Coded(np.full(rows, -1, np.int32), ())
    return Coded(np.zeros(rows, np.int32), (value,))


def stacked(columns: Sequence[Coded]) -> Coded:
    """Return several columns, one below the other."""
    starts = np.cumsum([0, *(len(column.values) for column in columns)])
    code = [
        np.where(column.code < 0, -1, column.code + start)
        for column, start in zip(columns, starts[:-1], strict=True)
    ]
    return _merged(np.concatenate(code), [*(v for c in columns for v in c.values), None])


def _merged(code: Int[np.ndarray, " row"], values: list[Any]) -> Coded:
    """Return codes into values that may be equal or None; the last value is that of the code -1."""
    different = coded_values(values)
    return Coded(different.code[code], different.values)


def _text(value: object) -> str:
    """Return a value as text, a whole number without a decimal point."""
    return str(canonical(value)) if isinstance(value, int | float) else str(value)


COMMA = re.compile(r"[+-]?\d*,\d+")
NUMBER = re.compile(r"[+-]?\d+(?:,\d+)?")
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
        messages.append(f"--missing has no effect: no vote is {listing(split_names(missing))}.")
    return table, messages


def with_points(table: pd.DataFrame, columns: Iterable[str]) -> tuple[pd.DataFrame, list[str]]:
    """Replace the decimal commas of some columns by points; return the table and notes for the user.

    A column has decimal commas if all of its cells are whole numbers or numbers with a comma, and at
    least one comma does not separate thousands.
    """
    examples: dict[str, str] = {}
    for name in columns:
        if pd.api.types.is_numeric_dtype(table[name].dtype):
            continue
        values = [v for v in table[name].unique() if isinstance(v, str)]
        written = [v for v in map(str.strip, values) if canonical(v) is not None]
        commas = [v for v in written if COMMA.fullmatch(v) and not THOUSANDS.fullmatch(v)]
        if commas and all(COMMA.fullmatch(v) or NUMBER.fullmatch(v) for v in written):
            replacements = {value: value.replace(",", ".") for value in values}
            table = table.assign(**{name: table[name].astype(object).replace(replacements)})
            examples[name] = commas[0]
    if not examples:
        return table, []
    first = next(iter(examples.values()))
    return table, [
        f"Column {listing(examples, 20)}: decimal commas, {first!r} is read as "
        f"{canonical(first.replace(',', '.'))}."
    ]


def _single(table: pd.DataFrame, columns: Iterable[str]) -> tuple[pd.DataFrame, Counter[str]]:
    """Return the table with a list of one as this one, and other lists empty; and their numbers."""
    several: Counter[str] = Counter()
    for name in columns:
        if pd.api.types.is_numeric_dtype(table[name].dtype):
            continue
        lists: dict[object, list[Any]] = {
            v: words for v in table[name].dropna().unique() if (words := _list_in(v)) is not None
        }
        if not lists:
            continue
        same = {v: v for v in table[name].dropna().unique()}
        single = {v: words[0] for v, words in lists.items() if len(words) == 1}
        column = table[name].astype(object)
        more = column.isin(set(lists) - set(single))
        several[name] += int(more.sum())
        table = table.assign(**{name: column.map({**same, **single}).mask(more, None)})
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


def casefolded(value: object) -> Hashable | None:
    """Return the value of a cell, with text in lower case."""
    plain = canonical(value)
    return plain.casefold() if isinstance(plain, str) else plain


def missing_values(missing: str | None) -> frozenset[Hashable | None]:
    """Return the values that mean no vote, from an option that separates them by commas."""
    return frozenset(map(casefolded, split_names(missing))) if missing else frozenset()


def without(
    table: pd.DataFrame, columns: Iterable[str], missing: str | None
) -> tuple[pd.DataFrame, Counter[Hashable]]:
    """Empty the cells whose values mean no vote; return the table and the count of each value."""
    no_vote = missing_values(missing)
    counts: Counter[Hashable] = Counter()
    for name in columns if no_vote else ():
        matches = {value for value in table[name].dropna().unique() if casefolded(value) in no_vote}
        if matches:
            column = table[name].astype(object)
            counts.update(map(canonical, column[column.isin(matches)]))
            table = table.assign(**{name: column.mask(column.isin(matches), None)})
    return table, counts
