"""A table with a row per vote, or a folder with one such table per judge."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.io.cells import Coded, coded_column, constant, with_points
from judgebayes.io.columns import (
    COPY,
    ROLES,
    guess_columns,
    join_judge,
    judge_of_criteria,
    without_copies,
)
from judgebayes.io.gathering import Imported, Records, gather, stacked_records
from judgebayes.io.options import Options
from judgebayes.io.records import find_files
from judgebayes.io.tables import notes_of, read_table
from judgebayes.votes.classes import canonical, listing, written
from judgebayes.votes.columns import require_columns
from judgebayes.votes.slots import ORDERS

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
    records_of: dict[Path, Records] = {}
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
        records_of[file] = _records(table, columns, file, many=len(files) > 1)
    records, file_notes = _judges_of_files(records_of)
    return gather(records, str(path), missing=options.missing, notes=[*notes, *file_notes])


def _judges_of_files(records_of: dict[Path, Records]) -> tuple[Records, list[str]]:
    """Return the records of all files, and a note if a judge votes on an item in several files.

    Files whose names differ in a number only contain repeated votes; the names of others say by which
    rubric or prompt a judge voted, so that it is another judge in each.
    """
    records = stacked_records(list(records_of.values()))
    if len(records_of) == 1:
        return records, []
    file = np.repeat(np.arange(len(records_of)), [len(own) for own in records_of.values()])
    votes = pd.DataFrame({"item": records.item.code, "judge": records.judge.code, "file": file})
    votes = votes.drop_duplicates()
    if not votes.duplicated(["item", "judge"]).any():
        return records, []
    stems = [path.name.split(".")[0] for path in records_of]
    if len({re.sub(r"\d+", "", stem) for stem in stems}) == 1:
        return records, [
            "Judges vote on the same items in several files, whose names differ in a number only: these "
            "are repeated votes."
        ]
    pairs, judge_in_file = pd.factorize(records.judge.code * len(stems) + file)
    names = [
        f"{records.judge.values[pair // len(stems)]} / {stems[pair % len(stems)]}"
        for pair in judge_in_file.tolist()
    ]
    named = coded_column(pd.Series(names, dtype=object).take(pairs), written)
    return replace(records, judge=named), [
        "Judges vote on the same items in several files: a judge counts as another judge in each, such "
        f"as {names[0]!r}. For repeated votes, name the files RUN1, RUN2, ... or number the votes "
        "in a column."
    ]


def _records(
    table: pd.DataFrame, columns: dict[str, str | None], file: Path, *, many: bool
) -> Records:
    """Return the records of a table; a record that is identical to an earlier one is dropped."""
    judge_of_file = file.name.split(".")[0] if many else "judge"
    rows, nothing = len(table), constant(None, len(table))
    item = coded_column(table[str(columns["item"])], written)
    judge = (
        constant(judge_of_file, rows)
        if columns["judge"] is None
        else coded_column(table[columns["judge"]], written)
    )
    nameless = ~(item.present() & judge.present())
    if nameless.any():
        row = int(np.argmax(nameless))
        raise JudgeBayesError(
            f"Row {table.index[row]} of {str(file)!r} has no "
            f"{'item' if item.code[row] < 0 else 'judge'}; every vote needs both."
        )
    vote = table[str(columns["vote"])]
    votes = coded_column(vote, canonical)
    copies = np.zeros(rows, bool)
    if _repeats(item, judge, votes):
        kept = without_copies(table, columns, repeats=False)[0].index
        copies = ~table.index.isin(kept)
    plain = {
        role: nothing
        if columns[role] is None
        else coded_column(table[columns[role]], canonical).emptied(copies)
        for role in ("sample", "order", "label")
    }
    return Records(
        item,
        judge,
        votes.emptied(copies),
        coded_column(vote, why_none),
        Coded(np.where(copies, 0, -1), (COPY,)),
        plain["sample"],
        plain["order"],
        nothing,
        plain["label"],
    )


def _repeats(*columns: Coded) -> bool:
    """Tell whether two rows are equal in all columns."""
    return bool(pd.DataFrame({n: c.code for n, c in enumerate(columns)}).duplicated().any())


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
