"""The position of each vote in the arrays: its sample, its order, its score.

The classes of the votes of a table, and each vote as a class index.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from judgebayes.errors import JudgeBayesError
from judgebayes.votes.array import UNDECIDED
from judgebayes.votes.classes import (
    Classes,
    canonical,
    decided,
    distinct,
    given_classes,
    infer_classes,
    listing,
)
from judgebayes.votes.columns import cell_of, first_row

UNKNOWN = -3
"""In place of the number of a cell that has none."""
SUSPICIOUS_VOTES = 20
"""A judge with this many votes, none of them the lowest of three classes, may be binary."""


def scale_of(
    values: Iterable[object],
    classes: Sequence[object] | Classes | None,
    pairwise: bool | None,
    what: str,
    undecided: Sequence[object] = (),
) -> Classes:
    """Return the classes of votes: the given ones, or those inferred from their values.

    `what` names the votes in error messages; `undecided` are values of votes for no class.

    Raises
    ------
    JudgeBayesError
        If fewer than two different classes are given, or the classes cannot be inferred.
    """
    if isinstance(classes, Classes):
        return classes
    none = tuple(distinct(undecided))
    if classes is None:
        scale = infer_classes(decided(values, none), what)
    else:
        scale = given_classes(decided(classes, none), pairwise)
    return replace(scale, undecided=none, pairwise=scale.pairwise if pairwise is None else pairwise)


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
    index = _mapped(column, classes.index)
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


def _mapped(column: pd.Series, number: Callable[[object], int | None]) -> Int[np.ndarray, " row"]:
    """Return a number of each cell, called once for each different one, `UNKNOWN` where it is None."""
    code, values = pd.factorize(column, use_na_sentinel=False)
    numbers = [UNKNOWN if (n := number(value)) is None else n for value in values]
    return np.array(numbers, np.int64)[code]


def refuse_mixed(
    index: Int[np.ndarray, " row"],
    judge_of: Int[np.ndarray, " row"],
    judges: pd.Index,
    scale: Classes,
) -> None:
    """Raise an error if an inferred scale is ternary but a judge with many votes gives only 0 and 1."""
    n = [np.bincount(judge_of[index == k], minlength=len(judges)) for k in range(3)]
    binary = (n[0] == 0) & (n[1] > 0) & (n[2] > 0) & (n[1] + n[2] >= SUSPICIOUS_VOTES)
    judge = first_row(binary) if scale.values == (-1, 0, 1) and n[0].any() else None
    if judge is not None:
        raise JudgeBayesError(
            f"All {n[1][judge] + n[2][judge]} votes of judge {judges[judge]!r} are 0 or 1, but other "
            "judges also vote -1: binary and ternary votes may be mixed. If its votes are ternary, name "
            "the classes: classes=(-1, 0, 1), --set classes=-1,0,1 at the command line."
        )


VotesAs = Literal["shown", "original"]

ORDERS: dict[str, int] = {
    **dict.fromkeys(("ab", "a-then-b", "first", "0", "false", "original", "a_first"), 0),
    **dict.fromkeys(("ba", "b-then-a", "second", "1", "true", "swapped", "b_first"), 1),
}
"""Accepted names of presentation orders: 0 is the order of the labels, 1 is swapped."""


def are_orders(column: pd.Series) -> bool:
    """Tell whether a column contains only presentation orders."""
    return {str(canonical(v)).casefold() for v in column.dropna().unique()} <= set(ORDERS)


def orders_of(
    frame: pd.DataFrame, order: str | None, votes_as: VotesAs | None
) -> Int[np.ndarray, " row"] | None:
    """Return each row's order, 0 for the order of the labels and 1 for swapped; None without orders.

    Raises
    ------
    JudgeBayesError
        If only one of `order` and `votes_as` is given, or a row has no known order.
    """
    if order is None:
        if votes_as is not None:
            raise JudgeBayesError(
                "votes_as says how votes name the responses in either order, and no column is known as "
                "the presentation order (AB, BA): name it with --set order=COLUMN (order=... in "
                "Python), or leave out votes_as."
            )
        return None
    if votes_as not in ("shown", "original"):
        raise JudgeBayesError(
            f"With order={order!r}, votes_as is required: votes_as='shown' if a vote names the response "
            "shown first or second (swapped votes are then reversed), votes_as='original' if votes "
            "are already mapped back."
        )
    swapped = _mapped(frame[order], lambda value: ORDERS.get(str(canonical(value)).casefold()))
    if (row := first_row(swapped == UNKNOWN)) is not None:
        if canonical(frame[order].iloc[row]) is None:
            raise JudgeBayesError(f"Row {frame.index[row]} has no value in column {order!r}.")
        raise JudgeBayesError(
            f"{cell_of(frame[order], row)}; use AB or BA (or first/second, 0/1, original/swapped)."
        )
    return swapped


def slots_of(
    frame: pd.DataFrame,
    item_of: Int[np.ndarray, " row"],
    judge_of: Int[np.ndarray, " row"],
    swapped: Int[np.ndarray, " row"] | None,
    columns: Mapping[str, str | None],
) -> Int[np.ndarray, " row"]:
    """Return each vote's position among the votes of its judge on its item.

    `columns` are those of the table by their roles.

    Raises
    ------
    JudgeBayesError
        If a vote is given twice.
    """
    sample = columns["sample"]
    keys = pd.DataFrame({"item": item_of, "judge": judge_of})
    keys["sample"] = 0 if sample is None else _ranks(frame[sample])
    keys["order"] = 0 if swapped is None else swapped
    if (row := first_row(keys.duplicated())) is not None:
        first = int(np.argmax((keys == keys.iloc[row]).all(axis=1)))
        names = filter(None, map(columns.get, keys.columns))
        where = ", ".join(f"{name} {canonical(frame[name].iloc[row])!r}" for name in names)
        hint = "Repeated votes of a judge on an item need different samples."
        if sample is None:
            hint = (
                "If the judge was asked several times, name the column that numbers its votes, "
                "sample=... (at the command line --set sample=COLUMN, or --set repeats=true if there is "
                "none)."
            )
        raise JudgeBayesError(
            f"Rows {frame.index[first]} and {frame.index[row]} are the same vote ({where}). " + hint
        )
    ordered = keys.sort_values(["sample", "order"], kind="stable")
    return ordered.groupby(["item", "judge"]).cumcount().sort_index().to_numpy()


def _ranks(column: pd.Series) -> Int[np.ndarray, " row"]:
    """Return the rank of each value; numbers come before anything else, which is sorted as text."""
    if pd.api.types.is_object_dtype(column.dtype):
        sortable = (int, float, str, type(None), type(pd.NA))
        column = column.map(lambda value: value if isinstance(value, sortable) else str(value))
    return pd.factorize(column, sort=True)[0]


def scores_of(
    frame: pd.DataFrame, score: str, index: Int[np.ndarray, " row"]
) -> Float[np.ndarray, " row"]:
    """Return the scores of the votes, NaN without a vote.

    Raises
    ------
    JudgeBayesError
        If the score of a vote is not a finite number.
    """
    values = pd.to_numeric(frame[score], errors="coerce").to_numpy(float)
    if (row := first_row(~np.isfinite(values) & (index >= 0))) is not None:
        raise JudgeBayesError(
            f"{cell_of(frame[score], row)} for a vote; a score must be a finite number."
        )
    return np.where(index >= 0, values, np.nan)
