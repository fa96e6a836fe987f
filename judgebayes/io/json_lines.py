"""The records of a JSONL file as a table, by column: millions of lines cost arrays and not objects."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from judgebayes.io.records import read_batches

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


class Columns:
    """Columns that grow by batches of records.

    A part of a column is an array if its values are all whole numbers or all texts, else a list; so the
    table is the same as from all records at once. A list or an object in a cell is its JSON.
    """

    def __init__(self) -> None:
        self._numbers: list[np.ndarray] = []
        self._parts: dict[str, list[pd.Series | list[Any]]] = {}
        self._rows: list[int] = []

    @property
    def rows(self) -> int:
        """Number of records so far."""
        return sum(self._rows)

    @property
    def last_line(self) -> int:
        """Number of the last line with a record."""
        return int(self._numbers[-1][-1]) if self._numbers else 0

    def add(self, numbers: Sequence[int], records: Sequence[dict[str, Any]]) -> None:
        """Add records, with the numbers of their lines."""
        for name in dict.fromkeys(name for record in records for name in record):
            if name not in self._parts:
                self._parts[name] = [[ABSENT] * rows for rows in self._rows]
        self._rows.append(len(records))
        self._numbers.append(np.array(numbers, np.int64))
        for name, parts in self._parts.items():
            parts.append(_packed([record.get(name, ABSENT) for record in records]))

    def table(self) -> pd.DataFrame:
        """Return the table; its index is the number of the line."""
        columns = {name: _joined(parts) for name, parts in self._parts.items()}
        return pd.DataFrame(columns).set_axis(np.concatenate(self._numbers), axis=0)


def columns_of_lines(path: Path, encoding: str | None) -> Columns:
    """Return the columns of all records."""
    columns = Columns()
    for numbers, records in read_batches(path, encoding, floats=Written):
        columns.add(numbers, records)
    return columns


def _packed(values: list[Any]) -> pd.Series | list[Any]:
    kinds = set(map(type, values))
    if kinds == {int} and min(values) in INT64 and max(values) in INT64:
        return pd.Series(np.array(values, np.int64))
    if kinds <= {str, Written}:
        return pd.Series(values)
    nested = kinds & {list, dict}
    return [json_text(v) if type(v) in nested else v for v in values] if nested else values


def _joined(parts: list[pd.Series | list[Any]]) -> pd.Series:
    """Return a column of all parts."""
    arrays = [part for part in parts if isinstance(part, pd.Series)]
    if len(arrays) == len(parts) and len({array.dtype for array in arrays}) == 1:
        return pd.concat(arrays, ignore_index=True)
    # As objects, because a missing value would make floats of all whole numbers.
    values = [np.nan if value is ABSENT else value for part in parts for value in part]
    return pd.Series(values, dtype=object)
