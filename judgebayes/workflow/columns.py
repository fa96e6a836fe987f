"""Columns of a user's tables with one value for each item."""

import numpy as np
import pandas as pd
from jaxtyping import Int

from judgebayes.errors import JudgeBayesError
from judgebayes.workflow.reading import Listing, Reading

__all__ = ["values_of"]


def values_of(
    tables: list[tuple[pd.DataFrame, str]], read: Reading | Listing, column: str
) -> tuple[Int[np.ndarray, " item"], list[str]]:
    """Return the value of each item in a column of the votes or the labels, and the values' names.

    Parameters
    ----------
    tables
        Tables that may contain the column, each with its column of the item.
    read
        The votes.
    column
        The column.

    Returns
    -------
    The index of each item's value, -1 without one, and the names in alphabetical order.

    Raises
    ------
    JudgeBayesError
        If no table has the column, or an item has two values.
    """
    for table, item in tables:
        if column not in table.columns:
            continue
        pairs = table[[item, column]].dropna().drop_duplicates().astype(str)
        twice = pairs[item].duplicated()
        if twice.any():
            raise JudgeBayesError(
                f"Item {pairs[item][twice].iloc[0]!r} has more than one value of {column!r}; an "
                "item must have one value."
            )
        named = pairs.set_index(item)[column].reindex(pd.Index(read.coding.items).astype(str))
        code, names = pd.factorize(named.to_numpy(), sort=True)
        return code, [str(name) for name in names]
    raise JudgeBayesError(f"There is no column {column!r}, in the votes or in the labels.")
