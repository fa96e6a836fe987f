"""Where each vote lies in the arrays: its sample, its order, its score."""

import shlex
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Float, Int

from judgebayes.errors import JudgeBayesError
from judgebayes.votes.classes import canonical

__all__ = ["ORDERS", "VotesAs", "orders_of", "scattered", "scores_of", "slots_of"]

VotesAs = Literal["shown", "original"]

FEW_VALUES = 20
"""A column of so many values may number the votes of a judge that was asked again."""

ORDERS: dict[str, int] = {
    **dict.fromkeys(("ab", "a-then-b", "first", "0", "false", "original", "a_first"), 0),
    **dict.fromkeys(("ba", "b-then-a", "second", "1", "true", "swapped", "b_first"), 1),
}
"""Presentation orders as people write them: 0 as the labels mean them, 1 swapped."""


def orders_of(
    frame: pd.DataFrame, order: str | None, votes_as: VotesAs | None
) -> Int[np.ndarray, " row"] | None:
    """Return each row's order, 0 as the labels mean it and 1 swapped; None without orders.

    Raises
    ------
    JudgeBayesError
        If `order` and `votes_as` do not come together, or a row holds no known order.
    """
    if order is None:
        if votes_as is not None:
            raise JudgeBayesError(
                "votes_as was given without order: name the column that tells how the responses "
                "were shown."
            )
        return None
    if votes_as not in ("shown", "original"):
        raise JudgeBayesError(
            f"With order={order!r}, say what a vote names: votes_as='shown' if the response shown "
            "first or second (swapped votes are then turned round), votes_as='original' if it was "
            "mapped back already."
        )
    code, values = pd.factorize(frame[order], use_na_sentinel=True)
    known = [ORDERS.get(str(canonical(v)).casefold()) for v in values]
    if (code < 0).any():
        row = frame.index[int(np.argmax(code < 0))]
        raise JudgeBayesError(f"Row {row} has no value in column {order!r}.")
    for position, found in enumerate(known):
        if found is None:
            raise JudgeBayesError(
                f"Row {frame.index[int(np.argmax(code == position))]} of column {order!r} holds "
                f"{canonical(values[position])!r}; right would be AB or BA (or first/second, 0/1, "
                "original/swapped)."
            )
    return np.array([k for k in known if k is not None], np.int64)[code]


def slots_of(
    frame: pd.DataFrame,
    item_of: Int[np.ndarray, " row"],
    judge_of: Int[np.ndarray, " row"],
    sample: str | None,
    swapped: Int[np.ndarray, " row"] | None,
    names: tuple[str, str | None, str | None, str | None],
    used: tuple[str | None, ...],
) -> Int[np.ndarray, " row"]:
    """Return each vote's place among the votes of its judge on its item."""
    keys = pd.DataFrame({"item": item_of, "judge": judge_of})
    keys["sample"] = 0 if sample is None else _ranks(frame[sample])
    keys["order"] = 0 if swapped is None else swapped
    twice = keys.duplicated()
    if twice.any():
        row = int(np.argmax(twice))
        first = int(np.argmax((keys == keys.iloc[row]).all(axis=1)))
        where = ", ".join(f"{n} {canonical(frame[n].iloc[row])!r}" for n in names if n is not None)
        told = _numbering(frame, keys, (*names, *used)) if sample is None else None
        if sample is not None:
            hint = "Votes of one judge on one item need different samples."
        elif told is not None:
            hint = (
                f"Column {told!r} tells them apart: if it numbers the votes of a judge that was asked "
                f"again, say sample={told!r} (at the command line --sample {shlex.quote(told)})."
            )
        else:
            hint = (
                "If the judge was asked again, name the column that numbers its votes, sample=... "
                "(at the command line --sample COLUMN, or --repeats where there is none)."
            )
        raise JudgeBayesError(
            f"Rows {frame.index[first]} and {frame.index[row]} hold the same vote twice ({where}). "
            + hint
        )
    ordered = keys.sort_values(["sample", "order"], kind="stable")
    return ordered.groupby(["item", "judge"]).cumcount().sort_index().to_numpy()


def _numbering(frame: pd.DataFrame, keys: pd.DataFrame, used: tuple[str | None, ...]) -> str | None:
    """Return the one column of few values, for no other use, that makes votes differ."""
    most = max(FEW_VALUES, 2 * int(keys.groupby(list(keys.columns)).size().max()))
    texts = {str(name): frame[name].astype(str) for name in frame.columns if name not in used}
    found = [
        name
        for name, cells in texts.items()
        if cells.nunique() <= most and not keys.assign(told=cells.to_numpy()).duplicated().any()
    ]
    return found[0] if len(found) == 1 else None


def _ranks(column: pd.Series) -> Int[np.ndarray, " row"]:
    """Return the place of each value in their order; numbers come before anything else, as text."""
    if pd.api.types.is_object_dtype(column.dtype):
        kept = (int, float, str, type(None), type(pd.NA))
        column = column.map(lambda value: value if isinstance(value, kept) else str(value))
    return pd.factorize(column, sort=True)[0]


def scattered(
    shape: tuple[int, int, int],
    at: tuple[np.ndarray, np.ndarray, np.ndarray],
    values: np.ndarray,
    fill: float,
    dtype: Any,
) -> np.ndarray:
    """Return an array of this shape with the values at the places `at`, and `fill` elsewhere."""
    result = np.full(shape, fill, dtype)
    result[at] = values
    return result


def scores_of(
    frame: pd.DataFrame,
    score: str | None,
    index: Int[np.ndarray, " row"],
    shape: tuple[int, int, int],
    at: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> Float[Array, "item judge sample"] | None:
    """Return the scores of the votes at the places `at`, NaN without a vote; None without scores.

    Raises
    ------
    JudgeBayesError
        For a score beside a vote that is not a finite number.
    """
    if score is None:
        return None
    values = pd.to_numeric(frame[score], errors="coerce").to_numpy(float)
    bad = ~np.isfinite(values) & (index >= 0)
    if bad.any():
        row = int(np.argmax(bad))
        raise JudgeBayesError(
            f"Row {frame.index[row]} of column {score!r} holds {_shown(frame[score].iloc[row])} "
            "beside a vote; a score is a finite number."
        )
    return jnp.asarray(scattered(shape, at, np.where(index >= 0, values, np.nan), np.nan, float))


def _shown(value: object) -> str:
    plain = canonical(value)
    return str(value) if plain is None else repr(plain)
