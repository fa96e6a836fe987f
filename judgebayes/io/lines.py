"""Lines of a CSV file against the rows that were read from it: none may be lost in silence.

A quotation mark without its partner makes many rows one: all lines up to the next quotation mark become
one cell. So lines are counted, cells that hold line breaks are looked at, and both must add up.
"""

import csv
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.votes.classes import canonical, listing

__all__ = ["Spans", "broken_cells", "line_ends", "reconciled"]

FEW_VALUES = 20
"""A column with at most so many values, of votes or judges say, tells whether a text is a row."""


@dataclass(frozen=True)
class Spans:
    """The first and last line of each row that covers several, by row."""

    lines: dict[int, tuple[int, int]]

    def __deepcopy__(self, memo: dict[int, Any]) -> "Spans":
        """Return itself: pandas copies the attributes of a table with every column."""
        return self

    def of(self, row: object) -> str:
        """Return for example ` (lines 3 to 9)`; nothing for a row on one line."""
        span = self.lines.get(int(row)) if isinstance(row, int | np.integer) else None
        return f" (lines {span[0]} to {span[1]} of the file)" if span else ""


def _blank(line: str, separator: str) -> bool:
    """Tell whether a line holds nothing but space, tabs too unless they separate cells."""
    return not line.strip(" \r\n" if separator == "\t" else " \t\r\n")


def line_ends(path: Path) -> int:
    """Return how many lines a file of UTF-8 or other ASCII-like text has, blank ones included."""
    ends, last = 0, b""
    with path.open("rb") as file:
        while part := file.read(2**20):
            ends += part.count(b"\n") + part.count(b"\r") - part.count(b"\r\n")
            ends -= last == b"\r" and part[:1] == b"\n"
            last = part[-1:]
    return ends + (last not in (b"", b"\n", b"\r"))


def broken_cells(table: pd.DataFrame) -> dict[str, pd.Series]:
    """Return the cells that hold line breaks, by column; their index is the row's place."""
    broken = {}
    for place, name in enumerate(table.columns):
        column = table.iloc[:, place].reset_index(drop=True)
        if pd.api.types.is_numeric_dtype(column.dtype):
            continue
        hit = column.astype(str).str.contains("[\r\n]", regex=True) & column.notna()
        if hit.any():
            broken[name] = column[hit]
    return broken


def reconciled(
    table: pd.DataFrame,
    broken: dict[str, pd.Series],
    text: Iterable[str],
    *,
    header_lines: int,
    separator: str,
    ignored: Iterable[str],
    name: str,
) -> tuple[Spans, list[str]]:
    """Return which lines the rows with line breaks cover, and a sentence that counts them.

    Parameters
    ----------
    table, broken
        All rows that were read, in order, and what `broken_cells` returns of them.
    text
        The lines of the file.
    header_lines
        How many lines stand above the first row.
    ignored
        Columns whose cells may hold anything.
    name
        Of the file.

    Raises
    ------
    JudgeBayesError
        If a cell holds lines that look like rows of the table, or the lines do not add up.
    """
    breaks = np.zeros(len(table), int)
    for cells in broken.values():
        breaks[cells.index] += [len(_lines(cell)) - 1 for cell in cells]
    spans, rest = _spans(list(text)[header_lines:], breaks, header_lines, separator)
    by_row = Spans({int(table.index[place]): span for place, span in spans.items()})
    for column, cells in broken.items():
        if column not in ignored:
            _refuse_rows_in_cells(table, column, cells, spans, separator, name)
    if rest:
        raise JudgeBayesError(
            f"The rows read from {name!r} and its lines do not add up: {rest:+,} lines. Look for "
            "quotation marks that are not paired."
        )
    if not breaks.any():
        return by_row, []
    columns = listing(broken, 20)
    return by_row, [
        f"{len(table):,} rows on {len(table) + sum(breaks):,} lines of {name}: {sum(breaks):,} line "
        f"breaks stand inside cells of {columns}."
    ]


def _spans(
    lines: list[str], breaks: np.ndarray, above: int, separator: str
) -> tuple[dict[int, tuple[int, int]], int]:
    """Return the lines of each row with line breaks, and how many lines are left in the end."""
    at, spans = 0, {}
    for place, inner in enumerate(breaks.tolist()):
        while at < len(lines) and _blank(lines[at], separator):
            at += 1
        if inner:
            spans[place] = (above + at + 1, above + at + 1 + inner)
        at += 1 + inner
    return spans, sum(not _blank(line, separator) for line in lines[at:]) - max(at - len(lines), 0)


def _refuse_rows_in_cells(
    table: pd.DataFrame,
    column: str,
    cells: pd.Series,
    spans: dict[int, tuple[int, int]],
    separator: str,
    name: str,
) -> None:
    whole = np.ones(len(table), bool)
    whole[list(spans)] = False
    known = {
        place: set(map(canonical, values))
        for place, other in enumerate(table.columns)
        if other != column
        and len(values := table.iloc[whole, place].dropna().unique()) <= FEW_VALUES
    }
    if not known or not whole.any():
        return
    for place, cell in cells.items():
        rows = sum(1 for row in _as_rows(cell, separator) if _is_row(row, table.shape[1], known))
        if rows:
            first, last = spans[int(place)]
            raise JudgeBayesError(
                f"Lines {first} to {last} of {name!r} were read as one cell of column {column!r}, and "
                f"{rows:,} of them look like rows of their own: a quotation mark is not paired. Mend "
                f"it; if the text is as it should be, leave the column out: --ignore {column}."
            )


def _as_rows(cell: str, separator: str) -> Iterator[list[str]]:
    for line in _lines(cell)[1:]:
        if separator in line:
            yield next(csv.reader([line], delimiter=separator, quoting=csv.QUOTE_NONE))


def _is_row(row: list[str], cells: int, known: dict[int, set[Hashable | None]]) -> bool:
    return len(row) == cells and all(
        canonical(row[place]) in values for place, values in known.items()
    )


def _lines(cell: str) -> list[str]:
    return cell.replace("\r\n", "\n").replace("\r", "\n").split("\n")
