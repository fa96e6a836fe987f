"""What the readers of other tools' files share: their records, names and values.

Who gave a score: a person or a program.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from judgebayes.errors import JudgeBayesError
from judgebayes.io.columns import ROLES, like_a_person
from judgebayes.io.gathering import MAX_CLASSES, Name, Row
from judgebayes.io.options import Files, Layout, split_names
from judgebayes.io.records import LINES, parse_json, read_json, read_lines, suffix_of
from judgebayes.io.tables import header_of, read_table
from judgebayes.votes.classes import canonical, listing, written

WRAPPED = ("testCases", "conversationalTestCases", "test_results", "data", "events", "records")
"""Keys of a JSON document whose lists contain the records."""
ANSWERS = ("choices", "rating", "number", "selected", "value", "label", "score")
"""Keys of an object whose value is the answer."""
OTHER = {"A": "B", "B": "A"}
"""The other side of a pair."""


def first_record(path: Path) -> Mapping[str, Any]:
    """Return the first record of a file: of a table the names of its columns, each with None.

    Empty if there is none, or if the file cannot be read: who reads it says why.
    """
    if not path.is_file():
        return {}
    if suffix_of(path) not in (".json", *LINES):
        return dict.fromkeys(header_of(path))
    try:
        return next((record for _, record in records_in(path)), {})
    except JudgeBayesError:
        return {}


def records_of(given: Files) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the records of all files, as `records_in` does."""
    for file in given.files:
        yield from records_in(file)


def records_in(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the records of a JSON, JSONL or table file, each with its place in words.

    Raises
    ------
    JudgeBayesError
        If the file cannot be read, or a record is not an object.
    """
    what = repr(str(file))
    if suffix_of(file) == ".json":
        for number, record in enumerate(_unwrapped(read_json(file))):
            where = f"Record {number} of {what}"
            if not isinstance(record, dict):
                raise JudgeBayesError(f"{where} is not an object but {type(record).__name__}.")
            yield where, record
    elif suffix_of(file) in LINES:
        yield from ((f"Line {number} of {what}", record) for number, record in read_lines(file))
    else:
        table = read_table(file, Layout(as_text=True))
        for number, cells in zip(table.index, table.to_dict("records"), strict=True):
            row = {str(name): None if cell != cell else cell for name, cell in cells.items()}
            yield f"Row {number} of {what}", row


def _unwrapped(value: Any) -> list[Any]:
    """Return the records in the value of a JSON file."""
    if isinstance(value, dict):
        lists = [value[name] for name in WRAPPED if isinstance(value.get(name), list)]
        value = [record for each in lists for record in each] if lists else value
    return value if isinstance(value, list) else [value]


def is_by_a_person(name: str, given: Files) -> bool:
    """Tell whether a score is by a person: by the words of its name, or because it is the label."""
    return like_a_person(name) or name in split_names(given.options.label or "")


def score_rows(
    item: Name, scores: Mapping[str, Any], given: Files, missing: str = "no score"
) -> Iterator[Row]:
    """Yield a record for each score of an item, by a judge or a person of this name."""
    for name, value in scores.items():
        vote, reason = answer_in(value)
        person = name if is_by_a_person(name, given) else None
        yield Row(item, name, vote, missing if reason == "no answer" else reason, person=person)


def one_question(rows: Iterable[Row], given: Files) -> Iterator[Row]:
    """Yield the records of the named question, or of the only one whose answers are no free texts.

    The judge of a record is a pair: of the judge, and of the question. Records of other questions are
    left out.

    Raises
    ------
    JudgeBayesError
        If there are several questions and none is named, or the named one was not answered.
    """
    every, answers = list(rows), dict[str, set[str | int | float]]()
    for row in every:
        if row.vote is not None:
            answers.setdefault(row.judge[1], set()).add(row.vote)
    few = [
        question
        for question, votes in answers.items()
        if len(votes) <= MAX_CLASSES or not any(isinstance(vote, str) for vote in votes)
    ]
    label = None if given.options.label == "none" else given.options.label
    named = given.options.vote or label or (few[0] if len(few) == 1 else None)
    if answers and named not in answers:
        raise JudgeBayesError(
            f"{str(given.path)!r} has answers to the questions {listing(answers, 20)}: name the one to "
            "read with --vote NAME."
        )
    for row in every:
        judge, question = row.judge[0], row.judge[1]
        other = None if question == named else f"an answer to another question, {question}"
        who = question if row.person is not None else judge
        yield replace(row, judge=who, dropped=row.dropped or other)


def answer_in(value: Any) -> tuple[str | int | float | None, str]:
    """Return the word or number that is the answer in a cell, and why there is none."""
    if isinstance(value, str) and value.startswith(("[", "{")):
        try:
            value = parse_json(value, "")
        except JudgeBayesError:
            return value, ""
    if isinstance(value, dict):
        value = next((value[name] for name in ANSWERS if name in value), None)
    if isinstance(value, list):
        if len(value) != 1:
            return None, "several answers" if value else "no answer"
        value = value[0]
    infinite = value in (math.inf, -math.inf)
    return plain(value), "an infinite number" if infinite else "no answer"


def plain(value: Any) -> str | int | float | None:
    """Return a word or a finite number in plain form, None for anything else."""
    each = canonical(value) if isinstance(value, str | int | float) else None
    return None if each in (math.inf, -math.inf) else each  # type: ignore[return-value]


def at(value: Any, *keys: str) -> Any:
    """Return what objects within objects have under some keys, None if there is no such thing."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def names_of(
    records: Sequence[Mapping[str, Any]], keys: Sequence[str] = ROLES["item"]
) -> list[str] | None:
    """Return a name for each record: the first of some keys with another value in each of them."""
    for key in keys:
        names = [name_in(record, key) for record in records]
        if None not in names and len(set(names)) == len(records):
            return [*map(str, names)]
    return None


def objects(record: Mapping[str, Any], key: str, where: str) -> list[dict[str, Any]]:
    """Return the objects in a list of a record, none if it has no such list.

    Raises
    ------
    JudgeBayesError
        If it is no list of objects.
    """
    value = record.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise JudgeBayesError(f"{where} has {key} that are not a list of objects.")
    return value


def an_object(record: Mapping[str, Any], key: str, where: str) -> dict[str, Any]:
    """Return the object in a field of a record (in a table, its JSON), empty if there is none.

    Raises
    ------
    JudgeBayesError
        If the field has another value.
    """
    value = record.get(key)
    if isinstance(value, str):
        value = parse_json(value, f"{key} of {where}")
    if value is not None and not isinstance(value, dict):
        raise JudgeBayesError(f"{where} has {key} that is no object but {type(value).__name__}.")
    return value or {}


def name_in(record: Mapping[str, Any], *keys: str) -> str | None:
    """Return the id or name in the first of some fields that has one, None if none has."""
    values = [record.get(key) for key in keys]
    names = (written(value) for value in values if isinstance(value, str | int | float))
    return next((name for name in names if name), None)


def plain_keys(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with its keys in lower case, without spaces, hyphens and underscores."""
    return {re.sub(r"[\s_-]", "", name).lower(): value for name, value in record.items()}
