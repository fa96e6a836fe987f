"""Names of items and judges as keys, and their positions."""

import numpy as np
import pandas as pd
from jaxtyping import Int

from judgebayes.errors import JudgeBayesError
from judgebayes.votes.classes import written

__all__ = ["keys", "numbered", "positions"]

EXACT = 2**53
"""Above this, several whole numbers are the same float."""


def keys(column: pd.Series, name: str) -> pd.Index:
    """Return names of items or judges as hashable values; whole floats become integers."""
    blank = column.isna() | (column.astype(str).str.strip() == "")
    if blank.any():
        row = column.index[int(np.argmax(blank))]
        raise JudgeBayesError(f"Row {row} has no value in column {name!r}.")
    floats = pd.api.types.is_float_dtype(column.dtype)
    if floats and (column == np.floor(column)).all() and (column.abs() < EXACT).all():
        column = column.astype(np.int64)
    if pd.api.types.is_object_dtype(column.dtype) and column.map(type).nunique() > 1:
        column = column.map(lambda name: written(name) or str(name))
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    return pd.Index(column)


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
