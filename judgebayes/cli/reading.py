"""From a user's files to votes, labels and groups."""

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Int

from judgebayes.errors import JudgeBayesError
from judgebayes.io import guess_columns, read_table
from judgebayes.votes import Classes, Coding, Votes, encode, encode_wide, infer_classes
from judgebayes.votes.classes import canonical, given_classes
from judgebayes.votes.coding import ORDERS, SUSPICIOUS_VOTES

__all__ = ["Columns", "Labels", "Reading", "Source", "open_source", "read_votes"]

COMMON = 0.02
"""A value of fewer votes than this share is taken for a slip, not a class."""


@dataclass(frozen=True)
class Columns:
    """Columns as the user named them; None to guess, "none" where there is none."""

    item: str | None = None
    judge: str | None = None
    vote: str | None = None
    sample: str | None = None
    order: str | None = None
    label: str | None = None
    task: str | None = None
    group: str | None = None


@dataclass(frozen=True)
class Source:
    """Where votes come from, and how the file is to be read."""

    path: Path
    columns: Columns
    repeats: bool = False
    votes_as: str | None = None
    only_judge: str | None = None
    wide: bool = False


@dataclass(frozen=True)
class Labels:
    """A table with labels, and its item and label columns."""

    table: pd.DataFrame
    item: str
    label: str


@dataclass(frozen=True)
class Opened:
    """A file of votes with its columns told, not yet encoded."""

    source: Source
    table: pd.DataFrame
    columns: dict[str, str | None]
    labels: Labels | None


@dataclass(frozen=True)
class Reading:
    """Votes as arrays, with the group of each item where there are groups."""

    votes: Votes
    coding: Coding
    groups: Int[np.ndarray, " item"] | None
    columns: dict[str, str | None]

    def words(self) -> list[str]:
        """Return which columns were taken for what, and what was read, in sentences."""
        used = [f"{role} = {name!r}" for role, name in self.columns.items() if name is not None]
        return [f"Columns: {', '.join(used)}.", *self.coding.words(self.votes)]


def open_source(source: Source, labels: Path | None) -> Opened:
    """Read the file of votes and that of the labels, if any, and tell their columns.

    Raises
    ------
    JudgeBayesError
        If a file cannot be read, a column is not there, or a needed one cannot be told.
    """
    table = read_table(source.path)
    given = asdict(source.columns)
    for optional in ("task", "group"):
        given[optional] = given[optional] or "none"
    if source.wide:
        # The other columns are judges: only what was named is something else.
        given |= dict.fromkeys(("judge", "sample", "order"), "none")
        given.pop("vote")
        columns = guess_columns(table.columns, given) | {"vote": None}
        if labels is not None or columns["label"] not in (source.columns.label, *_plainly(table)):
            columns["label"] = None  # "human" or "reference" may be a judge
    else:
        if labels is not None:
            given["label"] = given["label"] if given["label"] in table.columns else "none"
            if given["vote"] is None and not _has_vote(table) and "label" in table.columns:
                given["vote"] = "label"  # crowd-sourcing tools call the vote so
        columns = guess_columns(table.columns, given)
    if source.columns.order is None and columns["order"] is not None:
        seen = {str(canonical(v)).casefold() for v in table[columns["order"]].dropna().unique()}
        if not seen <= set(ORDERS):
            columns["order"] = None  # a column of that name, but not of presentation orders
    if source.only_judge is not None:
        table = _rows_of(table, columns["judge"], source.only_judge)
    if labels is None:
        label = columns["label"]
        own = None if label is None else Labels(table, str(columns["item"]), label)
        return Opened(source, table, columns, own)
    return Opened(
        source, table, columns, _open_labels(labels, source.columns, str(columns["item"]))
    )


def _plainly(table: pd.DataFrame) -> list[str]:
    """Return the columns that no judge would be called."""
    return [n for n in table.columns if n.casefold() in ("label", "gold", "truth", "gold label")]


def _has_vote(table: pd.DataFrame) -> bool:
    return guess_columns(table.columns, {"vote": None, "item": None})["vote"] is not None


def _rows_of(table: pd.DataFrame, judge: str | None, name: str) -> pd.DataFrame:
    if judge is None:
        raise JudgeBayesError("--only-judge needs a column of judges; name it with --judge.")
    chosen = table[table[judge].astype(str).str.strip() == name]
    if len(chosen) == 0:
        known = ", ".join(repr(str(j)) for j in table[judge].unique()[:10])
        raise JudgeBayesError(f"There is no judge {name!r}; there are {known}.")
    return chosen.reset_index(drop=True)


def _open_labels(path: Path, columns: Columns, item: str) -> Labels:
    gold = read_table(path)
    same = item if item in gold.columns else None
    label = columns.label if columns.label in gold.columns else None
    if columns.label is not None and label is None:
        raise JudgeBayesError(
            f"There is no column {columns.label!r} for the label in {str(path)!r}; it has "
            f"{', '.join(map(repr, gold.columns))}."
        )
    found = guess_columns(gold.columns, {"item": same, "label": label})
    if found["label"] is None:
        others = [name for name in gold.columns if name != found["item"]]
        if len(others) != 1:
            raise JudgeBayesError(
                f"Which column of {str(path)!r} is the label? It has "
                f"{', '.join(map(repr, gold.columns))}; say --label NAME."
            )
        found["label"] = others[0]
    return Labels(gold, str(found["item"]), str(found["label"]))


def classes_of(opened: Opened, named: str | None, pairwise: bool | None) -> Classes:
    """Return the classes that the user named, or those that votes and labels speak of.

    Raises
    ------
    JudgeBayesError
        If the classes cannot be inferred, or votes and labels are of different kinds.
    """
    if named is not None:
        return given_classes(named.split(","), pairwise)
    what = opened.source.path.name
    votes = _inferred(opened, what)
    if opened.labels is not None:
        gold = opened.labels
        given = gold.table[gold.label].dropna().unique()
        if all(canonical(v) is None for v in given):
            return votes
        _refuse_mixed(votes, {canonical(v) for v in given}, int(gold.table[gold.label].count()))
        try:
            votes = infer_classes([*_vote_values(opened), *given], f"{what} and the labels")
        except JudgeBayesError as error:
            odd = next(v for v in given if votes.index(v) is None)
            row = int(np.argmax(gold.table[gold.label] == odd))
            raise JudgeBayesError(
                f"Row {row} of column {gold.label!r}, the labels, holds {canonical(odd)!r}; the votes "
                f"are {', '.join(votes.names)}. Labels and votes must be of one scale."
            ) from error
    return votes if pairwise is None else Classes(votes.values, pairwise)


def _inferred(opened: Opened, what: str) -> Classes:
    """Return the classes of the votes; a few odd ones among many are told by their rows."""
    values = _vote_values(opened)
    try:
        return infer_classes(values, what)
    except JudgeBayesError as error:
        table = opened.table
        cells = (
            table[_judge_columns(opened)].melt(ignore_index=False)["value"]
            if opened.source.wide
            else table[str(opened.columns["vote"])]
        )
        share = cells.map(canonical).value_counts(normalize=True)
        try:
            usual = infer_classes(share.index[share >= COMMON], what)
        except JudgeBayesError:
            raise error from None
        odd = cells[cells.map(lambda v: usual.index(v) is None)]
        raise JudgeBayesError(
            f"Row {odd.index[0]} of {what} holds {canonical(odd.iloc[0])!r}; {len(odd)} of {len(cells)} "
            f"votes are none of {', '.join(usual.names)}. Correct them, leave the cells empty, or "
            "name all classes in order: --classes 'LOW,...,HIGH'."
        ) from None


def _refuse_mixed(votes: Classes, labels: set[object], n_labels: int) -> None:
    """Refuse labels of 0 and 1 beside votes of -1, 0, 1, and the other way round."""
    labels = labels - {None}
    binary_votes = votes.values == (0, 1) and -1 in labels
    binary_labels = votes.values == (-1, 0, 1) and labels == {0, 1} and n_labels >= SUSPICIOUS_VOTES
    if binary_votes or binary_labels:
        kinds = ("binary", "ternary") if binary_votes else ("ternary", "binary")
        raise JudgeBayesError(
            f"The votes look {kinds[0]} ({', '.join(votes.names)}) and the labels {kinds[1]}: they "
            "must be of one kind. If they are, name the classes from lowest to highest, "
            "--classes=-1,0,1 or --classes=0,1."
        )


def _judge_columns(opened: Opened) -> list[str]:
    used = {name for name in opened.columns.values() if name is not None}
    return [name for name in opened.table.columns if name not in used]


def _vote_values(opened: Opened) -> list[object]:
    if opened.source.wide:
        return list(pd.unique(opened.table[_judge_columns(opened)].to_numpy(object).ravel()))
    return list(opened.table[str(opened.columns["vote"])].unique())


def read_votes(opened: Opened, classes: Classes) -> Reading:
    """Return the votes as arrays.

    Raises
    ------
    JudgeBayesError
        For bad input, as `judgebayes.votes.encode` does.
    """
    columns, source, table = opened.columns, opened.source, opened.table
    item = str(columns["item"])
    if source.wide:
        matrix = table.set_index(item)[_judge_columns(opened)]
        votes, coding = encode_wide(matrix, classes=classes)
    else:
        if columns["order"] is not None and source.votes_as is None:
            raise JudgeBayesError(
                f"Column {columns['order']!r} tells the presentation order. Say what a vote names: "
                "--votes-as shown (the response shown first or second; swapped votes are turned "
                "round) or --votes-as original (mapped back already), or --order none."
            )
        sample = columns["sample"]
        if source.repeats:
            keys = [name for name in (item, columns["judge"], columns["order"]) if name is not None]
            sample = "number of the repeat"
            table = table.assign(**{sample: table.groupby(keys, dropna=False).cumcount()})
        votes, coding = encode(
            table,
            item=item,
            judge=columns["judge"],
            vote=str(columns["vote"]),
            sample=sample,
            order=columns["order"],
            votes_as=source.votes_as if columns["order"] is not None else None,  # type: ignore[arg-type]
            task=columns["task"],
            classes=classes,
        )
    return Reading(votes, coding, _groups(table, item, columns["group"]), columns)


def _groups(table: pd.DataFrame, item: str, group: str | None) -> Int[np.ndarray, " item"] | None:
    if group is None:
        return None
    pairs = table[[item, group]].drop_duplicates()
    twice = pairs[item].duplicated()
    if twice.any():
        raise JudgeBayesError(
            f"Item {pairs[item][twice].iloc[0]!r} stands in more than one group of column "
            f"{group!r}; an item has one group."
        )
    return pd.factorize(pairs[group], use_na_sentinel=False)[0]
