"""A table with a row per vote, or a folder with one such table per judge."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.io.cells import with_points
from judgebayes.io.columns import ROLES, guess_columns
from judgebayes.io.copies import join_judge, judge_of_criteria, without_copies
from judgebayes.io.imported import Imported, Row, gather
from judgebayes.io.options import Options
from judgebayes.io.records import find_files
from judgebayes.io.tables import notes_of, read_table
from judgebayes.votes.classes import canonical, listing, written
from judgebayes.votes.columns import require_columns
from judgebayes.votes.slots import ORDERS

__all__ = ["TABLES", "cell", "columns_by_role", "read_tidy", "why_none"]

TABLES = (
    *("*.csv", "*.tsv", "*.jsonl", "*.ndjson", "*.parquet"),
    *("*.csv.gz", "*.tsv.gz", "*.jsonl.gz"),
)
"""File name patterns of tables."""


def read_tidy(path: Path, options: Options = Options()) -> Imported:  # noqa: B008
    """Return the votes of a tidy table; column roles are guessed from their names.

    Without a judge column, the file name is the judge's name. The names of crowd-sourcing tools (`task`,
    `worker`, `label` for item, judge, vote) are recognised. A cell that is empty, NaN, None or N/A is a
    missing vote; the account of missing votes says which.

    Raises
    ------
    JudgeBayesError
        If a file cannot be read, or a required column is not recognised.
    """
    files = find_files(path, TABLES, "table")
    rows_of: dict[str, list[Row]] = {}
    notes: dict[str, None] = {}
    for file in files:
        table = read_table(file, options.layout())
        notes |= dict.fromkeys(notes_of(table))
        columns, column_notes = columns_by_role(table, _named_columns(table, options))
        by_criteria = judge_of_criteria(table, columns) if options.judge is None else None
        if by_criteria is not None:
            columns["judge"], message = by_criteria
            table = join_judge(table, columns["judge"])
            column_notes.append(message)
        table, commas = with_points(table, filter(None, (columns["vote"], columns["label"])))
        notes |= dict.fromkeys((*column_notes, *commas))
        kept = without_copies(table, columns, repeats=False)[0].index
        copies = set(table.index.difference(kept))
        rows_of[str(file)] = list(_rows(table, columns, file, copies, many=len(files) > 1))
    rows, file_notes = _judges_of_files(rows_of)
    return gather(rows, str(path), missing=options.missing, notes=[*notes, *file_notes])


def _judges_of_files(rows_of: dict[str, list[Row]]) -> tuple[list[Row], list[str]]:
    """Return the rows of all files, and a note if a judge votes on an item in several files.

    Files whose names differ in a number only contain repeated votes; the names of others say by which
    rubric or prompt a judge voted, so that it is another judge in each.
    """
    rows = [row for own in rows_of.values() for row in own]
    votes = [{(row.item, row.judge) for row in own} for own in rows_of.values()]
    if sum(map(len, votes)) == len(set().union(*votes)):
        return rows, []
    stems = {file: Path(file).name.split(".")[0] for file in rows_of}
    if len({re.sub(r"\d+", "", stem) for stem in stems.values()}) == 1:
        return rows, [
            "Judges vote on the same items in several files, whose names differ in a number only: these "
            "are repeated votes."
        ]
    named = [
        replace(row, judge=f"{row.judge} / {stems[file]}")
        for file, own in rows_of.items()
        for row in own
    ]
    return named, [
        "Judges vote on the same items in several files: a judge counts as another judge in each, such "
        f"as {named[0].judge!r}. For repeated votes, name the files RUN1, RUN2, ... or number the votes "
        "in a column."
    ]


def _rows(
    table: pd.DataFrame,
    columns: dict[str, str | None],
    file: Path,
    copies: set[Any],
    many: bool,
) -> Iterator[Row]:
    judge_of_file = file.name.split(".")[0] if many else "judge"
    for row_number, record in zip(table.index, table.to_dict("records"), strict=True):
        item = written(record[columns["item"]])
        name = judge_of_file if columns["judge"] is None else written(record[columns["judge"]])
        if item is None or name is None:
            raise JudgeBayesError(
                f"Row {row_number} of {str(file)!r} has no {'item' if item is None else 'judge'}; every "
                "vote needs both."
            )
        if row_number in copies:
            yield Row(item, name, dropped="identical to an earlier record")
            continue
        yield Row(
            item,
            name,
            cell(record, columns["vote"]),
            why_none(record[columns["vote"]]),
            sample=cell(record, columns["sample"]),
            order=cell(record, columns["order"]),
            label=cell(record, columns["label"]),
        )


def _named_columns(table: pd.DataFrame, options: Options) -> dict[str, str | None]:
    """Return the column names from the options, or those that crowd-sourcing tools use."""
    roles = ("item", "judge", "vote", "sample", "order", "label")
    named: dict[str, str | None] = {role: getattr(options, role) for role in roles}
    names = set(table.columns)
    if "worker" in names and "task" in names and named["item"] is None:
        named["item"] = "task"
    voted = {name.casefold() for name in names} & set(ROLES["vote"])
    if {"worker", "label"} <= names and named["vote"] is None and not voted:
        named |= {"vote": "label", "label": named["label"] or "none"}
    return named


def columns_by_role(
    table: pd.DataFrame, named: dict[str, str | None]
) -> tuple[dict[str, str | None], list[str]]:
    """Return the column of each role, and notes for the user.

    A column that was only guessed to be the presentation order counts if it contains only orders.

    Raises
    ------
    JudgeBayesError
        If a named column does not exist, or no item or vote column is recognised.
    """
    columns = guess_columns(table.columns, named)
    require_columns(table, columns)
    notes = []
    order = columns["order"]
    if order is not None and named["order"] is None:
        values = [str(canonical(value)) for value in table[order].dropna().unique()]
        if not {value.casefold() for value in values} <= set(ORDERS):
            columns["order"] = None
            notes = [
                f"Column {order!r} is left out: {listing(values, 3)} are not presentation orders "
                "(AB, BA)."
            ]
    used = [f"{role} = {name!r}" for role, name in columns.items() if name is not None]
    return columns, [f"Columns: {', '.join(used)}.", *notes]


def why_none(value: object) -> str:
    """Return the reason that is recorded if a cell contains no vote."""
    word = isinstance(value, str) and value.strip()
    return f"cell {word!r}" if word else "empty cell"


def cell(record: dict[Any, Any], column: str | None) -> Any:
    """Return the value of a cell: text stripped, whole numbers as int, None if it is empty."""
    return None if column is None else canonical(record[column])
