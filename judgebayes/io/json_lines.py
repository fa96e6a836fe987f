"""The records of a JSONL file as a table, and JSON in a judge's answer.

Checks before other files are read are here, too: rows of a CSV file that an unpaired quotation mark
merges into one cell (no vote is lost unnoticed), and the size of a Parquet file in memory (a few bytes
can stand for many cells).

**In an answer**, JSON is in a code fence, between sentences, with trailing commas. Only what can be
read in one way is read. A text that is cut off is not completed, quotes are not added, and an object
that repeats a name is not read.
"""

import csv
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.io.records import unique_fields

MAX_LENGTH = 1_000_000
"""Only the beginning of a longer text is searched."""
WORK = 4_000_000
"""Characters that attempts may read in vain, so that a text of brackets costs no more than a second."""
NESTED = 20_000
"""What an attempt counts that ended because of its nesting."""
DECODER = json.JSONDecoder(object_pairs_hook=unique_fields)

_OPENING = re.compile(r"[{\[]")
_STRING_OR_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])', re.DOTALL)
_AT_COMMA = re.compile(r",?\s*[}\]]")


@dataclass(frozen=True)
class Found:
    """A JSON object or list in a text."""

    value: Any
    start: int
    end: int
    """`text[start:end]` is the JSON."""


def find_json(text: str) -> list[Found]:
    """Return the JSON of a text: all of the text, or else the objects and lists in it, in order.

    Parts of an object or list are not returned, unless it is damaged.

    >>> [found.value for found in find_json('Here: {"line": 3,} Done.')]
    [{'line': 3}]
    """
    try:
        return [Found(DECODER.decode(text.strip()), 0, len(text))]
    except (ValueError, RecursionError):
        return list(_pieces(text[:MAX_LENGTH]))


def _pieces(text: str) -> Iterator[Found]:
    place, work = 0, 0
    while (opening := _OPENING.search(text, place)) is not None and work < WORK:
        start = opening.start()
        place = start + 1
        try:
            value, end = DECODER.raw_decode(text, start)
            place = end
            yield Found(value, start, end)
            continue
        except RecursionError:
            work += NESTED
            continue
        except ValueError as error:
            failed = getattr(error, "pos", len(text))  # of a repeated name, no place is known
        work += failed - start + 1 + failed // 16  # the error counts the lines before its place
        if _AT_COMMA.match(text, failed) is None:
            continue
        # As many characters as before, so that places remain the same.
        plain = _STRING_OR_COMMA.sub(_without_comma, text[start:])
        work += len(plain)
        try:
            value, length = DECODER.raw_decode(plain)
        except (ValueError, RecursionError):
            continue
        place = start + length
        yield Found(value, start, place)


def _without_comma(match: re.Match[str]) -> str:
    return " " if match.group() == "," else match.group()


CELL_BYTES = 8
SMALL_BYTES = 256 * 2**20
MAX_RATIO = 200
"""A table of more than `SMALL_BYTES` is refused above this ratio to its file."""


def check_parquet(path: Path) -> None:
    """Refuse a file whose table would need more memory than its size suggests, by its metadata.

    Raises
    ------
    JudgeBayesError
        If the table is too large.
    Exception
        Of any kind, for a damaged file.
    """
    import pyarrow.parquet as pq

    meta = pq.read_metadata(path)
    most = max(SMALL_BYTES, MAX_RATIO * path.stat().st_size)
    size = meta.num_rows * meta.num_columns * CELL_BYTES
    size += sum(meta.row_group(n).total_byte_size for n in range(meta.num_row_groups))
    if size > most:
        raise JudgeBayesError(
            f"{str(path)!r} has {meta.num_rows:,} rows and needs {size / 2**30:,.1f} GiB of memory or "
            f"more; its size suggests at most {most / 2**30:,.1f} GiB. Save it in parts."
        )


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
    broken = {name: table[name].str.contains("[\r\n]", na=False) for name in table.columns}
    breaks = {name: table.index[rows].tolist() for name, rows in broken.items() if rows.any()}
    if not breaks:
        return
    on_one_line = table.drop(index=[row for rows in breaks.values() for row in rows])
    values_at = {
        place: values
        for place, column in enumerate(table.columns)
        if 0 < len(values := set(on_one_line[column].dropna().unique())) <= FEW_VALUES
    }
    for column, rows in breaks.items():
        known = {at: values for at, values in values_at.items() if table.columns[at] != column}
        for row in rows if known and column not in ignored else ():
            lines = [line for line in table[column][row].splitlines()[1:] if separator in line]
            merged = sum(
                len(cells) == table.shape[1] and all(cells[at] in known[at] for at in known)
                for cells in csv.reader(lines, delimiter=separator, quoting=csv.QUOTE_NONE)
            )
            if merged:
                raise JudgeBayesError(
                    f"Row {row} of {name!r} has a cell of column {column!r} with {merged:,} lines that "
                    "look like separate rows: a quotation mark is probably unpaired. Correct it. If "
                    f"the text is correct, ignore the column: --set ignore={column}."
                )


MOST_FIELDS, MOST_DEEP = 20, 4
"""Objects with more fields, or in more objects, are not columns of a table."""
ABSENT = object()
"""The value of a field that a record does not have."""
INT64 = range(-(2**63), 2**63)


class Written(str):
    """The text of a number that is not whole, as a file has it: 2.10 is not 2.1."""

    __slots__ = ()


def json_text(value: object) -> str:
    """Return a list or an object as JSON, with its numbers as they were written."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json_text(k)}: {json_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple | np.ndarray):
        return "[" + ", ".join(map(json_text, value)) + "]"
    if isinstance(value, np.generic):
        value = value.item()
    return (
        str(value)
        if isinstance(value, Written)
        else json.dumps(value, ensure_ascii=False, default=str)
    )


def table_of_records(records: Iterable[tuple[int, dict[str, Any]]]) -> pd.DataFrame:
    """Return records with their numbers, which are the index, as a table.

    A column of whole numbers or of texts is that of an array, so that the table is the same as from all
    records at once. A field whose values are objects with few fields is a column for each of these; one
    whose values are lists of objects is a row for each. Another list or object in a cell is its JSON.
    """
    lines: list[int] = []
    columns: dict[str, list[Any]] = {}
    for number, record in records:
        for name in record:
            if name not in columns:
                columns[name] = [ABSENT] * len(lines)
        lines.append(number)
        for name, values in columns.items():
            values.append(record.get(name, ABSENT))
    listed = [n for n, values in columns.items() if any(isinstance(v, list) for v in values)]
    if len(listed) == 1 and all(map(_are_objects, columns[listed[0]])):
        rows = pd.DataFrame(columns, lines, dtype=object).explode(listed[0])
        lines, columns = list(rows.index), {str(n): cells.tolist() for n, cells in rows.items()}
    plain = columns_of_objects(columns)
    return pd.DataFrame({n: _series(v) for n, v in plain.items()}).set_axis(lines, axis=0)


def _are_objects(cell: object) -> bool:
    """Tell whether a cell is a list of objects, as `judgments` may be, of which each is a row."""
    return isinstance(cell, list) and cell != [] and all(isinstance(each, dict) for each in cell)


def columns_of_objects(columns: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Return columns with one for each plain field of the objects in a column, in place of this one.

    Its name is the end of its path that no other column has: `gpt-4`, or `scores.gpt-4`.
    """
    paths: dict[tuple[str, ...], list[Any]] = {}

    def add(path: tuple[str, ...], values: list[Any]) -> None:
        fields = _fields(values) if len(path) < MOST_DEEP else []
        for key in fields:
            add((*path, key), [v.get(key, ABSENT) if isinstance(v, dict) else v for v in values])
        if not fields:
            paths[path] = values

    for name, values in columns.items():
        add((name,), values)
    ends = Counter(path[-k:] for path in paths for k in range(1, len(path) + 1))
    return {
        ".".join(next(e for k in range(1, len(p) + 1) if ends[e := p[-k:]] == 1 or e == p)): values
        for p, values in paths.items()
    }


def plain_frame(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with a column for each field of the objects in a column."""
    objects = [n for n in table if table[n].dtype == object and _fields(table[n].tolist())]
    if not objects:
        return table
    cells = columns_of_objects({str(n): c.tolist() for n, c in table.items()})
    index = table.index
    new = {n: table[n] if n in table else _series(v).set_axis(index) for n, v in cells.items()}
    return pd.DataFrame(new)


def _fields(values: list[Any]) -> list[str]:
    """Return the fields of the objects in a column of nothing else, if they are few and no lists."""
    filled = [v for v in values if v is not ABSENT and v is not None]
    if not filled or not all(isinstance(v, dict) for v in filled):
        return []
    fields = list(dict.fromkeys(key for v in filled for key in v))
    listed = any(isinstance(cell, list) for v in filled for cell in v.values())
    return [] if listed or len(fields) > MOST_FIELDS else fields


def _series(values: list[Any]) -> pd.Series:
    kinds = set(map(type, values))
    if kinds == {int} and min(values) in INT64 and max(values) in INT64:
        return pd.Series(np.array(values, np.int64))
    if kinds <= {str, Written}:
        return pd.Series(values)
    # As objects, because a missing value would make floats of all whole numbers.
    cells = (json_text(v) if isinstance(v, list | dict) else v for v in values)
    return pd.Series([np.nan if cell is ABSENT else cell for cell in cells], dtype=object)
