"""Names of items and judges as keys, and their positions."""

import numpy as np
import pandas as pd
from jaxtyping import Int

from judgebayes.errors import JudgeBayesError
from judgebayes.votes.classes import plain_text, written

EXACT = 2**53
"""Above this, several whole numbers are the same float."""


def keys(column: pd.Series, name: str) -> pd.Index:
    """Return names of items or judges as whole numbers, or as text.

    Text is as it is written, but for spaces around it and the form of its letters (`plain_text`). Whole
    floats are whole numbers, as a missing number makes floats of all others.

    Raises
    ------
    JudgeBayesError
        If a row has no name.
    """
    types = pd.api.types
    exact = types.is_float_dtype(column.dtype) and (column.abs() < EXACT).all()
    if exact and (column == np.floor(column)).all():
        column = column.astype(np.int64)
    if types.is_integer_dtype(column.dtype) and not column.hasnans:
        return pd.Index(column)
    if types.is_object_dtype(column.dtype) and column.map(type).nunique() > 1:
        names = column.map(name_of)
    else:
        code, values = pd.factorize(column)
        names = pd.Series(np.array([*map(name_of, values), ""], object)[code])
    if (names == "").any():
        row = column.index[int(np.argmax(names == ""))]
        raise JudgeBayesError(f"Row {row} has no value in column {name!r}.")
    return pd.Index(names)


def name_of(value: object) -> str:
    """Return a name as text, "" if it is missing."""
    if isinstance(value, str):
        return plain_text(value)
    name = written(value)
    return "" if name is None else str(value) if isinstance(value, np.floating) else name


def positions(items: pd.Index, column: pd.Series, name: str) -> Int[np.ndarray, " row"]:
    """Return the position of each row's name among the items, -1 if it is not there.

    If one table contains numbers and the other text, both are compared as text.
    """
    names = keys(column, name)
    if pd.api.types.is_numeric_dtype(items.dtype) != pd.api.types.is_numeric_dtype(names.dtype):
        items, names = items.astype(str), names.astype(str)
    return items.get_indexer(names)


def numbered(column: pd.Series, name: str) -> tuple[Int[np.ndarray, " row"], pd.Index]:
    """Return the code of each row's name, and the names in order of first appearance."""
    code, values = pd.factorize(keys(column, name))
    return code, pd.Index(values, name=name)


def spellings(column: pd.Series) -> dict[str, list[str]]:
    """Return the names of a column that are written in several ways, with these."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.cat.categories.to_series()
    values = pd.Series(column.unique()).dropna()
    if pd.api.types.is_string_dtype(values):
        padded = values.str.len() != values.str.strip().str.len()
        if not padded.any() and "".join(values).isascii():
            return {}
    ways: dict[str, list[str]] = {}
    for value in values if values.dtype.kind not in "iufb" else ():
        if isinstance(value, str):
            ways.setdefault(plain_text(value), []).append(value)
    return {name: written for name, written in ways.items() if len(written) > 1 and name}
