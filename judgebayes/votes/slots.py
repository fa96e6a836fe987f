"""The position of each vote in the arrays: its sample, its order, its score.

The classes of the votes of a table, and each vote as a class index.
"""

import shlex
from collections.abc import Sequence
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Float, Int

from judgebayes.errors import JudgeBayesError
from judgebayes.votes.array import MISSING, UNDECIDED
from judgebayes.votes.classes import Classes, canonical, given_classes, infer_classes, listing

SUSPICIOUS_VOTES = 20
"""A judge with this many votes, none of them the lowest of three classes, may be binary."""


def scale_of(
    column: pd.Series,
    classes: Sequence[object] | Classes | None,
    pairwise: bool | None,
    what: str,
    undecided: Sequence[object] = (),
) -> Classes:
    """Return the classes of a column of votes: the given ones, or those inferred from its values.

    `what` names the column in error messages; `undecided` are values of votes for no class.

    Raises
    ------
    JudgeBayesError
        If fewer than two different classes are given, or the classes cannot be inferred.
    """
    if isinstance(classes, Classes):
        return classes
    none = tuple(v for v in map(canonical, undecided) if v is not None)
    only = Classes((), pairwise=False, undecided=none)
    if classes is not None:
        scale = given_classes([v for v in classes if only.index(v) != UNDECIDED], pairwise)
    else:
        decided = [v for v in column.unique() if only.index(v) != UNDECIDED]
        scale = infer_classes(decided, what)
    symmetric = scale.pairwise if pairwise is None else pairwise
    return Classes(scale.values, symmetric, none)


def class_indices(column: pd.Series, classes: Classes, what: str) -> Int[np.ndarray, " row"]:
    """Return the class index of each value of a column, `MISSING` or `UNDECIDED`.

    Raises
    ------
    JudgeBayesError
        For a value that is not one of the classes.
    """
    code, values = pd.factorize(column, use_na_sentinel=True)
    indices = classes.indices(values)
    for position, index in enumerate(indices):
        if index is None:
            row = int(np.argmax(code == position))
            value = canonical(values[position])
            hint = (
                " The scale looks binary, but this value belongs to a ternary scale. If it is ternary, "
                "name the classes: classes=(-1, 0, 1), --classes=-1,0,1 at the command line."
                if classes.values == (0, 1) and value == -1
                else ""
            )
            if isinstance(value, str) and "," in value:
                hint = " Put a name that contains a comma in double quotes: --classes '\"a, b\",c'."
            raise JudgeBayesError(
                f"Row {column.index[row]} of {what} contains {value!r}, which is not one of the classes "
                f"{listing(classes.values)}.{hint}"
            )
    table = np.array([*(k for k in indices if k is not None), MISSING], dtype=np.int64)
    return table[code]


def refuse_mixed(
    index: Int[np.ndarray, " row"],
    judge_of: Int[np.ndarray, " row"],
    judges: pd.Index,
    scale: Classes,
) -> None:
    """Raise an error if an inferred scale is ternary but a judge with many votes gives only 0 and 1."""
    if scale.values != (-1, 0, 1) or len(judges) < 2:
        return
    for judge in range(len(judges)):
        cast = index[(judge_of == judge) & (index >= 0)]
        if len(cast) >= SUSPICIOUS_VOTES and set(cast.tolist()) == {1, 2}:
            raise JudgeBayesError(
                f"All {len(cast)} votes of judge {judges[judge]!r} are 0 or 1, but other judges also "
                "vote -1: binary and ternary votes may be mixed. If its votes are ternary, name the "
                "classes: classes=(-1, 0, 1), --classes=-1,0,1 at the command line."
            )


VotesAs = Literal["shown", "original"]

FEW_VALUES = 20
"""A column with up to this many values may number the repeated votes of a judge."""

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
                "votes_as was given without order; name the column with the order in which the "
                "responses were shown."
            )
        return None
    if votes_as not in ("shown", "original"):
        raise JudgeBayesError(
            f"With order={order!r}, votes_as is required: votes_as='shown' if a vote names the response "
            "shown first or second (swapped votes are then reversed), votes_as='original' if votes "
            "are already mapped back."
        )
    code, values = pd.factorize(frame[order], use_na_sentinel=True)
    codes_of_values = [ORDERS.get(str(canonical(v)).casefold()) for v in values]
    if (code < 0).any():
        row = frame.index[int(np.argmax(code < 0))]
        raise JudgeBayesError(f"Row {row} has no value in column {order!r}.")
    for position, order_code in enumerate(codes_of_values):
        if order_code is None:
            raise JudgeBayesError(
                f"Row {frame.index[int(np.argmax(code == position))]} of column {order!r} contains "
                f"{canonical(values[position])!r}; use AB or BA (or first/second, 0/1, "
                "original/swapped)."
            )
    return np.array([k for k in codes_of_values if k is not None], np.int64)[code]


def slots_of(
    frame: pd.DataFrame,
    item_of: Int[np.ndarray, " row"],
    judge_of: Int[np.ndarray, " row"],
    sample: str | None,
    swapped: Int[np.ndarray, " row"] | None,
    names: tuple[str, str | None, str | None, str | None],
    used: tuple[str | None, ...],
) -> Int[np.ndarray, " row"]:
    """Return each vote's position among the votes of its judge on its item."""
    keys = pd.DataFrame({"item": item_of, "judge": judge_of})
    keys["sample"] = 0 if sample is None else _ranks(frame[sample])
    keys["order"] = 0 if swapped is None else swapped
    twice = keys.duplicated()
    if twice.any():
        row = int(np.argmax(twice))
        first = int(np.argmax((keys == keys.iloc[row]).all(axis=1)))
        where = ", ".join(f"{n} {canonical(frame[n].iloc[row])!r}" for n in names if n is not None)
        column = _numbering(frame, keys, (*names, *used)) if sample is None else None
        if sample is not None:
            hint = "Repeated votes of a judge on an item need different samples."
        elif column is not None:
            hint = (
                f"Column {column!r} distinguishes them: if it numbers repeated votes of a judge, use "
                f"sample={column!r} (at the command line --sample {shlex.quote(column)})."
            )
        else:
            hint = (
                "If the judge was asked several times, name the column that numbers its votes, "
                "sample=... (at the command line --sample COLUMN, or --repeats if there is none)."
            )
        raise JudgeBayesError(
            f"Rows {frame.index[first]} and {frame.index[row]} are the same vote ({where}). " + hint
        )
    ordered = keys.sort_values(["sample", "order"], kind="stable")
    return ordered.groupby(["item", "judge"]).cumcount().sort_index().to_numpy()


def _numbering(frame: pd.DataFrame, keys: pd.DataFrame, used: tuple[str | None, ...]) -> str | None:
    """Return the only unused column with few values that makes all votes distinct, if there is one."""
    most = max(FEW_VALUES, 2 * int(keys.groupby(list(keys.columns)).size().max()))
    texts = {str(name): frame[name].astype(str) for name in frame.columns if name not in used}
    candidates = [
        name
        for name, cells in texts.items()
        if cells.nunique() <= most and not keys.assign(extra=cells.to_numpy()).duplicated().any()
    ]
    return candidates[0] if len(candidates) == 1 else None


def _ranks(column: pd.Series) -> Int[np.ndarray, " row"]:
    """Return the rank of each value; numbers come before anything else, which is sorted as text."""
    if pd.api.types.is_object_dtype(column.dtype):
        sortable = (int, float, str, type(None), type(pd.NA))
        column = column.map(lambda value: value if isinstance(value, sortable) else str(value))
    return pd.factorize(column, sort=True)[0]


def scattered(
    shape: tuple[int, int, int],
    at: tuple[np.ndarray, np.ndarray, np.ndarray],
    values: np.ndarray,
    fill: float,
    dtype: Any,
) -> np.ndarray:
    """Return an array of this shape with the values at the indices `at`, and `fill` elsewhere."""
    result = np.full(shape, fill, dtype)
    result[at] = values
    return result


def scores_of(
    frame: pd.DataFrame,
    score: str,
    index: Int[np.ndarray, " row"],
    shape: tuple[int, int, int],
    at: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> Float[Array, "item judge sample"]:
    """Return the scores of the votes at the indices `at`, NaN without a vote.

    Raises
    ------
    JudgeBayesError
        If the score of a vote is not a finite number.
    """
    values = pd.to_numeric(frame[score], errors="coerce").to_numpy(float)
    bad = ~np.isfinite(values) & (index >= 0)
    if bad.any():
        row = int(np.argmax(bad))
        raise JudgeBayesError(
            f"Row {frame.index[row]} of column {score!r} contains {_shown(frame[score].iloc[row])} "
            "for a vote; a score must be a finite number."
        )
    return jnp.asarray(scattered(shape, at, np.where(index >= 0, values, np.nan), np.nan, float))


def _shown(value: object) -> str:
    plain = canonical(value)
    return str(value) if plain is None else repr(plain)
