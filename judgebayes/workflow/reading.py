"""Read a user's files into votes, labels and groups."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from judgebayes.arrays import ItemInts
from judgebayes.errors import JudgeBayesError
from judgebayes.io.cells import plain_cells
from judgebayes.io.columns import join_judge, judge_of_criteria, without_copies
from judgebayes.io.formats import FORMATS, format_of, import_votes
from judgebayes.io.in_memory import InMemory, file_or_table
from judgebayes.io.options import Layout, Options, Verdicts, option
from judgebayes.io.tables import check_ignored, notes_of, read_table
from judgebayes.io.vote_tables import with_verdicts
from judgebayes.io.wide import check_judge_columns
from judgebayes.votes import MISSING, Classes, Coding, Votes, encode, encode_wide
from judgebayes.votes.classes import canonical, distinct, inferred, listing, other_words, plain_text
from judgebayes.votes.columns import (
    name_of,
    positions,
    require_columns,
    require_plain,
    spellings,
)
from judgebayes.votes.slots import are_orders
from judgebayes.workflow.annotators import label_columns, melted
from judgebayes.workflow.bins_of_files import binned
from judgebayes.workflow.item_ids import hint, match_items
from judgebayes.workflow.likely import likely_order
from judgebayes.workflow.options import ReadRequest
from judgebayes.workflow.roles import long_columns, open_labels, wide_columns
from judgebayes.workflow.scales import decided_values
from judgebayes.workflow.sources import UNSEEN, Earlier, Labels, Opened


def open_files(request: ReadRequest, earlier: Earlier = UNSEEN) -> Opened:
    """Read the votes and the labels, if any, and detect the roles of their columns.

    Raises
    ------
    JudgeBayesError
        If a file cannot be read, or a column is missing or cannot be detected.
    """
    for name in ("annotator", "adjudicator"):
        if request.labels_merge is None and getattr(request, name) is not None:
            raise JudgeBayesError(
                f"--{name} is used with --labels-merge majority, adjudicated or noisy only."
            )
    request = replace(request, votes=file_or_table(request.votes, "votes"))
    request, classes, said, letters = _converted(request)
    labels = None if request.labels is None else file_or_table(request.labels, "labels")
    votes = _open_votes(request, earlier, elsewhere=labels is not None)
    opened = replace(votes, classes=classes, notes=(*said, *votes.notes))
    gold, messages = opened.labels, list[str]()
    if labels is not None:
        gold, said = open_labels(labels, request, opened.table[str(opened.columns["item"])])
        ways = _spelling_notes(gold.table, [gold.item, gold.annotator])
        messages = [*notes_of(gold.table), *said, *ways]
    if gold is None:
        return binned(opened, earlier.bins)
    plain, more = plain_cells(gold.table, [gold.label], request.missing, "label")
    opened = replace(
        opened,
        labels=replace(gold, table=plain),
        notes=(*opened.notes, *messages, *more),
    )
    return _translate_labels(binned(opened, earlier.bins), letters)


def _converted(
    request: ReadRequest,
) -> tuple[ReadRequest, tuple[str, ...] | None, list[str], Mapping[str, str]]:
    """Return the request with the table of votes in the log of another tool.

    And its classes, notes, and the classes by the letters in which the tool writes labels.
    """
    path = request.votes
    form = None if isinstance(path, InMemory) else format_of(path)
    if form is None:
        return request, None, [], {}
    takes = FORMATS[form].takes
    label = request.label if request.labels is None or form == "tidy" else "none"
    options = Options(
        sample=request.sample if "sample" in takes and form == "inspect" else None,
        label=label if "label" in takes else None,
        vote=request.vote if "vote" in takes and form != "tidy" else None,
        missing=request.missing,
    )
    imported = import_votes(form, path, options)
    table = imported.votes
    labels = imported.labels
    if labels is not None and "annotator" in labels.columns:
        if request.labels is None and request.label != "none":
            request = replace(request, labels=InMemory(labels, path.name), label="label")
    elif labels is not None:
        table = table.merge(labels, on="item", how="left")
    if options.vote is not None:
        request = replace(request, vote="vote")
    if "label" in table.columns and request.label not in (None, "none"):
        request = replace(request, label="label")
    if "sample" in table.columns and request.sample not in (None, "none"):
        request = replace(request, sample="sample")
    ordered = "order" in table.columns and request.order != "none"
    if imported.votes_as is not None and request.votes_as is None and ordered:
        request = replace(request, votes_as=imported.votes_as)
    table = table.set_axis(np.arange(1, len(table) + 1), axis=0)
    said = [f"{path.name} is read as judgebayes import {form} does.", *imported.words()]
    request = replace(request, votes=InMemory(table, path.name))
    return request, imported.classes, said, FORMATS[form].letters


def _open_votes(request: ReadRequest, earlier: Earlier, *, elsewhere: bool) -> Opened:
    """Read the votes, the columns' roles and the labels, unless these are `elsewhere`."""
    wide, only_judge = request.wide, request.only_judge
    others = request.left_out if wide else ()  # not judges, but perhaps generators
    layout = Layout(request.skip_rows, request.encoding, () if wide else request.left_out)
    table = read_table(request.votes, layout)
    if others:
        check_ignored(table, others, request.votes)
    notes = notes_of(table)
    several = [] if elsewhere else label_columns(table, request.label)
    whole, table = table, table.drop(columns=several)
    skipped = [name for name in earlier.ignored if name in table.columns and wide]
    if skipped:
        one = f"Column {listing(skipped)} is not read as a judge."
        notes.append(
            one if len(skipped) == 1 else f"Columns {listing(skipped, 20)} are not read as judges."
        )
    others = (*others, *skipped)
    table = join_judge(table, request.item)
    if not wide:
        for named in (request.judge, earlier.columns.get("judge")):
            table = join_judge(table, named)
    given = request.named() | {
        role: name
        for role, name in earlier.columns.items()
        if getattr(request, role) is None and name in table.columns
    }
    for optional in ("task", "group"):
        given[optional] = given[optional] or "none"
    if several:
        given["label"] = "none"
    if wide:
        candidates = [name for name in table.columns if name not in others]
        columns, left_out = wide_columns(candidates, given, elsewhere=elsewhere)
        if left_out is not None:
            notes.append(
                f"Column {left_out!r} is left out: it is named like labels, but the labels are in "
                "another file."
            )
            others = (*others, left_out)
    else:
        columns = long_columns(table, given, elsewhere=elsewhere)
    order = columns["order"]
    if request.order is None and order is not None and not are_orders(table[order]):
        columns["order"] = None  # the name of an order, but other values
    unnamed = not wide and request.order is None and columns["order"] is None
    shown = likely_order(table, columns.values()) if unnamed else None
    if shown is not None:
        raise JudgeBayesError(
            f"Column {shown!r} has the presentation orders AB and BA: use {option('order', [shown])}, "
            "or --order none to ignore them."
        )
    if request.verdicts is not None:
        vote = columns["vote"]
        if vote is None:
            raise JudgeBayesError(
                "--verdicts reads raw answers in a column of votes; use no --wide."
            )
        table, message = with_verdicts(table, vote, cast(Verdicts, request.verdicts))
        notes.append(message)
        if columns["order"] is not None and request.votes_as is None:
            request = replace(request, votes_as="shown")
    if request.votes_as is not None and columns["order"] is None:
        raise JudgeBayesError(
            "--votes-as says how votes name the responses in either order, and no column is recognised "
            "as the presentation order (AB, BA): name it with --order, or leave out --votes-as."
        )
    require_columns(table, columns)
    judges: list[str] = []
    if wide:
        judges = [n for n in table.columns if n not in (*columns.values(), *others)]
    for name in judges:
        require_plain(table[name], name)
    if not wide:
        if given["judge"] is None:
            by_criteria = judge_of_criteria(table, columns)
            if by_criteria is not None:
                columns["judge"], message = by_criteria
                table = join_judge(table, columns["judge"])
                notes.append(message)
        table, copies = without_copies(table, columns, repeats=request.repeats)
        if copies:
            notes.append(
                f"{copies} record(s) are identical to an earlier one in every column: they are copies, "
                "not repeated votes, and each is used once."
            )
    if only_judge is not None:
        if wide:
            judges = _spelt(judges, only_judge)
        elif columns["judge"] is None:
            raise JudgeBayesError("--only-judge needs a column of judges; name it with --judge.")
        else:
            judge = table[columns["judge"]]
            table = table[judge.isin(_spelt(judge.unique(), only_judge))]
    cells = judges if wide else [str(columns["vote"])]
    table, messages = plain_cells(table, cells, request.missing, "vote")
    notes += messages
    notes += _spelling_notes(table, [columns[role] for role in ("item", "judge", "task", "group")])
    item, label, gold = str(columns["item"]), columns["label"], None
    if several:  # a column for each annotator
        long, joined, annotator = melted(whole[[item, *several]].drop_duplicates(), several)
        gold = Labels(long, item, joined, annotator)
    elif label is not None and not elsewhere:
        gold = Labels(table, item, label)
    return Opened(request, table, columns, gold, tuple(notes), tuple(judges))


def _spelling_notes(table: pd.DataFrame, columns: Iterable[str | None]) -> list[str]:
    """Return a sentence for every column with names that are written in several ways."""
    notes = []
    for column in filter(None, dict.fromkeys(columns)):
        several = spellings(table[column])
        if several:
            ways = ", ".join(map(ascii, next(iter(several.values()))))
            notes.append(
                f"Column {column!r} has {len(several)} name(s) in several spellings, such as {ways}: "
                "spaces around a name and the form of its letters (Unicode NFC) do not count."
            )
    return notes


def _translate_labels(opened: Opened, letters: Mapping[str, str]) -> Opened:
    """Return the file with labels such as yes and no translated to the words of the votes.

    So are the letters in which the tool of the votes writes labels, if no label is a class itself.
    """
    gold = opened.labels
    assert gold is not None
    given = gold.table[gold.label]
    scale = inferred(decided_values(opened))
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
    table = gold.table.assign(**{gold.label: given.map(canonical).map(words).astype(object)})
    return replace(opened, labels=replace(gold, table=table), notes=(*opened.notes, message))


def _spelt(judges: Iterable[Any], name: str) -> list[Any]:
    """Return the judge with a name, in each spelling.

    Raises
    ------
    JudgeBayesError
        If there is no such judge.
    """
    spelt = [each for each in judges if name_of(each) == plain_text(name)]
    if not spelt:
        names = listing(map(str, judges), 20)
        raise JudgeBayesError(f"There is no judge {name!r}; choose one of: {names}.")
    return spelt


def arrays_of(
    opened: Opened, classes: Classes
) -> tuple[Votes, Coding, ItemInts | None, tuple[str, ...]]:
    """Return the votes and the group of each item as arrays, and a sentence about the groups.

    Raises
    ------
    JudgeBayesError
        For bad input, as `judgebayes.votes.encode` does.
    """
    columns, request, table = opened.columns, opened.request, opened.table
    item = str(columns["item"])
    if request.wide:
        judges = list(opened.judges)
        _refuse_unknown(table, judges, classes, request.votes)
        matrix = table.set_index(item)[judges]
        votes, coding = encode_wide(matrix, classes=classes)
    else:
        if columns["order"] is not None and request.votes_as is None:
            raise JudgeBayesError(
                f"Column {columns['order']!r} is the presentation order. If votes name a response "
                "by its position as shown, use --votes-as shown (swapped votes are then mapped "
                "back). If they were already mapped back, use --votes-as original. To ignore the "
                "order, use --order none."
            )
        sample = columns["sample"]
        if request.repeats:
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
            votes_as=request.votes_as if columns["order"] is not None else None,  # type: ignore[arg-type]
            task=columns["task"],
            classes=classes,
        )
    return votes, coding, *_groups(table, coding, item, columns["group"])


def labels_of(opened: Opened, coding: Coding) -> ItemInts:
    """Return the label of each item, `MISSING` where there is none; all may be the same.

    Raises
    ------
    JudgeBayesError
        For bad labels, as `judgebayes.votes.Coding.labels` does.
    """
    gold, drop_unknown = opened.labels, opened.request.drop_unknown_labels
    if gold is None:
        return np.full(len(coding.items), MISSING)
    _check_items(gold, coding, drop_unknown=drop_unknown)
    return coding.labels(
        gold.table,
        item=gold.item,
        label=gold.label,
        unknown_items="drop" if drop_unknown else "error",
        allow_degenerate=True,
    )


def _check_items(gold: Labels, coding: Coding, *, drop_unknown: bool) -> None:
    """Refuse labels of items without votes, with what would be right: `--match-ids`, or an item.

    Labels of other items may be dropped, but not all of them.

    Raises
    ------
    JudgeBayesError
        If there are such labels.
    """
    given = gold.items
    position = positions(coding.items, given, gold.item)
    missing = given[position < 0].unique()
    if len(missing) == 0 or (drop_unknown and len(missing) < given.nunique()):
        return
    advice = hint(match_items(given.unique(), coding.items))
    if advice:
        raise JudgeBayesError(
            f"Column {gold.label!r} labels {len(missing)} item(s) that have no votes: "
            f"{listing(missing)}. Items with votes are named {listing(coding.items, 3)}. {advice} To "
            "drop these labels, use --drop-unknown-labels."
        )


def _refuse_unknown(
    table: pd.DataFrame, judges: list[str], classes: Classes, path: Path | InMemory
) -> None:
    """Refuse columns that are not judges, and cells that are not classes (naming the first)."""
    for judge in judges:
        unknown = [value for value in table[judge].unique() if classes.index(value) is None]
        if unknown:
            check_judge_columns(table, judges, path, classes)
            row = (table[judge] == unknown[0]).idxmax()
            raise JudgeBayesError(
                f"Row {row} of column {judge!r} contains {canonical(unknown[0])!r}, which is not one of "
                f"the classes {listing(classes.values)}. If the column is not a judge, leave it out "
                f"with {option('ignore', [judge])}; if the value means no vote, use "
                f"{option('missing', unknown[:1])}."
            )


def _groups(
    table: pd.DataFrame, coding: Coding, item: str, group: str | None
) -> tuple[ItemInts | None, tuple[str, ...]]:
    """Return the group of each item, and a sentence about items without one, which are alone."""
    if group is None:
        return None, ()
    pairs = table[[item, group]].drop_duplicates()
    names = pairs[group].map(name_of)
    code = pd.factorize(names[names != ""])[0]
    at = positions(coding.items, pairs[item][names != ""], item)
    groups = np.full(len(coding.items), -1)
    groups[at] = code
    if (groups[at] != code).any():
        twice = coding.items[at[groups[at] != code][0]]
        raise JudgeBayesError(
            f"Item {twice!r} is in more than one group of column {group!r}; an item must have one group."
        )
    alone = groups < 0
    groups[alone] = code.max(initial=-1) + 1 + np.arange(alone.sum())
    note = f"{alone.sum()} item(s) have no group in column {group!r}: each is a group of its own."
    return groups, (note,) if alone.any() else ()
