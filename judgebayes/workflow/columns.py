"""Columns of a user's tables with one value for each item."""

import pandas as pd

from judgebayes.arrays import ItemInts
from judgebayes.errors import JudgeBayesError
from judgebayes.votes.columns import name_of
from judgebayes.workflow.reading import Reading


def values_of(
    tables: list[tuple[pd.DataFrame, str]], read: Reading, column: str
) -> tuple[ItemInts, list[str]]:
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
        named = by_item(
            table,
            item,
            [column],
            read,
            f"has more than one value of {column!r}; an item must have one",
        )
        code, names = pd.factorize(named[column].to_numpy(), sort=True)
        return code, [str(name) for name in names]
    raise JudgeBayesError(f"There is no column {column!r}, in the votes or in the labels.")


def by_item(
    table: pd.DataFrame, item: str, columns: list[str], read: Reading, wrong: str
) -> pd.DataFrame:
    """Return the names in some columns for every item with votes, NaN where one of them is blank.

    Raises
    ------
    JudgeBayesError
        If an item has two rows of names; `wrong` says what is wrong with it.
    """
    rows = table[[item, *columns]].drop_duplicates().map(name_of)
    rows = rows[(rows != "").all(axis=1)].drop_duplicates()
    twice = rows[item].duplicated()
    if twice.any():
        raise JudgeBayesError(f"Item {rows[item][twice].iloc[0]!r} {wrong}.")
    return rows.set_index(item).reindex(pd.Index(read.coding.items).astype(str))
