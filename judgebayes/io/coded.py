"""A column as codes into its different values, so that millions of rows cost arrays and not objects."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Int
from pandas.api.types import is_object_dtype

from judgebayes.votes.classes import canonical

INT64_LIMIT = 2**63
"""Whole numbers from here on do not fit into 64 bits."""
SAFE = frozenset({str, type(None)})
"""Types of cells of which equal ones are the same cell: 1, 1.0 and True are equal, but not the same."""


@dataclass(frozen=True)
class Coded:
    """The cells of a column: `values[code]`, and None where the code is -1.

    The values are different (1, 1.0 and True count as different). Some may occur in no row.
    """

    code: Int[np.ndarray, " row"]
    values: tuple[Any, ...]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.code)

    def present(self) -> Bool[np.ndarray, " row"]:
        """Return the rows that are not None."""
        return self.code >= 0

    def where(self, rows: Bool[np.ndarray, " row"]) -> "Coded":
        """Return some of the rows; values may be left that occur in none of them."""
        return self if rows.all() else Coded(self.code[rows], self.values)

    def changed(self, value_of: Callable[[Any], Hashable | None]) -> "Coded":
        """Return the cells after a function of their values; None stays None."""
        return _merged(self.code, [*map(value_of, self.values), None])

    def emptied(self, rows: Bool[np.ndarray, " row"]) -> "Coded":
        """Return the column with None in some rows."""
        return Coded(np.where(rows, -1, self.code), self.values)

    def counts(self) -> Counter[Any]:
        """Return how often each value occurs, without None, in order of appearance."""
        code, used = pd.factorize(self.code[self.present()])
        sizes = np.bincount(code, minlength=len(used)).tolist()
        return Counter({self.values[at]: n for at, n in zip(used.tolist(), sizes, strict=True)})

    def column(self) -> pd.Series:
        """Return the cells as numbers if all are numbers, else as text; None where missing."""
        some = self._used()
        if any(isinstance(value, str) for value in some.values):
            texts = np.array([*map(_text, some.values), None], dtype=object)
            return pd.Series(texts[some.code], dtype=object)
        if some.present().all() and all(abs(value) < INT64_LIMIT for value in some.values):
            return pd.Series(pd.Series(some.values).to_numpy()[some.code])
        return pd.Series(np.array([*map(float, some.values), np.nan])[some.code])

    def names(self) -> pd.Series:
        """Return a column of text, none of which is missing."""
        return pd.Series(self.values).take(self.code).reset_index(drop=True)

    def _used(self) -> "Coded":
        """Return the column with only those values that occur."""
        used = np.bincount(self.code + 1, minlength=len(self.values) + 1)[1:] > 0
        if used.all():
            return self
        place = np.append(np.cumsum(used) - 1, -1)
        return Coded(
            place[self.code], tuple(v for v, u in zip(self.values, used, strict=True) if u)
        )


def coded_column(column: pd.Series, plain: Callable[[Any], Hashable | None]) -> Coded:
    """Return a function of each cell of a column, called once for each different cell.

    `plain` is called with None for cells that are missing.
    """
    # Values of several types, such as 1 and True, would have one code; lists have none.
    if is_object_dtype(column.dtype) and not set(map(type, column.dropna())) <= SAFE:
        return coded_values(map(plain, column))
    code, different = pd.factorize(column, use_na_sentinel=True)
    return _merged(code, [*map(plain, different), plain(None)])


def coded_values(values: Iterable[Hashable | None]) -> Coded:
    """Return values, or None, as codes."""
    code_of: dict[Any, int] = {}
    code = [
        -1 if value is None else code_of.setdefault((type(value), value), len(code_of))
        for value in values
    ]
    return Coded(np.array(code, np.int32), tuple(value for _, value in code_of))


def constant(value: Hashable | None, rows: int) -> Coded:
    """Return a column that has the same value in each row."""
    if value is None:
        return Coded(np.full(rows, -1, np.int32), ())
    return Coded(np.zeros(rows, np.int32), (value,))


def stacked(columns: Sequence[Coded]) -> Coded:
    """Return several columns, one below the other."""
    starts = np.cumsum([0, *(len(column.values) for column in columns)])
    code = [
        np.where(column.code < 0, -1, column.code + start)
        for column, start in zip(columns, starts[:-1], strict=True)
    ]
    return _merged(np.concatenate(code), [*(v for c in columns for v in c.values), None])


def _merged(code: Int[np.ndarray, " row"], values: list[Any]) -> Coded:
    """Return codes into values that may be equal or None; the last value is that of the code -1."""
    different = coded_values(values)
    return Coded(different.code[code], different.values)


def _text(value: object) -> str:
    """Return a value as text, a whole number without a decimal point."""
    return str(canonical(value)) if isinstance(value, int | float) else str(value)
