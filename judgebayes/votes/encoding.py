"""Encoding of tables of votes, long and wide, as integer arrays; and as a list."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Bool, Float, Int

from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.votes.array import MISSING, UNDECIDED, SparseVotes, Votes
from judgebayes.votes.classes import Classes, canonical, listing, scale_of
from judgebayes.votes.coding import Coding
from judgebayes.votes.columns import (
    ORDERS,
    UNKNOWN,
    VotesAs,
    cell_of,
    class_indices,
    first_row,
    numbered,
    numbers_in,
    require_columns,
)

SUSPICIOUS_VOTES = 20
"""A judge with this many votes, none of them the lowest of three classes, may be binary."""
LARGEST = 2**31
"""The most cells item x judge x sample of a table: bytes, as a vote takes one."""


@in_float64
def encode(
    frame: pd.DataFrame,
    *,
    item: str = "item",
    judge: str | None = "judge",
    vote: str = "vote",
    sample: str | None = None,
    order: str | None = None,
    votes_as: VotesAs | None = None,
    score: str | None = None,
    task: str | None = None,
    classes: Sequence[object] | Classes | None = None,
    pairwise: bool | None = None,
    undecided: Sequence[object] = (),
) -> tuple[Votes, Coding]:
    """Encode a long table, with one vote per row, as arrays.

    Parameters
    ----------
    frame
        The table. Error messages name its rows by their index.
    item, judge, vote
        Its columns; `judge=None` if all votes are of one judge. A vote that is empty, NaN or None is
        missing: it is ignored and counted per judge. If a judge has no row for an item, the judge was
        never asked on it, which is not counted as missing.
    sample
        The column that numbers the repeated votes of a judge on an item.
    order
        The column with the order in which the responses were shown: AB (as in the labels) or BA
        (swapped). Other accepted pairs of values: `first second`, `0 1`, `original swapped`.
    votes_as
        Required with `order`. `"shown"`: the vote names the response shown first or second, so votes
        in swapped order are reversed, here and nowhere else. `"original"`: the vote already refers to
        the responses as the labels do.
    score
        A column with a number that came with the vote, such as its confidence.
    task
        A column with the task of the item.
    classes
        The values of a vote from lowest to highest; inferred if binary or ternary.
    pairwise
        Whether the two ends of the scale are responses that could be swapped; inferred.
    undecided
        Values of votes that are for no class, such as "tie" where no label is a tie: `UNDECIDED`.

    Returns
    -------
    tuple
        The votes, and the coding that maps indices back to names.

    Raises
    ------
    JudgeBayesError
        For a missing column, an unknown class, a repeated vote, a judge without votes, an unknown
        order, a score that is NaN, an item in two tasks, or a table of more than 2 GB.

    Examples
    --------
    >>> table = pd.DataFrame({"item": [1, 1, 2], "judge": "j", "vote": [1, 0, -1],
    ...                       "sample": [0, 1, 0]})
    >>> votes, coding = encode(table, sample="sample")
    >>> votes.pooled_counts().tolist()
    [[0, 1, 1], [1, 0, 0]]
    """
    columns = {
        "item": item,
        "judge": judge,
        "vote": vote,
        "sample": sample,
        "order": order,
        "score": score,
        "task": task,
    }
    rows, coding = _coded(frame, columns, votes_as, classes, pairwise, undecided)
    shape = (len(coding.items), len(coding.judges), int(rows.slot.max()) + 1)
    if (cells := np.prod(shape, dtype=float)) > LARGEST:
        raise JudgeBayesError(
            f"Votes of {shape[1]:,} judges on {shape[0]:,} items need a table of {cells / 1e9:,.3g} GB; "
            f"the limit is {LARGEST / 1e9:,.3g}. For crowds whose workers vote on few items, Python has "
            "encode_sparse and DawidSkene, which do without the table."
        )

    def placed(values: np.ndarray, fill: float, dtype: type[np.generic]) -> Array:
        table = np.full(shape, fill, dtype)
        table[rows.item, rows.judge, rows.slot] = values
        return jnp.asarray(table)

    index, swapped, n_classes = rows.vote, rows.swapped, len(coding.classes)
    task_of, tasks = (None, None) if task is None else _tasks(frame, item, task, rows.item)
    scores = None if score is None else placed(_scores_of(frame, score, index), np.nan, np.float64)
    votes = Votes(
        index=placed(index, MISSING, np.int8 if n_classes < 128 else np.int32),
        score=scores,
        order=None if swapped is None else placed(swapped, MISSING, np.int8),
        task=task_of,
        n_classes=n_classes,
        n_tasks=0 if tasks is None else len(tasks),
    )
    asked = np.zeros(shape[:2], np.min_scalar_type(shape[2]))
    np.add.at(asked, (rows.item, rows.judge), asked.dtype.type(1))
    return votes, replace(coding, tasks=tasks, asked=asked)


def encode_sparse(
    frame: pd.DataFrame,
    *,
    item: str = "item",
    judge: str = "judge",
    vote: str = "vote",
    sample: str | None = None,
    classes: Sequence[object] | Classes | None = None,
    pairwise: bool | None = None,
    undecided: Sequence[object] = (),
) -> tuple[SparseVotes, Coding]:
    """Encode a long table as a list of votes, for a crowd whose table of items by workers is too large.

    Items, judges and classes are those of `encode`, with the same parameters and errors. `DawidSkene`
    takes the list.

    Examples
    --------
    >>> table = pd.DataFrame({"item": [1, 1, 2], "judge": list("aba"), "vote": [1, 0, 0]})
    >>> votes, coding = encode_sparse(table)
    >>> votes
    SparseVotes(3 votes, 2 items, 2 judges, 2 classes)
    """
    columns = {"item": item, "judge": judge, "vote": vote, "sample": sample}
    rows, coding = _coded(frame, columns, None, classes, pairwise, undecided)
    cast = np.flatnonzero(rows.vote >= 0)
    cast = cast[np.argsort(rows.item[cast], kind="stable")]
    index, item_of, judge_of = (each[cast].astype(np.int32) for each in rows[:3])
    sizes = len(coding.items), len(coding.judges), len(coding.classes)
    return SparseVotes(item_of, judge_of, index, *sizes), coding


def encode_wide(
    matrix: "pd.DataFrame | np.ndarray",
    *,
    classes: Sequence[object] | Classes | None = None,
    missing: int | None = None,
    pairwise: bool | None = None,
    undecided: Sequence[object] = (),
) -> tuple[Votes, Coding]:
    """Encode an item x judge table, with one vote per cell, as arrays.

    Parameters
    ----------
    matrix
        Rows are items, columns judges; NaN and None are missing votes. A wide table does not record
        whether a judge was asked at all; a long table does.
    classes, pairwise, undecided
        As in `encode`.
    missing
        A number that also means "no vote", such as -1. It must be given, because -1 is a class of
        ternary votes.

    Raises
    ------
    JudgeBayesError
        As `encode` does; and if the values are -1, 0 and 1, no cell is empty, and neither `classes`
        nor `missing` is given.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"item": ["a", "b"], "ann": [1, 0], "ben": [1, None]})
    >>> votes, coding = encode_wide(table.set_index("item"))
    >>> votes.index[:, :, 0].tolist()
    [[1, 1], [0, -1]]
    >>> list(coding.judges)
    ['ann', 'ben']
    """
    table = matrix if isinstance(matrix, pd.DataFrame) else pd.DataFrame(np.asarray(matrix))
    if table.columns.has_duplicates:
        twice = table.columns[table.columns.duplicated()].unique()
        raise JudgeBayesError(f"Judge {listing(twice)} has more than one column.")
    cells = table.to_numpy(dtype=object)
    present = set(map(canonical, pd.unique(cells.ravel())))
    if classes is None and missing is None and -1 in present and present <= {-1, 0, 1}:
        raise JudgeBayesError(
            "The matrix contains -1, but no empty cell. If -1 means no vote, pass missing=-1 (in "
            "a file, leave such cells empty); if it is a class, name the classes: classes=(-1, "
            "0, 1), --set classes=-1,0,1 at the command line."
        )
    items = np.repeat(np.asarray(table.index, dtype=object), table.shape[1])
    judges = np.tile(np.asarray(table.columns, dtype=object), table.shape[0])
    long = pd.DataFrame({"item": items, "judge": judges, "vote": cells.ravel()}, items)
    if missing is not None:
        long.loc[long["vote"].map(canonical) == missing, "vote"] = None
    votes, coding = encode(long, classes=classes, pairwise=pairwise, undecided=undecided)
    return votes, replace(coding, items=coding.items.rename(table.index.name or "item"))


class _Rows(NamedTuple):
    """The rows of a long table as numbers."""

    vote: Int[np.ndarray, " row"]
    """The index of the class, `MISSING` or `UNDECIDED`."""
    item: Int[np.ndarray, " row"]
    judge: Int[np.ndarray, " row"]
    slot: Int[np.ndarray, " row"]
    """The position of each vote among those of its judge on its item."""
    swapped: Int[np.ndarray, " row"] | None


def _coded(
    frame: pd.DataFrame,
    columns: dict[str, str | None],
    votes_as: VotesAs | None,
    classes: Sequence[object] | Classes | None,
    pairwise: bool | None,
    undecided: Sequence[object],
) -> tuple[_Rows, Coding]:
    """Return the rows of a table whose columns are given by their roles, and its names."""
    require_columns(frame, columns)
    if len(frame) == 0:
        raise JudgeBayesError("The table of votes has no row.")
    item, judge, vote = str(columns["item"]), columns["judge"], str(columns["vote"])
    scale = scale_of(frame[vote].unique(), classes, pairwise, f"column {vote!r}", undecided)
    names = pd.Series("judge", frame.index) if judge is None else frame[judge]
    index = class_indices(frame[vote], scale, None if judge is None else names)
    item_of, items = numbered(frame[item], item)
    judge_of, judges = numbered(names, judge or "judge")
    cast = np.bincount(judge_of[index != MISSING], minlength=len(judges))
    if (cast == 0).any():
        raise JudgeBayesError(
            f"Judge {listing(judges[cast == 0])} has no votes in column {vote!r}: all are "
            "missing. Remove such a judge from the table; in a wide file, ignore its column with "
            "--set ignore=COLUMN."
        )
    swapped = _orders_of(frame, columns.get("order"), votes_as)
    flips = np.zeros(len(frame), bool)
    if swapped is not None and votes_as == "shown":
        flips = (swapped == 1) & (index >= 0)
        index = np.where(flips, len(scale) - 1 - index, index)
    if classes is None:
        _refuse_mixed(index, judge_of, judges, scale)
    slot = _slots_of(frame, item_of, judge_of, swapped, columns)

    def by_judge(name: str, rows: Bool[np.ndarray, " row"]) -> pd.Series:
        return pd.Series(np.bincount(judge_of[rows], minlength=len(judges)), judges, name=name)

    coding = Coding(
        items,
        judges,
        scale,
        missing=by_judge("missing", index == MISSING),
        flipped=int(flips.sum()),
        undecided=by_judge("undecided", index == UNDECIDED),
    )
    return _Rows(index, item_of, judge_of, slot, swapped), coding


def _tasks(
    frame: pd.DataFrame, item: str, task: str, item_of: Int[np.ndarray, " row"]
) -> tuple[Array, pd.Index]:
    """Return the task of each item, and the tasks' names."""
    task_of, tasks = numbered(frame[task], task)
    result = np.zeros(item_of.max() + 1, np.int32)
    result[item_of] = task_of
    if (row := first_row(result[item_of] != task_of)) is not None:
        raise JudgeBayesError(
            f"Item {canonical(frame[item].iloc[row])!r} is in more than one task (row "
            f"{frame.index[row]} says {canonical(frame[task].iloc[row])!r}); an item must have "
            "one task."
        )
    return jnp.asarray(result), tasks


def _refuse_mixed(
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


def _orders_of(
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
    swapped = numbers_in(frame[order], lambda value: ORDERS.get(str(canonical(value)).casefold()))
    if (row := first_row(swapped == UNKNOWN)) is not None:
        if canonical(frame[order].iloc[row]) is None:
            raise JudgeBayesError(f"Row {frame.index[row]} has no value in column {order!r}.")
        raise JudgeBayesError(
            f"{cell_of(frame[order], row)}; use AB or BA (or first/second, 0/1, original/swapped)."
        )
    return swapped


def _slots_of(
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


def _scores_of(
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
