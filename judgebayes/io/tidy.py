"""A table with a row per vote, or a folder with such a table for each judge."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.io.cells import with_points
from judgebayes.io.columns import ROLES, guess_columns
from judgebayes.io.imported import Imported, Row, gather
from judgebayes.io.options import Options
from judgebayes.io.records import find_files
from judgebayes.io.tables import notes_of, read_table
from judgebayes.votes.classes import canonical, listing, written
from judgebayes.votes.columns import require_columns
from judgebayes.votes.slots import ORDERS

__all__ = ["TABLES", "cell", "read_tidy", "told_columns", "why_none"]

TABLES = (
    *("*.csv", "*.tsv", "*.jsonl", "*.ndjson", "*.parquet"),
    *("*.csv.gz", "*.tsv.gz", "*.jsonl.gz"),
)
"""Names of files that hold tables."""


def read_tidy(path: Path, options: Options = Options()) -> Imported:  # noqa: B008
    """Return the votes of a tidy table; columns are guessed by their names.

    Without a column of judges, a file's name is its judge's. Crowd-sourcing tools call the item
    `task`, the judge `worker` and the vote `label`: such a table is read so. A cell that is empty,
    NaN, None or N/A is a missing vote, and which of these is said.

    Raises
    ------
    JudgeBayesError
        If a file cannot be read, or a needed column cannot be told.
    """
    files = find_files(path, TABLES, "table")
    rows: list[Row] = []
    notes: dict[str, None] = {}
    for file in files:
        table = read_table(file, options.layout())
        notes |= dict.fromkeys(notes_of(table))
        columns, told = told_columns(table, _given(table, options))
        table, commas = with_points(table, filter(None, (columns["vote"], columns["label"])))
        notes |= dict.fromkeys((*told, *commas))
        rows += _rows(table, columns, file, many=len(files) > 1)
    return gather(rows, str(path), missing=options.missing, notes=list(notes))


def _rows(
    table: pd.DataFrame,
    columns: dict[str, str | None],
    file: Path,
    many: bool,
) -> Iterator[Row]:
    alone = file.name.split(".")[0] if many else "judge"
    for place, record in zip(table.index, table.to_dict("records"), strict=True):
        item = written(record[columns["item"]])
        name = alone if columns["judge"] is None else written(record[columns["judge"]])
        if item is None or name is None:
            raise JudgeBayesError(
                f"Row {place} of {str(file)!r} has no {'item' if item is None else 'judge'}; every vote "
                "names its item and its judge."
            )
        yield Row(
            item,
            name,
            cell(record, columns["vote"]),
            why_none(record[columns["vote"]]),
            sample=cell(record, columns["sample"]),
            order=cell(record, columns["order"]),
            label=cell(record, columns["label"]),
        )


def _given(table: pd.DataFrame, options: Options) -> dict[str, str | None]:
    """Return the columns that were named, or that crowd-sourcing tools would mean."""
    roles = ("item", "judge", "vote", "sample", "order", "label")
    given: dict[str, str | None] = {role: getattr(options, role) for role in roles}
    names = set(table.columns)
    if "worker" in names and "task" in names and given["item"] is None:
        given["item"] = "task"
    voted = {name.casefold() for name in names} & set(ROLES["vote"])
    if {"worker", "label"} <= names and given["vote"] is None and not voted:
        given |= {"vote": "label", "label": given["label"] or "none"}
    return given


def told_columns(
    table: pd.DataFrame, given: dict[str, str | None]
) -> tuple[dict[str, str | None], list[str]]:
    """Return the column of each role, and what to say of them.

    A column that was only guessed to be the presentation order must hold orders.

    Raises
    ------
    JudgeBayesError
        If a given column does not exist, or no item or vote column can be told.
    """
    columns = guess_columns(table.columns, given)
    require_columns(table, columns)
    notes = []
    order = columns["order"]
    if order is not None and given["order"] is None:
        seen = [str(canonical(value)) for value in table[order].dropna().unique()]
        if not {value.casefold() for value in seen} <= set(ORDERS):
            columns["order"] = None
            notes = [
                f"Column {order!r} holds {listing(seen, 3)}, no presentation orders (AB, BA): left out."
            ]
    used = [f"{role} = {name!r}" for role, name in columns.items() if name is not None]
    return columns, [f"Columns: {', '.join(used)}.", *notes]


def why_none(value: object) -> str:
    """Return why a cell holds no vote, if it holds none."""
    word = isinstance(value, str) and value.strip()
    return f"cell {word!r}" if word else "empty cell"


def cell(record: dict[Any, Any], column: str | None) -> Any:
    """Return what a cell says: text stripped, whole numbers as int, None where it is empty."""
    return None if column is None else canonical(record[column])
