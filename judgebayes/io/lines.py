"""Rows of a CSV file that an unpaired quotation mark merges into one cell: no vote is lost unnoticed."""

import csv
from collections.abc import Collection, Iterator

import pandas as pd

from judgebayes.errors import JudgeBayesError

FEW_VALUES = 20
"""Columns with at most this many values (votes or judges, for example) show whether a text is a row."""


def refuse_merged_rows(
    table: pd.DataFrame, separator: str, ignored: Collection[str], name: str
) -> None:
    """Refuse a table of texts with a cell whose lines look like rows of the table.

    Parameters
    ----------
    table
        All rows that were read; the index is the number of the row.
    separator
        What separates the cells.
    ignored
        Columns that are not checked.
    name
        The name of the file.

    Raises
    ------
    JudgeBayesError
        For the first such cell.
    """
    breaks = {place: rows for place in range(table.shape[1]) if (rows := _broken(table, place))}
    if not breaks:
        return
    on_one_line = table.drop(index=[row for rows in breaks.values() for row in rows])
    values_at = {
        place: values
        for place in range(table.shape[1])
        if 0 < len(values := set(on_one_line.iloc[:, place].dropna().unique())) <= FEW_VALUES
    }
    for place, rows in breaks.items():
        column = table.columns[place]
        known = {at: values for at, values in values_at.items() if at != place}
        for row in rows if known and column not in ignored else ():
            lines = _as_rows(str(table.iloc[:, place][row]), separator)
            merged = sum(_is_row(cells, table.shape[1], known) for cells in lines)
            if merged:
                raise JudgeBayesError(
                    f"Row {row} of {name!r} has a cell of column {column!r} with {merged:,} lines that "
                    "look like separate rows: a quotation mark is probably unpaired. Correct it. If "
                    f"the text is correct, ignore the column: --ignore {column}."
                )


def _broken(table: pd.DataFrame, place: int) -> list[int]:
    """Return the numbers of the rows whose text in a column has line breaks."""
    import pyarrow as pa
    import pyarrow.compute as pc

    cells = pa.array(table.iloc[:, place], pa.string(), from_pandas=True)
    broken = pc.match_substring_regex(cells, "[\r\n]").fill_null(False)
    return table.index[broken.to_numpy(zero_copy_only=False)].tolist()


def _as_rows(cell: str, separator: str) -> Iterator[list[str]]:
    for line in cell.splitlines()[1:]:
        if separator in line:
            yield next(csv.reader([line], delimiter=separator, quoting=csv.QUOTE_NONE))


def _is_row(cells: list[str], width: int, values_at: dict[int, set[str]]) -> bool:
    return len(cells) == width and all(cells[at] in values for at, values in values_at.items())
