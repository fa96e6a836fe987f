"""Tables of votes: a row per vote, a row per item with a column per judge, a row per raw answer."""

import re
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.io.cells import changed, with_points
from judgebayes.io.columns import (
    COPY,
    ROLES,
    guess_columns,
    join_judge,
    judge_of_criteria,
    listed_roles,
    names_of_items,
    plain_label,
    the_column,
    without_copies,
)
from judgebayes.io.options import Files, Verdicts
from judgebayes.io.tables import notes_of, read_table
from judgebayes.io.verdict import parse_verdict
from judgebayes.io.wide import check_judge_columns
from judgebayes.votes.classes import canonical, listing, written
from judgebayes.votes.columns import require_columns
from judgebayes.votes.slots import are_orders

TEXTS = (
    *("text", "response", "output", "completion", "generation"),
    *("raw", "raw_output", "raw_response", "judgment", "judgement", "answer", "content", "message"),
)
"""Names of the column of raw answers, the most likely first."""
SHORT, MOST_TRIED = 40, 200
"""The length from which texts are answers and not votes, and how many are looked at."""
PLACES = ("item", "judge", "sample", "order", "label")
"""Roles of columns that every table with a row per vote may have, beside the vote."""


def read_tidy(given: Files) -> list[pd.DataFrame | str]:
    """Return the votes of a tidy table; column roles are guessed from their names.

    Without a judge column, the file name is the judge's name. The names of crowd-sourcing tools (`task`,
    `worker`, `label` for item, judge, vote) are recognised. A cell that is empty, NaN, None or N/A is a
    missing vote; the account of missing votes says which.

    Raises
    ------
    JudgeBayesError
        If a file cannot be read, or a required column is not recognised.
    """
    records_of: dict[Path, pd.DataFrame] = {}
    notes: list[str] = []
    for file in given.files:
        table = read_table(file, given.options.layout())
        notes += notes_of(table)
        columns, column_notes = columns_by_role(table, _named_columns(table, given))
        by_criteria = judge_of_criteria(table, columns) if given.options.judge is None else None
        if by_criteria is not None:
            columns["judge"], message = by_criteria
            table = join_judge(table, columns["judge"])
            column_notes.append(message)
        table, commas = with_points(table, filter(None, (columns["vote"], columns["label"])))
        notes += [*column_notes, *commas]
        records_of[file] = _records(table, columns, file, given)
    records, file_notes = _judges_of_files(records_of)
    return [records, *notes, *file_notes]


def _judges_of_files(records_of: dict[Path, pd.DataFrame]) -> tuple[pd.DataFrame, list[str]]:
    """Return the records of all files, and a note if a judge votes on an item in several files.

    Files whose names differ in a number only contain repeated votes; the names of others say by which
    rubric or prompt a judge voted, so that it is another judge in each.
    """
    if len(records_of) == 1:
        return next(iter(records_of.values())), []
    records = pd.concat(records_of.values(), ignore_index=True)
    stems = [path.name.split(".")[0] for path in records_of]
    file = np.repeat(np.arange(len(stems)), [len(each) for each in records_of.values()])
    votes = records[["item", "judge"]].assign(file=file).drop_duplicates()
    if not votes.duplicated(["item", "judge"]).any():
        return records, []
    if len({re.sub(r"\d+", "", stem) for stem in stems}) == 1:
        return records, [
            "Judges vote on the same items in several files, whose names differ in a number only: these "
            "are repeated votes."
        ]
    named = changed(records["judge"] + " / " + np.array(stems, object)[file], written)
    return records.assign(judge=named), [
        "Judges vote on the same items in several files: a judge counts as another judge in each, such "
        f"as {named[0]!r}. For repeated votes, name the files RUN1, RUN2, ... or number the votes "
        "in a column."
    ]


def _records(
    table: pd.DataFrame, columns: dict[str, str | None], file: Path, given: Files
) -> pd.DataFrame:
    """Return the records of a table; a record that is identical to an earlier one is dropped."""
    records = _places(table, columns, file, given)
    vote = table[str(columns["vote"])]
    records["vote"], records["missing"] = changed(vote, canonical), changed(vote, why_none)
    if records.duplicated(["item", "judge", "vote"]).any():
        kept = without_copies(table, columns, repeats=False)[0].index
        copies = ~records.index.isin(kept)
        emptied = [name for name in ("vote", "sample", "order", "label") if name in records]
        records.loc[copies, emptied] = None
        records.loc[copies, "dropped"] = COPY
    return records


def _places(
    table: pd.DataFrame,
    columns: dict[str, str | None],
    file: Path,
    given: Files,
    *,
    unnamed: bool = False,
) -> pd.DataFrame:
    """Return the item, judge, sample, order and label of each row, which needs an item and a judge.

    Without a column of judges, and where its cell is empty and `unnamed`, the judge is that of the file.
    """
    cells = {
        role: changed(table[name], written if role in ("item", "judge") else canonical)
        for role in PLACES
        if (name := columns[role]) is not None
    }
    places = pd.DataFrame(cells, index=table.index)
    if columns["judge"] is None:
        places["judge"] = judge_of_file(file, given)
    elif unnamed:
        places["judge"] = places["judge"].fillna(judge_of_file(file, given))
    nameless = places[["item", "judge"]].isna()
    if nameless.to_numpy().any():
        row = nameless.any(axis=1).idxmax()
        raise JudgeBayesError(
            f"Row {row} of {str(file)!r} has no {'item' if nameless['item'][row] else 'judge'}; every "
            "vote needs both."
        )
    return places


def judge_of_file(file: Path, given: Files) -> str:
    """Return the name of the judge of a file without a column of judges."""
    return file.name.split(".")[0] if len(given.files) > 1 else "judge"


def _named_columns(table: pd.DataFrame, given: Files) -> dict[str, str | None]:
    """Return the column names from the options, or those that crowd-sourcing tools use."""
    roles = ("item", "judge", "vote", "sample", "order", "label")
    named: dict[str, str | None] = {role: getattr(given.options, role) for role in roles}
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
    if order is not None and named["order"] is None and not are_orders(table[order]):
        columns["order"] = None
        values = map(str, map(canonical, table[order].dropna().unique()))
        notes = [
            f"Column {order!r} is left out: {listing(values, 3)} are not presentation orders (AB, BA)."
        ]
    return columns, [f"Columns: {listed_roles(columns)}.", *notes]


def why_none(value: object) -> str:
    """Return the reason that is recorded if a cell contains no vote."""
    word = isinstance(value, str) and value.strip()
    return f"cell {word!r}" if word else "empty cell"


def cell(record: dict[Any, Any], column: str | None) -> Any:
    """Return the value of a cell: text stripped, whole numbers as int, None if it is empty."""
    return None if column is None else canonical(record[column])


def read_wide(given: Files) -> list[pd.DataFrame | str]:
    """Return the votes of a wide table.

    Every column is a judge, except the item and the label (`--label`, or a column whose name is clearly
    that of a label). An empty cell is a missing vote.

    Raises
    ------
    JudgeBayesError
        If the table cannot be read, no column is the item, an item has two rows, or the votes are
        -1, 0 and 1 and it is unclear whether -1 is a vote.
    """
    path, options = given.path, given.options
    table = read_table(path, options.layout())
    notes = notes_of(table)
    names = list(table.columns)
    columns = guess_columns(names, {"item": options.item, "label": options.label or "none"})
    item, label = str(columns["item"]), columns["label"]
    if options.label is None:
        label = plain_label(n for n in names if n != item)
    judges = [name for name in names if name not in (item, label)]
    if not judges:
        raise JudgeBayesError(f"{str(path)!r} has no judge columns, only the item column {item!r}.")
    require_columns(table, {"item": item, "label": label, **{name: name for name in judges}})
    table, commas = with_points(table, [*judges, *([label] if label else [])])
    check_judge_columns(table, judges, path)
    advice = " (for repeated votes, use the format tidy, with a row per vote)"
    items = names_of_items(table, item, path, advice)
    records = pd.DataFrame(
        {
            "item": np.repeat(items.to_numpy(object), len(judges)),
            "judge": np.tile(np.array(judges, object), len(table)),
            "vote": _by_row(changed(table[name], canonical) for name in judges),
            "missing": _by_row(changed(table[name], why_none) for name in judges),
            "label": None
            if label is None
            else np.repeat(changed(table[label], canonical).to_numpy(object), len(judges)),
        },
        dtype=object,
    )
    votes, labels = ({*records[name].unique()} for name in ("vote", "label"))
    if options.missing is None and -1 in votes - labels and votes <= {-1, 0, 1}:
        raise JudgeBayesError(
            f"{str(path)!r} contains -1, 0 and 1, but no empty cell. If -1 means no vote, use "
            "--set missing=-1; if it is a vote, leave one cell empty or use the format tidy."
        )
    roles = f"Columns: {listed_roles({'item': item, 'label': label})}; judges: {listing(judges)}."
    return [records, *notes, roles, *commas]


def _by_row(columns: Iterable[pd.Series]) -> np.ndarray:
    """Return the cells of several columns, row by row."""
    return np.stack([column.to_numpy(object) for column in columns], axis=1).ravel()


def read_judge_text(given: Files) -> list[pd.DataFrame | str]:
    """Return the verdicts in raw answers as votes; an answer without a verdict is a missing vote.

    A verdict names the response as shown, so `votes_as` is `shown` (with a column of orders, the votes
    still have to be mapped back).

    Raises
    ------
    JudgeBayesError
        If a file cannot be read, or the column of the answers is not recognised.
    """
    parts: list[pd.DataFrame] = []
    notes: list[str] = []
    named = {role: getattr(given.options, role) for role in PLACES}
    for file in given.files:
        table = read_table(file, given.options.layout())
        text = the_column(table, "raw answers", TEXTS, file, given.options.text, flag="text")
        columns, column_notes = columns_by_role(table.drop(columns=text), named)
        notes += [*notes_of(table), *column_notes]
        verdicts = [parse_verdict(cell, given.options.verdicts or "pair") for cell in table[text]]
        blank = [not isinstance(cell, str) or not cell.strip() for cell in table[text]]
        read = [each.value is not None for each in verdicts]
        parts.append(
            _places(table, columns, file, given, unnamed=True).assign(
                vote=[each.value for each in verdicts],
                missing=["no answer" if b else v.why for b, v in zip(blank, verdicts, strict=True)],
                level=[v.level if r else None for r, v in zip(read, verdicts, strict=True)],
                repairs=[v.repairs if r else None for r, v in zip(read, verdicts, strict=True)],
            )
        )
    return [pd.concat(parts, ignore_index=True), *notes]


def with_verdicts(table: pd.DataFrame, column: str, kind: Verdicts) -> tuple[pd.DataFrame, str]:
    """Return a table with verdicts in place of raw answers, and a sentence on how many were read."""
    texts = table[column]
    values = [parse_verdict(text, kind).value for text in texts]
    answered = sum(isinstance(text, str) and bool(text.strip()) for text in texts)
    read = sum(value is not None for value in values)
    message = (
        f"Verdicts are read from the texts in column {column!r}: {read} of {answered}; the others are "
        "missing votes."
    )
    return table.assign(**{column: values}), message


def kind_of_answers(texts: Iterable[object]) -> Verdicts | None:
    """Return the kind of verdict that most texts have, if they are answers and not votes."""
    filled = (text for text in texts if isinstance(text, str) and text.strip())
    answers = list(islice(filled, MOST_TRIED))
    if sum(map(len, answers)) <= SHORT * len(answers) and "\n" not in "".join(answers):
        return None
    kinds: tuple[Verdicts, ...] = ("pair", "valid", "score")
    shares = {
        kind: sum(parse_verdict(each, kind).value is not None for each in answers) for kind in kinds
    }
    best = max(kinds, key=lambda kind: shares[kind])
    return best if 2 * shares[best] > len(answers) else None
