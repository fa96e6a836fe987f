"""Check the lines of a CSV file against the rows read from it, so that no row is lost unnoticed.

An unpaired quotation mark merges rows: all lines up to the next quotation mark become one cell. So the
lines of the file must equal the rows plus the line breaks inside cells.
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

__all__ = ["Spans", "count_lines", "multiline_cells", "reconcile_lines"]

FEW_VALUES = 20
"""Columns with at most this many values (votes or judges, for example) show whether a text is a row."""


@dataclass(frozen=True)
class Spans:
    """The first and last line of each row that covers several lines, by row number."""

    lines: dict[int, tuple[int, int]]

    def __deepcopy__(self, memo: dict[int, Any]) -> "Spans":
        """Return the object itself: pandas copies a table's attributes with every column."""
        return self

    def of(self, row: object) -> str:
        """Return, for example, ` (lines 3 to 9 of the file)`; an empty string for a row on one line."""
        span = self.lines.get(int(row)) if isinstance(row, int | np.integer) else None
        return f" (lines {span[0]} to {span[1]} of the file)" if span else ""


def _blank(line: str, separator: str) -> bool:
    """Tell whether a line is blank (tabs count as blank unless they separate cells)."""
    return not line.strip(" \r\n" if separator == "\t" else " \t\r\n")


def count_lines(path: Path) -> int:
    """Return the number of lines of a UTF-8 (or other ASCII-compatible) file, blank ones included."""
    ends, last = 0, b""
    with path.open("rb") as file:
        while part := file.read(2**20):
            ends += part.count(b"\n") + part.count(b"\r") - part.count(b"\r\n")
            ends -= last == b"\r" and part[:1] == b"\n"
            last = part[-1:]
    return ends + (last not in (b"", b"\n", b"\r"))


def multiline_cells(table: pd.DataFrame) -> dict[str, pd.Series]:
    """Return the cells that contain line breaks, by column, indexed by the position of the row."""
    cells_of = {}
    for place, name in enumerate(table.columns):
        column = table.iloc[:, place].reset_index(drop=True)
        if pd.api.types.is_numeric_dtype(column.dtype):
            continue
        has_break = column.astype(str).str.contains("[\r\n]", regex=True) & column.notna()
        if has_break.any():
            cells_of[name] = column[has_break]
    return cells_of


def reconcile_lines(
    table: pd.DataFrame,
    multiline: dict[str, pd.Series],
    text: Iterable[str],
    *,
    header_lines: int,
    separator: str,
    ignored: Iterable[str],
    name: str,
) -> tuple[Spans, list[str]]:
    """Return the lines that rows with line breaks cover, and a sentence that counts them.

    Parameters
    ----------
    table, multiline
        All rows that were read, in order, and the result of `multiline_cells` on them.
    text
        The lines of the file.
    header_lines
        The number of lines above the first row.
    ignored
        Columns that are not checked.
    name
        The name of the file.

    Raises
    ------
    JudgeBayesError
        If a cell contains lines that look like rows of the table, or if lines and rows do not add up.
    """
    breaks = np.zeros(len(table), int)
    for cells in multiline.values():
        breaks[cells.index] += [len(_lines(cell)) - 1 for cell in cells]
    spans, surplus = _spans(list(text)[header_lines:], breaks, header_lines, separator)
    by_row = Spans({int(table.index[place]): span for place, span in spans.items()})
    for column, cells in multiline.items():
        if column not in ignored:
            _refuse_rows_in_cells(table, column, cells, spans, separator, name)
    if surplus:
        raise JudgeBayesError(
            f"The number of rows read from {name!r} does not match its number of lines "
            f"(difference: {surplus:+,} lines). Look for unpaired quotation marks."
        )
    if not breaks.any():
        return by_row, []
    columns = listing(multiline, 20)
    return by_row, [
        f"{len(table):,} rows on {len(table) + sum(breaks):,} lines of {name}: {sum(breaks):,} line "
        f"breaks are inside cells of {columns}."
    ]


def _spans(
    lines: list[str], breaks: np.ndarray, above: int, separator: str
) -> tuple[dict[int, tuple[int, int]], int]:
    """Return the lines of each row with line breaks, and the number of lines left over."""
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
    on_one_line = np.ones(len(table), bool)
    on_one_line[list(spans)] = False
    values_at = {
        place: set(map(canonical, values))
        for place, other in enumerate(table.columns)
        if other != column
        and len(values := table.iloc[on_one_line, place].dropna().unique()) <= FEW_VALUES
    }
    if not values_at or not on_one_line.any():
        return
    for place, cell in cells.items():
        rows = sum(
            1 for row in _as_rows(cell, separator) if _is_row(row, table.shape[1], values_at)
        )
        if rows:
            first, last = spans[int(place)]
            raise JudgeBayesError(
                f"Lines {first} to {last} of {name!r} were read as one cell of column {column!r}, "
                f"and {rows:,} of them look like separate rows: a quotation mark is probably "
                "unpaired. Correct it. If the text is correct, ignore the column: --ignore "
                f"{column}."
            )


def _as_rows(cell: str, separator: str) -> Iterator[list[str]]:
    for line in _lines(cell)[1:]:
        if separator in line:
            yield next(csv.reader([line], delimiter=separator, quoting=csv.QUOTE_NONE))


def _is_row(row: list[str], cells: int, values_at: dict[int, set[Hashable | None]]) -> bool:
    return len(row) == cells and all(
        canonical(row[place]) in values for place, values in values_at.items()
    )


def _lines(cell: str) -> list[str]:
    return cell.replace("\r\n", "\n").replace("\r", "\n").split("\n")
