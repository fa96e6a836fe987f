"""Labels: the columns of a file of their own, the people who gave them, and their items."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.finding import Severity
from judgebayes.io.columns import (
    SETTLED,
    guess_columns,
    join_judge,
    like_a_label,
    listed_roles,
    most_likely,
    plain_label,
)
from judgebayes.io.gathering import MAX_CLASSES
from judgebayes.io.options import join_names
from judgebayes.votes.classes import canonical, listing, mapped, written
from judgebayes.votes.columns import require_columns
from judgebayes.workflow.annotators import label_columns, melted
from judgebayes.workflow.check_draft import Draft
from judgebayes.workflow.data import Study
from judgebayes.workflow.item_ids import hint, match_items
from judgebayes.workflow.likely import Candidates, by_name
from judgebayes.workflow.options import ReadRequest
from judgebayes.workflow.sources import Labels, Opened

ADJUDICATOR = re.compile(
    r"(?:.*[ _])?(?:adjudicat|arbit|referee|tie.?break|umpire)[a-z]*(?:[ _]label)?",
    re.IGNORECASE,
)
"""Names of people who decide where others differ."""
LEAST_COMPARED = 50
"""With fewer labelled items, votes and labels are not compared."""
PLAIN_DIGITS = 10
"""Longer numbers in names of items are no places in a file."""
ITEM_SHARE = 0.9
"""The least share of values of an item column in a file of labels that are items with votes."""


def labels_of_file(request: ReadRequest, items: pd.Series) -> tuple[Labels, str]:
    """Return the labels of a table of their own, and a sentence if an item is known by its values.

    Raises
    ------
    JudgeBayesError
        If its column of the item or of the label is unknown.
    """
    item, label, path = str(items.name), request.label, request.labels
    gold = join_judge(path.table.drop(columns=list(request.left_out), errors="ignore"), item)
    several, annotator = label_columns(gold, label), None
    if several:
        gold, label, annotator = melted(gold, several)
    elif request.labels_merge is not None:
        given = {"annotator": request.annotator}
        annotator = guess_columns(gold.columns, given)["annotator"]
    names = [name for name in gold.columns if name != annotator]
    guess_columns(names, {"label": label or "none"}, needed=())  # it exists
    column = item if item in names else None
    if column is None and len(names) == 2:
        label = label or most_likely(names, "label")
        column = next((name for name in names if label not in (None, name)), None)
    unlabelled = [name for name in names if name != label]
    column = column or most_likely(unlabelled, "item")
    by_values = column is None
    if column is None:
        column = _column_of_items(gold[unlabelled], items)
    if column is None and items.map(str).isin(gold.columns.map(str)).mean() >= ITEM_SHARE:
        raise JudgeBayesError(
            f"The items of the votes ({listing(items.unique(), 2)}) are names of columns of "
            f"{str(path)!r}: turn this table, so that each item is a row."
        )
    if column is None:
        raise JudgeBayesError(
            f"Which column of {str(path)!r} is the item? It has {', '.join(map(repr, names))}. The "
            f"items of the votes ({listing(items.unique(), 2)}) are in none of these columns, or in "
            f"more than one. Give the item column the same name as in the votes, {item!r}."
        )
    others = [name for name in names if name != column]
    if label is None:
        label = others[0] if len(others) == 1 else most_likely(others, "label")
    label = label or plain_label(others) or most_likely(others, "vote")
    if label is None:
        raise JudgeBayesError(
            f"Which column of {str(path)!r} is the label? It has {', '.join(map(repr, names))}; use "
            "--label NAME."
        )
    roles: dict[str, str | None] = {"item": column, "label": label}
    require_columns(gold, roles)
    message = (
        f"Columns of {path.name}: {listed_roles(roles)}; the item column is detected by its values, "
        "which are items of the votes."
    )
    return Labels(gold, column, label, annotator), message if by_values else ""


def _column_of_items(table: pd.DataFrame, items: pd.Series) -> str | None:
    """Return the only column whose values are nearly all items with votes, perhaps spelt in another way.

    Of several, such as items 0, 1, 2 and labels 0, 1, it is the one whose values are nearly all
    distinct. None if there is none.
    """
    votes = items.unique()
    names = [
        str(name)
        for name, cells in table.items()
        if match_items(cells.dropna().unique(), votes).share >= ITEM_SHARE
    ]
    if len(names) > 1:
        names = [name for name in names if table[name].nunique() >= ITEM_SHARE * len(table)]
    return names[0] if len(names) == 1 else None


def find_label(draft: Draft, opened: Opened) -> Draft:
    """Find the columns of labels in a file of their own, and the items of the votes there."""
    gold = draft.labels
    if gold is None:
        return draft
    one_hot = [] if draft.tables.label is not None else _one_hot(gold)
    if one_hot:
        text = (
            f"Columns {listing(one_hot)} of the labels are 0 or 1, and one of them is 1 in each row: "
            "make one column with the name of that one."
        )
        return draft.with_finding("bad", "labels", text)
    try:
        labels, message = labels_of_file(draft.tables, opened.items)
    except JudgeBayesError as error:
        names = [str(name) for name in gold.columns]
        people = [n for n in names if like_a_label(n)]
        decides = [name for name in people if ADJUDICATOR.fullmatch(name)]
        counts = {n: mapped(gold[n], canonical).nunique() for n in people}
        people = [n for n in people if (1 if n in decides else 2) <= counts[n] <= MAX_CLASSES]
        vote = draft.tables.vote if draft.tables.vote in names else None
        vote = vote or Candidates(gold, [by_name(names, "item")]).vote()
        settled = [name for name in people if SETTLED.search(name)]
        unknown = vote is None and len(people) < 2 and not settled
        if unknown or draft.tables.label is not None:
            return draft.with_finding("bad", "labels", str(error))
        options: dict[str, Any] = {"label": vote}
        text = f"Column {vote!r} is read as the label, by its values."
        if len(settled) == 1:
            options = {"label": settled[0]}
            text = f"Of the labels {listing(people)}, {settled[0]!r} is used: it is named like the last."
        elif len(people) > 1:
            options = {"label": join_names(people), **_merging(decides)}
            text = f"Columns {listing(people)} are labels of several people: {_merged(decides)}."
        try:
            labels, message = labels_of_file(replace(draft.tables, **options), opened.items)
        except JudgeBayesError:  # something else is wrong
            return draft.with_finding("bad", "labels", str(error))
        one = {"labels_merge": None, "adjudicator": None}
        ways = [{"label": name, **one} for name in people[:3]]
        draft = draft.with_finding("bad", "labels", text, *ways, question=str(error), **options)
    if message:
        draft = draft.saying("labels", message)
    if gold.equals(draft.votes) and labels.label == draft.columns["vote"]:
        text = (
            "The labels are the votes themselves: --labels names the same table. Name another file."
        )
        return draft.with_finding("bad", "labels", text)
    return _find_items(replace(draft, gold=labels), labels, opened.items)


def _merging(decides: list[str]) -> dict[str, str]:
    """Return how labels of several people are merged: by the one who decides, if one is named so."""
    if len(decides) != 1:
        return {"labels_merge": "majority"}
    return {"labels_merge": "adjudicated", "adjudicator": decides[0]}


def _merged(decides: list[str]) -> str:
    if len(decides) != 1:
        return "the most frequent one is used, and an item with a tie has none"
    return f"{decides[0]!r} decides where they differ"


def _one_hot(table: pd.DataFrame) -> list[str]:
    """Return the columns that are 0 or 1, of which one is 1 in each row; none if there are no three."""
    plain = table.select_dtypes("number")
    flags = [name for name in plain if set(plain[name].dropna().unique()) == {0, 1}]
    return flags if len(flags) > 2 and (plain[flags].sum(axis=1) == 1).all() else []


def find_merged(draft: Draft, opened: Opened) -> Draft:
    """Find items with different labels by several people."""
    gold = opened.labels
    if gold is None or draft.request.labels_merge:
        return draft
    items, labels = mapped(gold.items, written), mapped(gold.table[gold.label], canonical)
    pairs = pd.DataFrame({"item": items, "label": labels}).dropna().drop_duplicates()
    split = pairs.loc[pairs["item"].duplicated(), "item"].nunique()
    if not split:
        return draft
    if gold.table is opened.table:
        return draft.with_finding(
            "bad",
            "labels",
            f"{split} item(s) have different labels in column {gold.label!r} on different rows of the "
            "votes; put the labels into a file of their own.",
        )
    who = gold.annotator or most_likely(map(str, gold.table.columns), "annotator")
    names = [] if who is None else gold.table[who].unique()
    decides = [name for name in map(str, names) if ADJUDICATOR.fullmatch(name)]
    other = "majority" if decides else "adjudicated"
    draft = draft.with_finding(
        "bad",
        "labels",
        f"{split} item(s) have different labels by several people: {_merged(decides)}. Other ways: "
        f"{other}, noisy.",
        {"labels_merge": "noisy"},
        question=f"{split} item(s) have different labels in column {gold.label!r}: use --set "
        "labels_merge=majority, adjudicated or noisy.",
        **_merging(decides),
    )
    if draft.gold is None:
        return draft
    return replace(draft, gold=labels_of_file(draft.tables, opened.items)[0])  # with annotators


def _find_items(draft: Draft, gold: Labels, voted: pd.Series) -> Draft:
    """Match the items of the labels with those of the votes."""
    given, items = gold.items, voted.unique()
    matching, drop = match_items(given.unique(), items), draft.tables.drop_unknown_labels
    draft = replace(draft, matching=matching)
    exactly = draft.tables.match_ids == "exactly"
    same: set[str | None] = set(matching.item_of)
    if matching.folded:
        same = set(map(written, given.unique())) & set(map(written, items))
    question = (
        f"Column {gold.label!r} labels {given.nunique() - len(same)} item(s) that have no votes. Items "
        f"with votes are named {listing(items, 3)}. {hint(matching)} To drop these labels, use "
        "--set drop_unknown_labels=true."
    )
    if drop and exactly and same:
        text = f"{len(same)} of {given.nunique()} items of the labels have votes."
        return draft.with_finding("good", "ids", text)
    if matching.collision:
        text = f"Labels cannot be matched loosely: {matching.collision}"
        return draft.with_finding("bad", "ids", text)
    if not matching.item_of:
        return draft.with_finding(
            "bad",
            "ids",
            f"No item of the labels ({listing(given.unique(), 3)}) is an item of the votes "
            f"({listing(items, 3)}).",
        )
    if matching.folded and exactly:
        text = f"Items match {matching.how}: {matching.preview}."
        draft = draft.with_finding("bad", "ids", text, question=question, match_ids="loosely")
    else:
        draft = draft.with_finding(
            "good", "ids", f"{matching.preview} items of the labels have votes."
        )
    if matching.unmatched and not drop:
        near = [f"did you mean {item!r} by {name!r}?" for name, item in matching.near.items()][:3]
        n, shown = len(matching.unmatched), listing(matching.unmatched, 3)
        text = f"Labels of {n} item(s) without votes: {shown}"
        text = f"{text}; {'; '.join(near)}" if near else f"{text}."
        draft = draft.with_finding("bad", "ids", text, question=question, drop_unknown_labels=True)
    return draft


def doubtful_join(data: Study) -> tuple[Severity, str] | None:
    r"""Return a sentence if labels may be those of other items: by a shift by one, or by chance.

    The plurality of the votes is compared with the label. Under a shift, with the labels of the items
    beside, which are numbered by the last number in their names, it agrees more often by four standard
    errors of the two shares. Labels in random order agree on
    :math:`\sum_k p(\text{vote} = k)\, p(\text{label} = k)` of the items; votes agree on more, by two
    standard errors.
    """
    most, labels, items = np.asarray(data.votes.pooled_counts()), data.labels, data.coding.items
    vote = np.where(most.sum(1) > 0, most.argmax(1), -1)
    both = (labels >= 0) & (vote >= 0)
    n = int(both.sum())
    if n < LEAST_COMPARED:
        return None
    right = float((vote == labels)[both].mean())
    numbers = [re.findall(r"\d+", str(item)) for item in items]
    place = {int(k[-1]): row for row, k in enumerate(numbers) if k and len(k[-1]) < PLAIN_DIGITS}
    for shift, which in ((1, "previous"), (-1, "next")) if len(place) == len(items) else ():
        rows = [(place[k + shift], row) for k, row in place.items() if k + shift in place]
        beside = [vote[a] == labels[b] for a, b in rows if vote[a] >= 0 and labels[b] >= 0]
        if beside and np.mean(beside) - right >= 4 * np.sqrt(0.5 / n):
            return (
                "bad",
                f"The votes agree with the labels on {right:.0%} of the items, but with the label of "
                f"the {which} item on {np.mean(beside):.0%}: are the items of one file counted from 0 "
                "and of the other from 1?",
            )
    shares = [
        np.bincount(each[both], minlength=data.votes.n_classes) / n for each in (vote, labels)
    ]
    chance = float(shares[0] @ shares[1])
    if max(shares[0].max(), shares[1].max()) == 1 or right > chance + 2 * np.sqrt(
        chance * (1 - chance) / n
    ):
        return None
    return (
        "note",
        f"The votes agree with the labels on {right:.0%} of the items, and with labels in random order "
        f"on {chance:.0%}: are these the labels of these items?",
    )
