"""Open a user's files as the columns by role and the options say, and make arrays of them.

Which columns these are is decided before (`judgebayes.workflow.asking`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.io.cells import plain_cells
from judgebayes.io.columns import join_judge, repeated_columns, without_copies
from judgebayes.io.formats import FORMATS, format_of, import_votes
from judgebayes.io.gathering import Imported
from judgebayes.io.in_memory import InMemory
from judgebayes.io.options import Options
from judgebayes.io.tables import notes_of
from judgebayes.io.verdict import Kind
from judgebayes.io.vote_tables import verdicts_in
from judgebayes.votes import Classes, Coding, Votes, encode
from judgebayes.votes.classes import (
    canonical,
    distinct,
    inferred,
    listing,
    mapped,
    other_words,
    written,
)
from judgebayes.votes.columns import require_columns, require_plain
from judgebayes.workflow.annotators import label_columns, melted, stacked
from judgebayes.workflow.binning import binned
from judgebayes.workflow.item_ids import match_items
from judgebayes.workflow.options import ReadRequest
from judgebayes.workflow.scales import cast_votes
from judgebayes.workflow.sources import JUDGE, VOTE, Earlier, Labels, Opened

SIDES = {"model_a": "A", "model_b": "B"}
"""The systems of a battle, and their sides."""


def converted(request: ReadRequest) -> tuple[ReadRequest, Imported | None, tuple[str, ...]]:
    """Return the request with the table of votes in the log of another tool, what it has, and words."""
    path = request.votes
    form = None if isinstance(path, InMemory) else format_of(path)
    if form is None:
        return request, None, ()
    taken = {name: getattr(request, name) for name in FORMATS[form].takes}
    if "label" in taken and request.labels is not None:
        taken["label"] = "none"
    options = Options(missing=request.missing, **taken)
    imported = import_votes(form, path, options)
    table = imported.votes
    labels = imported.labels
    if labels is not None and "annotator" in labels.columns:
        if request.labels is None and request.label != "none":
            request = replace(request, labels=InMemory(labels, path.name), label="label")
    elif labels is not None:
        table = table.merge(labels, on="item", how="left")
    named = (n for n in ("label", "sample") if getattr(request, n) not in (None, "none"))
    columns: dict[str, Any] = {name: name for name in named if name in table.columns}
    columns |= {} if options.vote is None else {"vote": "vote"}
    request = replace(request, **columns)
    ordered = "order" in table.columns and request.order != "none"
    if imported.votes_as is not None and request.votes_as is None and ordered:
        request = replace(request, votes_as=imported.votes_as)
    table = table.set_axis(np.arange(1, len(table) + 1), axis=0)
    said = f"{path.name} is read as judgebayes import {form} does.", *imported.words()
    return replace(request, votes=InMemory(table, path.name)), imported, said


def open_votes(
    request: ReadRequest, columns: Mapping[str, str | None], earlier: Earlier, *, elsewhere: bool
) -> Opened:
    """Return the votes with these columns by role, and the labels, unless these are `elsewhere`.

    Raises
    ------
    JudgeBayesError
        If a column is missing, or options do not fit the votes.
    """
    table, columns = request.votes.table, dict(columns)
    notes, several = notes_of(table), label_columns(table, columns["label"])
    if not request.wide:
        table = table.drop(columns=list(request.left_out), errors="ignore")
    whole, table = table, table.drop(columns=several)
    if several:
        columns["label"] = None
    table = join_judge(join_judge(table, columns["item"]), columns["judge"])
    if request.verdicts is not None:
        if columns["vote"] is None:
            raise JudgeBayesError(
                "verdicts reads raw answers in a column of votes, which a wide file has not."
            )
        name = columns["vote"]
        votes, said = verdicts_in(table[name], cast(Kind, request.verdicts))
        table, notes = table.assign(**{name: votes}), [*notes, said]
        if columns["order"] is not None and request.votes_as is None:
            request = replace(request, votes_as="shown")
    require_columns(table, columns)
    judges: list[str] = []
    if request.wide:
        aside = [name for name in earlier.ignored if name in table.columns]
        if aside:
            plural = "s {} are not read as judges." if aside[1:] else " {} is not read as a judge."
            notes.append("Column" + plural.format(listing(aside, 20)))
        taken = (*columns.values(), *request.left_out, *aside)
        judges = [name for name in table.columns if name not in taken]
        for name in judges:
            require_plain(table[name], name)
    else:
        table, copies = without_copies(table, columns, repeats=request.repeats)
        if copies:
            notes.append(
                f"{copies} record(s) are identical to an earlier one in every column: they are copies, "
                "not repeated votes, and each is used once."
            )
    cells = judges if request.wide else [str(columns["vote"])]
    table, messages = plain_cells(table, cells, request.missing, "vote")
    notes += messages
    rows = table if request.wide else None
    if request.wide:
        used = dict.fromkeys([*filter(None, columns.values()), *judges])
        table = stacked(table[[*used]], judges, JUDGE, VOTE)
        if request.repeats and (judge_of := repeated_columns(judges)):
            table[JUDGE] = table[JUDGE].map(judge_of)
    if request.only_judge is not None:
        judge = JUDGE if request.wide else columns["judge"]
        if judge is None:
            raise JudgeBayesError("only_judge needs a column of judges; name it with --judge.")
        table = table[table[judge].isin(_spelt(table[judge].unique(), request.only_judge))]
    notes += _spelling_notes(table, [columns[role] for role in ("item", "judge", "task", "group")])
    item, label, gold = str(columns["item"]), columns["label"], None
    if several and not elsewhere:  # a column for each annotator
        long, joined, annotator = melted(whole[[item, *several]].drop_duplicates(), several)
        gold = Labels(long, item, joined, annotator)
    elif label is not None and not elsewhere:
        gold = Labels(table if rows is None else rows, item, label)
    return Opened(request, table, columns, gold, tuple(notes), rows)


def with_labels(
    opened: Opened, apart: Labels | None, earlier: Earlier, letters: Mapping[str, str]
) -> Opened:
    """Return the files with the labels of a table of their own, and classes in place of scores.

    Labels have the words of the votes; `letters` are what a tool writes for them.

    Raises
    ------
    JudgeBayesError
        If items cannot be matched as asked for, or scores cannot be cut.
    """
    request, messages = opened.request, list[str]()
    gold = opened.labels if apart is None else apart
    if gold is None:
        return binned(opened, earlier.bins)
    if apart is not None:
        messages = notes_of(gold.table)
        if request.match_ids == "loosely":
            gold, message = _matched(gold, opened.items)
            messages.append(message)
        messages += _spelling_notes(gold.table, [gold.item, gold.annotator])
    plain, more = plain_cells(gold.table, [gold.label], request.missing, "label")
    opened = replace(
        opened,
        labels=replace(gold, table=plain),
        notes=(*opened.notes, *messages, *more),
    )
    return _translate_labels(binned(opened, earlier.bins), letters)


def _matched(labels: Labels, items: pd.Series) -> tuple[Labels, str]:
    """Return the labels with the items' names in the votes, and a sentence about what was folded."""
    matching = match_items(labels.table[labels.item].unique(), items.unique())
    if matching.collision:
        raise JudgeBayesError(f"match_ids=loosely: {matching.collision}")
    names = labels.table[labels.item]
    new = mapped(names, written).map(matching.item_of).fillna(names) if matching.folded else names
    message = f"match_ids=loosely: {matching.preview} items of the labels match {matching.how}."
    return replace(labels, table=labels.table.assign(**{labels.item: new})), message


def _spelling_notes(table: pd.DataFrame, columns: Iterable[str | None]) -> list[str]:
    """Return a sentence for every column with names that are written in several ways."""
    notes = []
    for column in filter(None, dict.fromkeys(columns)):
        texts = [value for value in table[column].unique() if isinstance(value, str)]
        names = mapped(pd.Series(texts, texts, dtype=object), written).dropna()
        several = names[names.duplicated(keep=False)]
        if len(several):
            ways = ", ".join(map(ascii, several.index[several == several.iloc[0]]))
            notes.append(
                f"Column {column!r} has {several.nunique()} name(s) in several spellings, such as {ways}"
                ": spaces around a name and the form of its letters (Unicode NFC) do not count."
            )
    return notes


def _translate_labels(opened: Opened, letters: Mapping[str, str]) -> Opened:
    """Return the file with labels such as yes and no translated to the words of the votes.

    So are the letters in which the tool of the votes writes labels, if no label is a class itself.
    """
    gold = opened.labels
    assert gold is not None
    if SIDES.keys() <= {*opened.table.columns} and opened.votes.isin([*SIDES.values()]).any():
        gold = _winners(gold, opened.table.assign(item=opened.items))
        opened = replace(opened, labels=gold)
    given = gold.table[gold.label]
    scale = inferred(cast_votes(opened))
    # An error is raised where the classes are needed.
    words = {} if scale is None else other_words(given.unique(), scale)
    values = distinct(given.unique())
    if values and all(str(value).upper() in letters for value in values):
        words = {value: letters[str(value).upper()] for value in values}
    if not words:
        return opened
    message = (
        f"The labels {listing(words)} of column {gold.label!r} are read as "
        f"{listing(words.values())}, as in the votes."
    )
    table = gold.table.assign(**{gold.label: mapped(given, canonical).map(words).astype(object)})
    return replace(opened, labels=replace(gold, table=table), notes=(*opened.notes, message))


def _winners(gold: Labels, battles: pd.DataFrame) -> Labels:
    """Return labels that name a system of their battle as its side, A or B."""
    systems = battles.drop_duplicates("item").set_index("item")[[*SIDES]]
    own = systems.reindex(gold.table[gold.item].to_numpy())
    label = gold.table[gold.label].copy()
    for column, side in SIDES.items():
        label = label.mask((gold.table[gold.label] == own[column].to_numpy()).to_numpy(), side)
    return replace(gold, table=gold.table.assign(**{gold.label: label}))


def _spelt(judges: Iterable[Any], name: str) -> list[Any]:
    """Return the judge with a name, in each spelling.

    Raises
    ------
    JudgeBayesError
        If there is no such judge.
    """
    spelt = [each for each in judges if written(each) == written(name)]
    if not spelt:
        names = listing(map(str, judges), 20)
        raise JudgeBayesError(f"There is no judge {name!r}; choose one of: {names}.")
    return spelt


def arrays_of(opened: Opened, classes: Classes) -> tuple[Votes, Coding]:
    """Return the votes as arrays, and their names.

    Raises
    ------
    JudgeBayesError
        For bad input, as `judgebayes.votes.encode` does.
    """
    columns, request, table = opened.columns, opened.request, opened.table
    item, order, sample = str(columns["item"]), columns["order"], columns["sample"]
    if request.repeats:
        keys = [name for name in (item, opened.judge, order) if name is not None]
        sample = "number of the repeat"
        table = table.assign(**{sample: table.groupby(keys, dropna=False).cumcount()})
    return encode(
        table,
        item=item,
        judge=opened.judge,
        vote=str(opened.votes.name),
        sample=sample,
        order=order,
        votes_as=request.votes_as,  # type: ignore[arg-type]
        task=columns["task"],
        classes=classes,
    )
