"""What the readers of other tools' files share: their records, names and values.

Who gave a score: a person or a program.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from judgebayes.errors import JudgeBayesError
from judgebayes.io.options import Files, Layout
from judgebayes.io.records import read_json, read_lines
from judgebayes.io.tables import header_of, read_table

WRAPPED = ("testCases", "test_results", "data", "events", "records")
"""Keys of a JSON document whose list contains the records."""
LINES = (".jsonl", ".ndjson")


def first_record(path: Path) -> Mapping[str, Any]:
    """Return the first record of a file: of a table the names of its columns, each with None.

    Empty if there is none, or if the file is a table that cannot be read: who reads it says why.

    Raises
    ------
    JudgeBayesError
        If a JSON file cannot be read.
    """
    if not path.is_file():
        return {}
    suffix = _suffix(path)
    if suffix == ".json":
        return next((each for each in _unwrapped(read_json(path)) if isinstance(each, dict)), {})
    if suffix not in LINES:
        return dict.fromkeys(header_of(path))
    try:
        return next((record for _, record in read_lines(path)), {})
    except JudgeBayesError:
        return {}


def records_of(given: Files) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the records of JSON, JSONL and table files, each with its place in words.

    Raises
    ------
    JudgeBayesError
        If a file cannot be read, or a record is not an object.
    """
    for file in given.files:
        what = repr(str(file))
        if _suffix(file) == ".json":
            for number, record in enumerate(_unwrapped(read_json(file))):
                where = f"Record {number} of {what}"
                if not isinstance(record, dict):
                    raise JudgeBayesError(f"{where} is not an object but {type(record).__name__}.")
                yield where, record
        elif _suffix(file) in LINES:
            yield from ((f"Line {number} of {what}", record) for number, record in read_lines(file))
        else:
            table = read_table(file, Layout(as_text=True))
            for number, cells in zip(table.index, table.to_dict("records"), strict=True):
                yield f"Row {number} of {what}", {n: c for n, c in cells.items() if c == c}


def _suffix(path: Path) -> str:
    """Return the suffix of a file, without that of its compression."""
    return Path(path.stem if path.suffix.lower() == ".gz" else path.name).suffix.lower()


def _unwrapped(value: Any) -> list[Any]:
    """Return the records in the value of a JSON file."""
    if isinstance(value, dict):
        value = next((value[n] for n in WRAPPED if isinstance(value.get(n), list)), value)
    return value if isinstance(value, list) else [value]
