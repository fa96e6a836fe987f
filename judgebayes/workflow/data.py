"""Votes and labels, read once for all functions of the workflow.

Columns of a user's tables with one value for each item.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Float

from judgebayes.arrays import ItemInts
from judgebayes.errors import JudgeBayesError
from judgebayes.io.columns import listed_roles
from judgebayes.sentence import sentences
from judgebayes.show.page import Block, Paragraph
from judgebayes.votes import MISSING, UNDECIDED, Classes, Coding, Votes
from judgebayes.votes.annotators import NODE_WEIGHTS
from judgebayes.votes.classes import listing, written
from judgebayes.votes.columns import Evidence
from judgebayes.workflow.annotators import merged
from judgebayes.workflow.machine import ReadNumbers
from judgebayes.workflow.reading import arrays_of
from judgebayes.workflow.results import Result, first_rows
from judgebayes.workflow.sources import Opened


def values_of(data: "Study", column: str) -> tuple[ItemInts, list[str]]:
    """Return the value of each item in a column of the votes or the labels, and the values' names.

    Returns
    -------
    The index of each item's value, -1 without one, and the names in alphabetical order.

    Raises
    ------
    JudgeBayesError
        If no table has the column, or an item has two values.
    """
    wrong = f"has more than one value of {column!r}; an item must have one"
    code, names = pd.factorize(by_item(data, [column], wrong)[column].to_numpy(), sort=True)
    return code, [str(name) for name in names]


def by_item(data: "Study", columns: list[str], wrong: str) -> pd.DataFrame:
    """Return the names in some columns for every item with votes, NaN where one of them is blank.

    Raises
    ------
    JudgeBayesError
        If neither the votes nor the labels have the columns, or an item has two rows of names; `wrong`
        says what is wrong with it.
    """
    tables = (pair for pair in data.opened.tables if set(columns) <= set(pair[0].columns))
    table, item = next(tables, (None, ""))
    if table is None:
        known = {name for each, _ in data.opened.tables for name in each}
        absent = [name for name in columns if name not in known]
        raise JudgeBayesError(
            f"There is no column {absent[0]!r}, in the votes or in the labels."
            if absent
            else f"No file has the columns {' and '.join(map(repr, columns))} together."
        )
    rows = table[[item, *columns]].drop_duplicates().map(written)
    rows = rows.dropna().drop_duplicates()
    twice = rows[item].duplicated()
    if twice.any():
        raise JudgeBayesError(f"Item {rows[item][twice].iloc[0]!r} {wrong}.")
    return rows.set_index(item).reindex(pd.Index(data.coding.items).astype(str))


@dataclass(frozen=True, repr=False)
class Study(Result):
    """Votes and labels that were read, to pass in place of the votes."""

    schema: ClassVar[str] = "judgebayes.study/1"
    opened: Opened
    """The tables that were read, the roles of their columns, and what was left out."""
    votes: Votes
    coding: Coding
    groups: ItemInts | None
    """The group of each item, if there are groups."""
    labels: ItemInts
    log_likelihood: Float[np.ndarray, "node item class"] | None = None
    """Log-probabilities of the annotators' labels, if they may be wrong; see `ErrorRates.nodes`."""
    label_noise: float = 0.0
    """The estimated share of wrong labels, of merged labels that may be wrong."""

    @property
    def how(self) -> dict[str, Any]:
        """How the files were read, as keys of a study file: `judgebayes.read(votes, labels, **how)`."""
        return dict(self.opened.how)

    @property
    def labelled(self) -> bool:
        """Whether there is a source of labels."""
        return self.opened.labels is not None

    def words(self) -> list[str]:
        """Return the role of each column and which votes were read, in sentences."""
        columns, judges = self.opened.columns, list(map(str, self.coding.judges))
        lines = [*self.opened.notes, f"Columns: {listed_roles(columns)}."]
        wide = columns.get("vote") is None
        if wide:
            lines.append(f"Judges: {listing(judges, 20)}.")
        lines += self.coding.words(self.votes)
        return sentences(lines)

    @property
    def evidence(self) -> Evidence | None:
        """What labels of two classes that may be wrong say for the higher; None if they are right."""
        if self.log_likelihood is None:
            return None
        low, high = (np.where(self.labels >= 0, self.log_likelihood[..., k], 0.0) for k in (0, 1))
        return Evidence(high - low, NODE_WEIGHTS)

    @property
    def said(self) -> list[str]:
        """The role of each column, and what was read, in sentences."""
        lines = self.words()
        if (self.labels >= 0).any():
            lines.append(labelled_words(self.labels, self.coding.classes))
        return lines

    @property
    def blocks(self) -> list[Block]:
        """What was read, and the first items and judges."""
        return [
            *map(Paragraph, self.said),
            *(first_rows(name, table) for name, table in self.tables.items()),
        ]

    @property
    def numbers(self) -> ReadNumbers:
        """The numbers of items, labels, judges and votes."""
        return {
            "items": len(self.labels),
            "labels": int((self.labels >= 0).sum()),
            "judges": len(self.coding.judges),
            "votes": int((np.asarray(self.votes.index) >= 0).sum()),
        }

    @property
    def items(self) -> pd.DataFrame:
        """A row per item: its votes, and its label if it has one."""
        coding = self.coding
        return pd.DataFrame(
            {
                "item": coding.items,
                "votes": np.asarray(self.votes.pooled_counts()).sum(1),
                "label": pd.Series(coding.values(self.labels), dtype=object),
            }
        )

    @property
    def judges(self) -> pd.DataFrame:
        """A row per judge: its votes, and how many are recorded as missing or unreadable."""
        coding, there = self.coding, np.asarray(self.votes.index) >= 0
        undecided = coding.undecided.reindex(coding.judges).fillna(0).to_numpy(int)
        missing = coding.missing.reindex(coding.judges).fillna(0).to_numpy(int)
        columns = {"judge": coding.judges, "votes": there.sum((0, 2)), "missing": missing}
        return pd.DataFrame(columns | ({"undecided": undecided} if undecided.any() else {}))

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The items and the judges."""
        return {"items": self.items, "judges": self.judges}


def encoded(opened: Opened, classes: Classes) -> Study:
    """Return the votes and labels of opened files as arrays. Labels may be constant.

    Raises
    ------
    JudgeBayesError
        For bad input.
    """
    votes, coding = arrays_of(opened, classes)
    opened, likelihood, rate = merged(opened, coding)
    column, gold = opened.columns["group"], opened.labels
    labels = np.full(len(coding.items), MISSING)
    if gold is not None:
        labels = coding.labels(
            gold.table,
            item=gold.item,
            label=gold.label,
            unknown_items="drop" if opened.request.drop_unknown_labels else "error",
            allow_degenerate=True,
        )
    data = Study(opened, votes, coding, None, labels, likelihood, rate)
    return data if column is None else _grouped(data, column)


def _grouped(data: Study, column: str) -> Study:
    """Return the data with the group of each item; one without a group is alone, which is noted."""
    wrong = f"is in more than one group of column {column!r}; an item must have one group"
    groups, names = pd.factorize(by_item(data, [column], wrong)[column].to_numpy())
    alone = groups < 0
    if not alone.any():
        return replace(data, groups=groups)
    groups[alone] = len(names) + np.arange(alone.sum())
    note = f"{alone.sum()} item(s) have no group in column {column!r}: each is a group of its own."
    opened = replace(data.opened, notes=(*data.opened.notes, note))
    return replace(data, opened=opened, groups=groups)


def labelled_words(labels: ItemInts, classes: Classes) -> str:
    """Return a sentence with the number of labelled items, in total and by class."""
    names = classes.names
    counts = np.bincount(labels[labels >= 0], minlength=len(names))
    shares = ", ".join(f"{n}: {c}" for n, c in zip(names, counts, strict=True))
    return f"{counts.sum()} of {len(labels)} items are labelled ({shares})."


def grouped_words(data: Study, effect: str) -> list[str]:
    """Return how many groups there are, and their effect, in a sentence; nothing without groups."""
    if data.groups is None:
        return []
    labelled, of = data.labels >= 0, data.opened.columns["group"]
    return [
        f"--group: {len(labelled)} items in {len(np.unique(data.groups))} groups of column {of!r}, and "
        f"{int(labelled.sum())} labelled items in {len(np.unique(data.groups[labelled]))} of them. "
        f"{effect}"
    ]


def undecided_as_class(data: Study) -> Study:
    """Return votes of two classes and undecided ones between them as votes of three classes.

    For the error of a majority, in which an undecided vote is a vote for neither side. The labels have
    the two outer classes.
    """
    coding = data.coding
    if not coding.classes.undecided or len(coding.classes) != 2:
        return data
    low, high = coding.classes.values
    between = coding.classes.undecided[0]
    index = np.asarray(data.votes.index)
    index = np.where(index == UNDECIDED, 1, np.where(index == 1, 2, index)).astype(index.dtype)
    votes = replace(data.votes, index=jnp.asarray(index), n_classes=3)
    classes = replace(coding.classes, values=(low, between, high), undecided=())
    likelihood = data.log_likelihood
    return replace(
        data,
        votes=votes,
        coding=replace(coding, classes=classes),
        labels=np.where(data.labels == 1, 2, data.labels),
        log_likelihood=None if likelihood is None else np.insert(likelihood, 1, -np.inf, axis=-1),
    )
