"""What the readers of other tools' files share: their records, names and values."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from judgebayes.errors import JudgeBayesError
from judgebayes.io.columns import ROLES
from judgebayes.io.options import Files, Layout
from judgebayes.io.records import LINES, parse_json, read_json, read_lines, suffix_of
from judgebayes.io.tables import header_of, read_table
from judgebayes.votes.classes import canonical, written

WRAPPED = (
    "testCases",
    "conversationalTestCases",
    "test_results",
    "data",
    "events",
    "records",
    "results",
)
"""Keys of a JSON document whose lists contain the records."""
ANSWERS = ("choices", "rating", "number", "selected", "value", "label", "score")
"""Keys of an object whose value is the answer."""


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
    if isinstance(at(value, "results", "results"), list):  # of promptfoo
        value = value["results"]["results"]
    if isinstance(value, dict):
        fields = [value[name] for name in WRAPPED if isinstance(value.get(name), list)]
        lists = [own for own in fields if all(isinstance(each, dict) for each in own)]
        value = [record for each in lists for record in each] if lists else value
    return value if isinstance(value, list) else [value]


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
