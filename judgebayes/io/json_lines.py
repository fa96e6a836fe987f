"""The records of a JSONL file as a table."""

import json
from collections.abc import Mapping
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


def table_of_lines(path: Path, encoding: str | None) -> pd.DataFrame | None:
    """Return all records; the index is the number of the line. None if there is no record.

    A column of whole numbers or of texts is that of an array, so that the table is the same as from all
    records at once. A list or an object in a cell is its JSON.
    """
    lines: list[int] = []
    columns: dict[str, list[Any]] = {}
    for numbers, records in read_batches(path, encoding, floats=Written):
        for name in dict.fromkeys(name for record in records for name in record):
            columns.setdefault(name, [ABSENT] * len(lines))
        lines += numbers
        for name, values in columns.items():
            values += [record.get(name, ABSENT) for record in records]
    if not lines:
        return None
    return pd.DataFrame({n: _series(v) for n, v in columns.items()}).set_axis(lines, axis=0)


def _series(values: list[Any]) -> pd.Series:
    kinds = set(map(type, values))
    if kinds == {int} and min(values) in INT64 and max(values) in INT64:
        return pd.Series(np.array(values, np.int64))
    if kinds <= {str, Written}:
        return pd.Series(values)
    # As objects, because a missing value would make floats of all whole numbers.
    cells = (json_text(v) if isinstance(v, list | dict) else v for v in values)
    return pd.Series([np.nan if cell is ABSENT else cell for cell in cells], dtype=object)
