"""Columns of a table as numbers: classes, presentation orders, names of items and judges; their checks.

Labels that may be wrong, as evidence: the log-odds that they give for the higher of two classes.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from judgebayes.arrays import ItemInts
from judgebayes.errors import JudgeBayesError
from judgebayes.votes.array import UNDECIDED
from judgebayes.votes.classes import Classes, canonical, listing, mapped, written

EXACT = 2**53
"""Above this, several whole numbers are the same float."""


def first_row(wrong: Bool[np.ndarray, " row"] | pd.Series) -> int | None:
    """Return the position of the first row with something wrong, None if there is none."""
    return int(np.argmax(wrong)) if wrong.any() else None


def cell_of(column: pd.Series, row: int, judges: pd.Series | None = None) -> str:
    """Return what the cell in a row contains, for a sentence; `judges` are those of votes."""
    judge = "" if judges is None else f" (judge {written(judges.iloc[row])!r})"
    value = canonical(column.iloc[row])
    return f"Row {column.index[row]} of column {column.name!r} contains {value!r}{judge}"


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
    names = mapped(column, written)
    if (row := first_row(names.isna())) is not None:
        raise JudgeBayesError(f"Row {column.index[row]} has no value in column {name!r}.")
    return pd.Index(names)


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


UNKNOWN = -3
"""In place of the number of a cell that has none."""


def class_indices(
    column: pd.Series, classes: Classes, judges: pd.Series | None = None
) -> Int[np.ndarray, " row"]:
    """Return the class index of each value of a column, `MISSING` or `UNDECIDED`.

    `judges`, of votes, are named in the error message.

    Raises
    ------
    JudgeBayesError
        For a value that is not one of the classes.
    """
    index = numbers_in(column, classes.index)
    if (row := first_row(index == UNKNOWN)) is not None:
        value, hint = canonical(column.iloc[row]), ""
        if classes.values == (0, 1) and value == -1:
            hint = (
                " The scale looks binary, but this value belongs to a ternary scale. If it is ternary, "
                "name the classes: classes=(-1, 0, 1), --set classes=-1,0,1 at the command line."
            )
        elif isinstance(value, str) and "," in value:
            hint = " Put a name that contains a comma in double quotes: --set 'classes=\"a, b\",c'."
        elif judges is not None:
            hint = (
                " If it means no vote, use --set missing=VALUE; if it is in a column that is no judge, "
                "leave that out with --set ignore=COLUMN."
            )
        raise JudgeBayesError(
            f"{cell_of(column, row, judges)}, which is not one of the classes "
            f"{listing(classes.values)}.{hint}"
        )
    return index


def label_indices(column: pd.Series, classes: Classes) -> Int[np.ndarray, " row"]:
    """Return the class index of each label of a column, -1 where there is none.

    Raises
    ------
    JudgeBayesError
        For a label that is not one of the classes, or that is a vote for no class.
    """
    index = class_indices(column, classes)
    if (row := first_row(index == UNDECIDED)) is not None:
        raise JudgeBayesError(
            f"{cell_of(column, row)}, which is read as a vote for no class. If labels have this class, "
            "use --set undecided=none; if it means no label, use --set missing=VALUE."
        )
    return index


def numbers_in(
    column: pd.Series, number: Callable[[object], int | None]
) -> Int[np.ndarray, " row"]:
    """Return a number of each cell, called once for each different one, `UNKNOWN` where it is None."""
    code, values = pd.factorize(column, use_na_sentinel=False)
    numbers = [UNKNOWN if (n := number(value)) is None else n for value in values]
    return np.array(numbers, np.int64)[code]


VotesAs = Literal["shown", "original"]

ORDERS: dict[str, int] = {
    **dict.fromkeys(("ab", "a-then-b", "first", "0", "false", "original", "a_first"), 0),
    **dict.fromkeys(("ba", "b-then-a", "second", "1", "true", "swapped", "b_first"), 1),
}
"""Accepted names of presentation orders: 0 is the order of the labels, 1 is swapped."""


def are_orders(column: pd.Series) -> bool:
    """Tell whether a column contains only presentation orders."""
    return {str(canonical(v)).casefold() for v in column.dropna().unique()} <= set(ORDERS)


MOST_VALUES, DECIMALS = 40, 1
"""Evidence of more different values is rounded: equal values are computed once."""


@dataclass(frozen=True)
class Evidence:
    """The evidence of each item's labels, at several values of the annotators' error rates."""

    nodes: Float[np.ndarray, "node item"]
    """Infinite for certain labels, and 0 for items without a label."""
    weights: tuple[float, ...]
    """The probabilities of the nodes."""

    @property
    def valid(self) -> int:
        """The number of items that are certainly valid."""
        return int((self.nodes[0] == np.inf).sum())

    @property
    def unknown(self) -> int:
        """The number of items that are not certain."""
        return int(np.isfinite(self.nodes[0]).sum())

    def take(self, items: Bool[np.ndarray, " item"]) -> "Evidence":
        """Return the evidence on some of the items."""
        return replace(self, nodes=self.nodes[:, items])

    def rounded(self) -> "Evidence":
        """Return the evidence with values rounded to .1 if there are many."""
        few = all(len(np.unique(node)) <= MOST_VALUES for node in self.nodes)
        return self if few else replace(self, nodes=self.nodes.round(DECIMALS))


def certain(labels: ItemInts) -> Evidence:
    """Return the evidence of labels without error: 1 valid, 0 invalid, -1 unknown."""
    return Evidence(np.array([0.0, -np.inf, np.inf])[labels + 1][None], (1.0,))


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


def require_plain(column: pd.Series, name: str) -> None:
    """Check that every cell is a single value: no list or other container, and no long text or lines.

    An unpaired quotation mark turns hundreds of rows of a CSV file into one text with lines.
    """
    if pd.api.types.is_numeric_dtype(column.dtype):
        return
    kinds = column.map(type) if pd.api.types.is_object_dtype(column.dtype) else column[:0]
    for kind in kinds.unique():
        row = int(np.argmax(kinds == kind))
        if not pd.api.types.is_scalar(column.iloc[row]) or issubclass(kind, (bytes, complex)):
            raise JudgeBayesError(
                f"Row {column.index[row]} of column {name!r} contains a {kind.__name__}, "
                f"{column.iloc[row]!r}; use text or a number."
            )
    for text in column.dropna().unique().tolist():
        long = isinstance(text, str) and len(text) > MAX_NAME
        if long or (isinstance(text, str) and ("\n" in text or "\r" in text)):
            where = f"Row {column.index[int(np.argmax(column == text))]} of column {name!r}"
            raise JudgeBayesError(
                f"{where} has a text of {len(text):,} characters, {text[:40]!r}...; a vote or a name "
                f"may have at most {MAX_NAME:,}."
                if long
                else f"{where} contains a line break: {text[:40]!r}. Remove it; in a CSV file, look for "
                "an unpaired quotation mark, which merges many rows into one."
            )
