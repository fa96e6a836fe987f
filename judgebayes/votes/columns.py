"""Checks of a table's columns before they are encoded."""

import numpy as np
import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.votes.classes import listing

MAX_NAME = 10_000
"""Characters of a vote, a label or a name; in the public data sets, the longest has 107."""


def require_columns(frame: pd.DataFrame, columns: dict[str, str | None]) -> None:
    """Check that a table has the column of every role exactly once."""
    for role, name in columns.items():
        if name is not None and name not in frame.columns:
            raise JudgeBayesError(
                f"There is no column {name!r} for the {role}; the table has "
                f"{listing(frame.columns, 20)}."
            )
        if name is not None and isinstance(frame[name], pd.DataFrame):
            raise JudgeBayesError(f"There is more than one column {name!r}; names must differ.")
        if name is not None:
            require_plain(frame[name], name)
            require_one_line(frame, name)


def require_plain(column: pd.Series, name: str) -> None:
    """Check that every cell of a column is a single value, not a list or another container."""
    if not pd.api.types.is_object_dtype(column.dtype):
        return
    kinds = column.map(type)
    for kind in kinds.unique():
        row = int(np.argmax(kinds == kind))
        if not pd.api.types.is_scalar(column.iloc[row]) or issubclass(kind, (bytes, complex)):
            raise JudgeBayesError(
                f"Row {column.index[row]} of column {name!r} contains a {kind.__name__}, "
                f"{column.iloc[row]!r}; use text or a number."
            )


def require_one_line(frame: pd.DataFrame, name: str) -> None:
    """Check that no text in a column of names or votes contains a line break or is very long.

    An unpaired quotation mark turns hundreds of rows of a CSV file into one such text.
    """
    column = frame[name]
    if pd.api.types.is_numeric_dtype(column.dtype):
        return
    for value in column.dropna().unique():
        if isinstance(value, str) and len(value) > MAX_NAME:
            row = column.index[int(np.argmax(column == value))]
            raise JudgeBayesError(
                f"Row {row} of column {name!r} has a text of {len(value):,} characters, "
                f"{value[:40]!r}...; a vote or a name may have at most {MAX_NAME:,}."
            )
        if isinstance(value, str) and ("\n" in value or "\r" in value):
            row = column.index[int(np.argmax(column == value))]
            raise JudgeBayesError(
                f"Row {row} of column {name!r} contains a line break: {value[:40]!r}. Remove it; in a "
                "CSV file, look for an unpaired quotation mark, which merges many rows into one."
            )
