"""The edge: pandas in, integer arrays out, pandas back."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Float, Int

from judgebayes.arrays import AnyArray
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.sentence import sentence
from judgebayes.votes.array import MISSING, Votes, from_counts
from judgebayes.votes.classes import (
    Classes,
    canonical,
    given_classes,
    infer_classes,
    listing,
    written,
)
from judgebayes.votes.sparse import AnyVotes

__all__ = ["ORDERS", "SUSPICIOUS_VOTES", "Coding", "encode", "encode_counts", "encode_wide"]

VotesAs = Literal["shown", "original"]
SUSPICIOUS_VOTES = 20
"""A judge with this many votes and never the lowest of three classes may be a binary one."""
EXACT = 2**53
"""Beyond this, several whole numbers are one float."""
MOST_NAMED = 8
"""Judges named one by one where many have missing votes."""
FEW_VALUES = 20
"""A column of so many values may number the votes of a judge that was asked again."""

ORDERS: dict[str, int] = {
    **dict.fromkeys(("ab", "a-then-b", "first", "0", "false", "original", "a_first"), 0),
    **dict.fromkeys(("ba", "b-then-a", "second", "1", "true", "swapped", "b_first"), 1),
}
"""Presentation orders as people write them: 0 as the labels mean them, 1 swapped."""


@dataclass(frozen=True)
class Coding:
    """What the arrays mean: the way back from indices to the names in the user's table."""

    items: pd.Index
    judges: pd.Index
    classes: Classes
    tasks: pd.Index | None = None
    missing: pd.Series = field(default_factory=lambda: pd.Series(dtype=int))
    """How many votes of each judge are recorded as missing or unreadable."""
    flipped: int = 0
    """How many votes were given in swapped order and turned round."""
    recorded: pd.Series = field(default_factory=lambda: pd.Series(dtype=int))
    """How many votes of each judge the table has a row or cell for, missing ones among them."""
    asked: Int[np.ndarray, "item judge"] | None = None
    """How many of these are on each item: 0 where the judge was never asked. None if not known."""

    def __repr__(self) -> str:
        """Summarise."""
        return (
            f"Coding({len(self.items)} items, {len(self.judges)} judges, "
            f"classes {', '.join(self.classes.names)})"
        )

    @property
    def coords(self) -> dict[str, list[Any]]:
        """The names along the axes of a posterior: `fit.to_arviz(coding.coords)`."""
        classes = self.classes.names
        named = {"item": self.items, "judge": self.judges, "class": classes, "vote": classes}
        if self.tasks is not None:
            named["task"] = self.tasks
        return {axis: list(of) for axis, of in named.items()}

    def labels(
        self,
        frame: "pd.DataFrame | pd.Series",
        *,
        item: str = "item",
        label: str = "label",
        unknown_items: Literal["error", "drop"] = "error",
        allow_degenerate: bool = False,
    ) -> Int[np.ndarray, " item"]:
        """Return the class index of every item's label, -1 where it has none.

        Parameters
        ----------
        frame
            A table with a row per item, or per vote with the item's label repeated; or a Series
            of labels with the items as its index.
        item, label
            Its columns.
        unknown_items
            What to do with a label of an item that has no votes.
        allow_degenerate
            Accept labels that are all the same. A constant label makes every calibrator look
            perfect, so it is refused unless asked for.

        Raises
        ------
        JudgeBayesError
            For a label of an unknown class, two labels of one item, an item without votes, no
            label at all, or constant labels.

        Examples
        --------
        >>> import pandas as pd
        >>> table = pd.DataFrame({"item": list("abc"), "judge": "j", "vote": [1, 0, 1]})
        >>> votes, coding = encode(table)
        >>> coding.labels(pd.DataFrame({"item": ["a", "b"], "label": [1, 0]})).tolist()
        [1, 0, -1]
        """
        if isinstance(frame, pd.Series):
            frame, item, label = (
                frame.rename("label").rename_axis("item").reset_index(),
                "item",
                "label",
            )
        require_columns(frame, {"item": item, "label": label})
        given = _class_indices(frame[label], self.classes, f"column {label!r}")
        where = _align(self.items, keys(frame[item], item))
        strangers = (where < 0) & (given >= 0)
        if strangers.any() and unknown_items == "error":
            names = frame.loc[strangers, item].unique()
            raise JudgeBayesError(
                f"Column {label!r} labels {len(names)} item(s) that have no votes: "
                f"{listing(names)}. Those with votes are named {listing(self.items, 3)}. Check that the "
                "items are named alike in both tables, or drop "
                "those labels (--drop-unknown-labels, unknown_items='drop')."
            )
        result = np.full(len(self.items), MISSING, np.int32)
        keep = (where >= 0) & (given >= 0)
        result[where[keep]] = given[keep]
        clash = keep & (result[np.maximum(where, 0)] != given)
        if clash.any():
            row = int(np.argmax(clash))
            raise JudgeBayesError(
                f"Item {canonical(frame[item].iloc[row])!r} has more than one label in column {label!r} "
                f"(row {frame.index[row]} says {canonical(frame[label].iloc[row])!r}); an item has one "
                "label."
            )
        known = np.unique(result[result >= 0])
        if len(known) == 0:
            raise JudgeBayesError(
                f"No item with votes has a label in column {label!r}; label at least one item of "
                "each class."
            )
        if len(known) == 1 and not allow_degenerate:
            raise JudgeBayesError(
                f"Every label in column {label!r} is {self.classes.values[known[0]]!r}. With a "
                "constant label any calibrator looks perfect by learning that constant; give the "
                "votes an orientation in which labels differ (response order, say), or insist: "
                "--allow-degenerate at the command line, allow_degenerate=True in Python."
            )
        return result

    def decode(
        self,
        log_probs: Float[AnyArray, "item class"],
        decisions: Int[AnyArray, " item"] | None = None,
        expected_loss: Float[AnyArray, " item"] | None = None,
    ) -> pd.DataFrame:
        """Return a table with a row per item: `p(class)` columns, decision and expected loss.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> table = pd.DataFrame({"item": list("ab"), "judge": "j", "vote": [1, 0]})
        >>> votes, coding = encode(table)
        >>> print(coding.decode(np.log([[0.25, 0.75], [0.5, 0.5]]), np.array([1, 0])))
          item  p(0)  p(1)  decision
        0    a  0.25  0.75         1
        1    b  0.50  0.50         0
        """
        probs = np.exp(np.asarray(log_probs))
        if probs.shape != (len(self.items), len(self.classes)):
            raise JudgeBayesError(
                f"The probabilities have the shape {probs.shape}; this coding has "
                f"{len(self.items)} items and {len(self.classes)} classes."
            )
        columns = [f"p({name})" for name in self.classes.names]
        table = pd.DataFrame(probs, index=self.items, columns=columns)
        if decisions is not None:
            table["decision"] = self.values(decisions)
        if expected_loss is not None:
            table["expected_loss"] = np.asarray(expected_loss)
        return table.reset_index()

    def values(self, index: Int[AnyArray, "*any"]) -> list[Any]:
        """Return the classes that indices stand for, None for -1."""
        return [None if i < 0 else self.classes.values[i] for i in np.asarray(index).tolist()]

    def words(self, votes: AnyVotes) -> list[str]:
        """Return what was read, in sentences: sizes, missing votes, flipped votes."""
        cast = int((np.asarray(votes.index) >= 0).sum())
        lines = [
            f"{cast} votes of {len(self.judges)} judge(s) on {len(self.items)} items, "
            f"classes {', '.join(self.classes.names)} (low to high)."
        ]
        silent = self.missing[self.missing > 0]
        if len(silent):
            most = silent.sort_values(ascending=False, kind="stable").head(MOST_NAMED)
            counts = ", ".join(f"{judge} {n}" for judge, n in most.items())
            rest = len(silent) - len(most)
            lines.append(
                f"Missing or unreadable votes: {int(silent.sum())} of {len(silent)} judge(s): "
                f"{counts}{f' and {rest} more judges' if rest else ''}."
            )
        if self.asked is not None:
            on = pd.Series((self.asked > 0).sum(0), index=self.judges)
            lines += partly_asked(on, len(self.items))
        elif len(self.recorded) and votes.n_samples == 1:  # a list: a record is an item
            lines += partly_asked(self.recorded, len(self.items))
        if isinstance(votes, Votes) and votes.order is not None:
            swapped = int(((np.asarray(votes.order) == 1) & (np.asarray(votes.index) >= 0)).sum())
            lines.append(
                f"{swapped} of {cast} votes were given with the responses swapped; "
                + (
                    f"{self.flipped} were turned round."
                    if self.flipped
                    else "none was turned round."
                )
            )
        return [sentence(line) for line in lines]


def partly_asked(on: pd.Series, n_items: int) -> list[str]:
    """Return in a sentence which judges were asked on how many of the items, if not on all."""
    part = on[on < n_items].sort_values(kind="stable")
    if len(part) == 0:
        return []
    shown = ", ".join(f"{judge} {n}" for judge, n in part.head(MOST_NAMED).items())
    rest = len(part) - MOST_NAMED
    return [
        f"Asked on some of the {n_items} items only: {len(part)} judge(s): {shown}"
        f"{f' and {rest} more judges' if rest > 0 else ''}. Items that a judge was not asked on "
        "are no missing votes."
    ]


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
) -> tuple[Votes, Coding]:
    """Turn a long table of votes, a row each, into arrays.

    Parameters
    ----------
    frame
        The table. Sentences name its rows by their index.
    item, judge, vote
        Its columns; `judge=None` where all votes are one judge's. A vote that is empty, NaN or
        None is missing: it counts for nothing and is reported per judge. An item without a row of a
        judge is one that the judge was never asked on, which is something else.
    sample
        The column that numbers the repeated votes of a judge on an item.
    order
        The column that tells in which order the responses were shown: AB (as the labels mean
        them) or BA (swapped). Any two values are read as such if they are one of `AB BA`,
        `first second`, `0 1`, `original swapped`.
    votes_as
        Required with `order`. `"shown"`: the vote names what was shown first or second, so votes
        in swapped order are turned round, here and nowhere else. `"original"`: it already refers
        to the responses as the labels do.
    score
        A column with a number that came with the vote, its confidence say.
    task
        A column with the task of the item.
    classes
        The values of a vote from lowest to highest; inferred if binary or ternary.
    pairwise
        Whether the two ends of the scale are responses that could change places; inferred.

    Returns
    -------
    tuple
        The votes, and the coding that leads back.

    Raises
    ------
    JudgeBayesError
        For a missing column, an unknown class, a repeated vote, a judge without votes, an unknown
        order, a score that is NaN, or an item in two tasks.

    Examples
    --------
    >>> table = pd.DataFrame({"item": [1, 1, 2], "judge": "j", "vote": [1, 0, -1],
    ...                       "sample": [0, 1, 0]})
    >>> votes, coding = encode(table, sample="sample")
    >>> votes.pooled_counts().tolist()
    [[0, 1, 1], [1, 0, 0]]
    """
    require_columns(
        frame,
        {
            "item": item,
            "judge": judge,
            "vote": vote,
            "sample": sample,
            "order": order,
            "score": score,
            "task": task,
        },
    )
    if len(frame) == 0:
        raise JudgeBayesError("The table of votes has no row.")
    scale = _scale(frame[vote], classes, pairwise, f"column {vote!r}")
    index = _class_indices(frame[vote], scale, f"column {vote!r}")
    item_of, items = _factorize(frame[item], item)
    if judge is None:
        judge_of, judges = np.zeros(len(frame), np.int64), pd.Index(["judge"], name="judge")
    else:
        judge_of, judges = _factorize(frame[judge], judge)
    cast = np.bincount(judge_of[index >= 0], minlength=len(judges))
    if (cast == 0).any():
        raise JudgeBayesError(
            f"Judge {listing(judges[cast == 0])} has no vote in column {vote!r}: every one is "
            "missing. Leave such a judge out of the table (a column: --ignore)."
        )
    swapped = _orders(frame, order, votes_as)
    flipped = 0
    if swapped is not None and votes_as == "shown":
        turn = (swapped == 1) & (index >= 0)
        index = np.where(turn, len(scale) - 1 - index, index)
        flipped = int(turn.sum())
    if classes is None:
        _refuse_mixed(index, judge_of, judges, scale)
    used = (vote, score, task)
    slot = _slots(frame, item_of, judge_of, sample, swapped, (item, judge, sample, order), used)
    shape = (len(items), len(judges), int(slot.max()) + 1)
    at = (item_of, judge_of, slot)
    votes = Votes(
        index=jnp.asarray(
            _scatter(shape, at, index, MISSING, np.int8 if len(scale) < 128 else np.int32)
        ),
        score=_scores(frame, score, index, shape, at),
        order=None
        if swapped is None
        else jnp.asarray(_scatter(shape, at, swapped, MISSING, np.int8)),
        task=None,
        n_classes=len(scale),
    )
    tasks = None
    if task is not None:
        votes, tasks = _with_tasks(votes, frame, item, task, item_of)
    missing = pd.Series(
        np.bincount(judge_of[index < 0], minlength=len(judges)), index=judges, name="missing"
    )
    recorded = pd.Series(
        np.bincount(judge_of, minlength=len(judges)), index=judges, name="recorded"
    )
    asked = np.zeros(shape[:2], np.min_scalar_type(shape[2]))
    by_slot = np.argsort(slot, kind="stable")  # of several values for a place, the last stays
    asked[item_of[by_slot], judge_of[by_slot]] = slot[by_slot] + 1
    return votes, Coding(items, judges, scale, tasks, missing, flipped, recorded, asked)


def encode_wide(
    matrix: "pd.DataFrame | np.ndarray",
    *,
    classes: Sequence[object] | Classes | None = None,
    missing: int | None = None,
    pairwise: bool | None = None,
) -> tuple[Votes, Coding]:
    """Turn an item x judge table, a vote in each cell, into arrays.

    Parameters
    ----------
    matrix
        Rows are items, columns judges; NaN and None are missing votes. Whether the judge was asked
        at all, such a table cannot tell: a long one can.
    classes, pairwise
        As in `encode`.
    missing
        A number that also means "no vote", -1 say. It must be told: -1 is a class of its own
        where votes are ternary.

    Raises
    ------
    JudgeBayesError
        As `encode` does; and where -1 stands among 0 and 1, no cell is empty, and neither
        `classes` nor `missing` says what it means.

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
    if table.index.has_duplicates:
        twice = table.index[table.index.duplicated()].unique()
        raise JudgeBayesError(f"Item {listing(twice)} has more than one row.")
    cells = table.to_numpy(dtype=object)
    present = set(map(canonical, pd.unique(cells.ravel())))
    if classes is None and missing is None and -1 in present and present <= {-1, 0, 1}:
        raise JudgeBayesError(
            "The matrix holds -1 and no empty cell. If -1 means no vote, pass missing=-1 (in a file, "
            "leave such cells empty); if it is a class, name the classes: classes=(-1, 0, 1), "
            "--classes=-1,0,1 at the command line."
        )
    long = pd.DataFrame(
        {
            "item": np.repeat(np.asarray(table.index, dtype=object), table.shape[1]),
            "judge": np.tile(np.asarray(table.columns, dtype=object), table.shape[0]),
            "vote": cells.ravel(),
        }
    )
    if missing is not None:
        long.loc[long["vote"].map(canonical) == missing, "vote"] = None
    scale = _scale(long["vote"], classes, pairwise, "the matrix")
    unknown = [v for v in pd.unique(long["vote"]) if scale.index(v) is None]
    if unknown:
        row = int(np.argmax(long["vote"] == unknown[0]))
        raise JudgeBayesError(
            f"Item {canonical(long['item'].iloc[row])!r} of column {long['judge'].iloc[row]!r} holds "
            f"{canonical(unknown[0])!r}, which is none of the classes {listing(scale.values)}."
        )
    votes, coding = encode(long, classes=scale if classes is not None else None, pairwise=pairwise)
    if table.index.name is not None:
        coding = replace(coding, items=coding.items.rename(table.index.name))
    return votes, coding


def encode_counts(
    frame: pd.DataFrame,
    counts: Mapping[object, str],
    *,
    item: str = "item",
    pairwise: bool | None = None,
) -> tuple[Votes, Coding]:
    """Turn a table of vote counts, a row per item, into the votes of one judge.

    Parameters
    ----------
    frame
        The table.
    counts
        The column of each class, from the lowest to the highest:
        ``{-1: "b_wins", 0: "ties", 1: "a_wins"}``.
    item
        The column of the item.
    pairwise
        As in `encode`.

    Raises
    ------
    JudgeBayesError
        For a missing column, an item with two rows, or a count that is not a whole number.
    """
    columns = list(counts.values())
    require_columns(frame, {"item": item, **{f"count of {c!r}": n for c, n in counts.items()}})
    items = pd.Index(keys(frame[item], item), name=item)
    if items.has_duplicates:
        twice = items[items.duplicated()].unique()
        raise JudgeBayesError(f"Item {listing(twice)} has more than one row of counts.")
    numbers = frame[columns].apply(pd.to_numeric, errors="coerce").to_numpy(float)
    votes = from_counts(numbers)
    judges = pd.Index(["judge"], name="judge")
    return votes, Coding(items, judges, given_classes(list(counts), pairwise))


def require_columns(frame: pd.DataFrame, columns: dict[str, str | None]) -> None:
    """Check that a table has the columns of every role, each once."""
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
            require_one_line(frame, name)


def require_plain(column: pd.Series, name: str) -> None:
    """Check that no cell of a column is a list or another thing that is no one value."""
    if not pd.api.types.is_object_dtype(column.dtype):
        return
    kinds = column.map(type)
    for kind in kinds.unique():
        row = int(np.argmax(kinds == kind))
        if not pd.api.types.is_scalar(column.iloc[row]) or issubclass(kind, (bytes, complex)):
            raise JudgeBayesError(
                f"Row {column.index[row]} of column {name!r} holds a {kind.__name__}, "
                f"{column.iloc[row]!r}; right would be text or a number."
            )


def require_one_line(frame: pd.DataFrame, name: str) -> None:
    """Check that no text in a column of names or votes holds a line break.

    Where a quotation mark is not paired, hundreds of rows of a CSV file become one such text.
    """
    column = frame[name]
    if pd.api.types.is_numeric_dtype(column.dtype):
        return
    for value in column.dropna().unique():
        if isinstance(value, str) and ("\n" in value or "\r" in value):
            row = column.index[int(np.argmax(column == value))]
            spans = frame.attrs.get("spans")
            raise JudgeBayesError(
                f"Row {row} of column {name!r} holds a line break: {value[:40]!r}"
                f"{spans.of(row) if spans is not None else ''}. Take it out; in a CSV file, look for a "
                "quotation mark that is not paired, which makes many rows one."
            )


def _scale(
    column: pd.Series, classes: Sequence[object] | Classes | None, pairwise: bool | None, what: str
) -> Classes:
    if isinstance(classes, Classes):
        return classes
    if classes is not None:
        return given_classes(classes, pairwise)
    scale = infer_classes(column.unique(), what)
    return scale if pairwise is None else Classes(scale.values, pairwise)


def _class_indices(column: pd.Series, classes: Classes, what: str) -> Int[np.ndarray, " row"]:
    code, values = pd.factorize(column, use_na_sentinel=True)
    known = [classes.index(value) for value in values]
    for position, found in enumerate(known):
        if found is None:
            row = int(np.argmax(code == position))
            value = canonical(values[position])
            hint = (
                " The scale looks binary, but this value belongs to a ternary one. If it is, name the "
                "classes: classes=(-1, 0, 1), --classes=-1,0,1 at the command line."
                if classes.values == (0, 1) and value == -1
                else ""
            )
            if isinstance(value, str) and "," in value:
                hint = " A name that holds a comma is put in double quotes: --classes '\"a, b\",c'."
            raise JudgeBayesError(
                f"Row {column.index[row]} of {what} holds {value!r}, which is none of the classes "
                f"{listing(classes.values)}.{hint}"
            )
    table = np.array([*(k for k in known if k is not None), MISSING], dtype=np.int64)
    return table[code]


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


def _align(items: pd.Index, names: pd.Index) -> Int[np.ndarray, " row"]:
    """Return the position of each name among the items, -1 where there is none.

    Where one table holds numbers and the other text, both are compared as text.
    """
    if pd.api.types.is_numeric_dtype(items.dtype) != pd.api.types.is_numeric_dtype(names.dtype):
        items, names = items.astype(str), names.astype(str)
    return items.get_indexer(names)


def _factorize(column: pd.Series, name: str) -> tuple[Int[np.ndarray, " row"], pd.Index]:
    code, values = pd.factorize(keys(column, name))
    return code, pd.Index(values, name=name)


def _orders(
    frame: pd.DataFrame, order: str | None, votes_as: VotesAs | None
) -> Int[np.ndarray, " row"] | None:
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


def _refuse_mixed(
    index: Int[np.ndarray, " row"],
    judge_of: Int[np.ndarray, " row"],
    judges: pd.Index,
    scale: Classes,
) -> None:
    """Refuse an inferred ternary scale on which a busy judge votes 0 and 1 only."""
    if scale.values != (-1, 0, 1) or len(judges) < 2:
        return
    for judge in range(len(judges)):
        own = index[(judge_of == judge) & (index >= 0)]
        if len(own) >= SUSPICIOUS_VOTES and set(own.tolist()) == {1, 2}:
            raise JudgeBayesError(
                f"Judge {judges[judge]!r} votes 0 and 1 only, {len(own)} times, while others also "
                "vote -1: binary and ternary votes may be mixed. If its votes are ternary, name the "
                "classes: classes=(-1, 0, 1), --classes=-1,0,1 at the command line."
            )


def _slots(
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


def _scatter(
    shape: tuple[int, int, int],
    at: tuple[np.ndarray, np.ndarray, np.ndarray],
    values: np.ndarray,
    fill: float,
    dtype: Any,
) -> np.ndarray:
    result = np.full(shape, fill, dtype)
    result[at] = values
    return result


def _scores(
    frame: pd.DataFrame,
    score: str | None,
    index: Int[np.ndarray, " row"],
    shape: tuple[int, int, int],
    at: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> Float[Array, "item judge sample"] | None:
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
    return jnp.asarray(_scatter(shape, at, np.where(index >= 0, values, np.nan), np.nan, float))


def _shown(value: object) -> str:
    plain = canonical(value)
    return str(value) if plain is None else repr(plain)


def _with_tasks(
    votes: Votes, frame: pd.DataFrame, item: str, task: str, item_of: Int[np.ndarray, " row"]
) -> tuple[Votes, pd.Index]:
    task_of, tasks = _factorize(frame[task], task)
    result = np.zeros(votes.n_items, np.int32)
    result[item_of] = task_of
    clash = result[item_of] != task_of
    if clash.any():
        row = int(np.argmax(clash))
        raise JudgeBayesError(
            f"Item {canonical(frame[item].iloc[row])!r} stands in more than one task (row "
            f"{frame.index[row]} says {canonical(frame[task].iloc[row])!r}); an item has one task."
        )
    with_tasks = Votes(
        votes.index, votes.score, votes.order, jnp.asarray(result), votes.n_classes, len(tasks)
    )
    return with_tasks, tasks
