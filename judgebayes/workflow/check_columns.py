"""A check of the columns of votes: their roles, and repeated votes.

A check of labels: their column, their people and their items.
"""

from collections import Counter
from collections.abc import Hashable
from dataclasses import replace

import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.io.cells import changed
from judgebayes.io.columns import like_a_label, listed_roles, most_likely, plain_label
from judgebayes.io.gathering import MAX_CLASSES
from judgebayes.io.options import join_names, split_names
from judgebayes.io.vote_tables import kind_of_answers
from judgebayes.io.wide import NotJudgesError, check_judge_columns, largest_vocabulary_group
from judgebayes.votes.classes import canonical, classes_of_most, listing
from judgebayes.votes.slots import are_orders
from judgebayes.workflow.check_draft import Draft, try_open
from judgebayes.workflow.item_ids import match_items
from judgebayes.workflow.likely import (
    by_name,
    likely_item,
    likely_judge,
    likely_sample,
    likely_vote,
)
from judgebayes.workflow.scales import are_scores


def find_label(draft: Draft) -> Draft:
    """Find the column of the label in a file of its own."""
    gold = draft.labels
    if gold is None or draft.request.label is not None or try_open(draft) is not None:
        return draft
    names = [str(name) for name in gold.columns]
    vote = likely_vote(gold, [by_name(names, "item")])
    if vote is None or by_name(names, "label") is not None:
        return draft
    text = f"Column {vote!r} is read as the label, by its values."
    settled = draft.with_finding("bad", "labels", text, label=vote)
    return draft if try_open(settled) is None else settled  # else something else is wrong


def find_merged(draft: Draft) -> Draft:
    """Find items with different labels by several people."""
    opened = try_open(draft)
    if opened is None or opened.labels is None or draft.request.labels_merge:
        return draft
    gold = opened.labels
    pairs = gold.table[[gold.item, gold.label]].dropna().map(canonical).drop_duplicates()
    split = int(pairs[gold.item].duplicated().sum())
    if not split:
        return draft
    if gold.table is opened.table:
        return draft.with_finding(
            "bad",
            "labels",
            f"{split} item(s) have different labels in column {gold.label!r} on different rows of the "
            "votes; put the labels into a file of their own.",
        )
    return draft.with_finding(
        "bad",
        "labels",
        f"{split} item(s) have different labels by several people; the most frequent one is used, and "
        "an item with a tie has none. Other ways: adjudicated, noisy.",
        labels_merge="majority",
    )


def find_items(draft: Draft) -> Draft:
    """Match the items of the labels with those of the votes."""
    exact = replace(draft.request, match_ids="exactly")
    opened = try_open(replace(draft, request=exact))
    if opened is None or opened.labels is None or draft.labels is None:
        return draft
    gold = opened.labels
    given, items = gold.items, opened.table[str(opened.columns["item"])].unique()
    matching = match_items(given.unique(), items)
    draft = replace(draft, matching=matching)
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
    if matching.folded:
        text = f"Items match after folding {matching.how}: {matching.preview}."
        draft = draft.with_finding("bad", "ids", text, match_ids="loosely")
    else:
        draft = draft.with_finding(
            "good", "ids", f"{matching.preview} items of the labels have votes."
        )
    if matching.unmatched:
        near = [f"did you mean {item!r} by {name!r}?" for name, item in matching.near.items()][:3]
        n, shown = len(matching.unmatched), listing(matching.unmatched, 3)
        text = f"Labels of {n} item(s) without votes: {shown}"
        text = f"{text}; {'; '.join(near)}" if near else f"{text}."
        draft = draft.with_finding("bad", "ids", text, drop_unknown_labels=True)
    return draft


def is_wide(draft: Draft) -> bool:
    """Tell whether a table has a row per item and a column per judge."""
    if draft.request.wide:
        return True
    table, columns = draft.votes, draft.request
    if columns.vote is not None or columns.judge is not None:
        return False
    names = [str(name) for name in table.columns]
    if by_name(names, "vote") is not None or by_name(names, "judge") is not None:
        return False
    item = columns.item or by_name(names, "item") or likely_item(table)
    if item is None or item not in table.columns or table[item].duplicated().any():
        return False
    label = plain_label(names)
    return len(_alike([table[n] for n in names if n not in (item, label)])) > 1


def _of_people(draft: Draft, item: str | None) -> list[str]:
    """Return the columns of a wide table whose names are like people's, and whose cells like votes."""
    table = draft.votes
    names = [str(n) for n in table.columns if n != item and like_a_label(str(n))]
    return [n for n in names if 2 <= changed(table[n], canonical).nunique() <= MAX_CLASSES]


def _alike(columns: list[pd.Series]) -> list[str]:
    """Return the largest set of columns with votes for the same classes, common words, or scores."""
    groups: dict[object, list[str]] = {}
    every: dict[str, Counter[Hashable]] = {}
    for cells in columns:
        if cells.dtype == object and not all(map(pd.api.types.is_scalar, cells)):
            continue
        counts = every[str(cells.name)] = Counter(changed(cells, canonical).dropna())
        classes = classes_of_most(counts)
        if classes is not None:
            scale = tuple(str(value).casefold() for value in classes.values)
            groups.setdefault(scale, []).append(str(cells.name))
        elif are_scores(list(counts)) and all(0 <= float(value) <= 1 for value in counts):
            groups.setdefault("scores", []).append(str(cells.name))
    common = largest_vocabulary_group(every)
    groups["words"] = [name for name in every if name in common]
    return max(groups.values(), key=len, default=[])


def find_wide(draft: Draft) -> Draft:
    """Find the item, the labels and the columns that are not judges, of a wide table."""
    table, names = draft.votes, [str(name) for name in draft.votes.columns]
    if not draft.request.wide:
        text = "The table has a row per item and a column per judge."
        draft = draft.with_finding("bad", "columns", text, wide=True)
    item = draft.request.item or by_name(names, "item")
    if item is None:
        item = likely_item(table, labelled=_labelled(draft))
        if item is None:
            return draft.with_finding(
                "bad", "columns", "Which column is the item? Name it with --item."
            )
        text = f"Column {item!r} is read as the item, by its values."
        draft = draft.with_finding("bad", "columns", text, item=item)
    label = draft.request.label or plain_label(n for n in names if n != item)
    people = _of_people(draft, item) if draft.request.label is None and label is None else []
    if (
        people
        and draft.labels is None
        and len(_alike([table[n] for n in names if n not in people]))
    ):
        label = join_names(people)
        text = (
            f"Column {listing(people)} is named like the answers of people: it is read as the labels, "
            "and not as a judge. If it is a judge, use --label none."
        )
        draft = draft.with_finding("bad", "labels", text, label=label)
    elif draft.request.label is None and label is None and draft.labels is None:
        judges = _alike([table[name] for name in names if name != item])
        sparse = [n for n in judges if table[n].isna().any() and by_name([n], "label") is not None]
        if len(sparse) == 1 and len(judges) > 2:
            label = sparse[0]
            text = f"Column {label!r} is read as the labels, not as a judge."
            draft = draft.with_finding("note", "labels", text, label=label)
    elif label is not None and draft.request.label is None and draft.labels is None:
        draft = draft.with_finding(
            "note", "labels", f"Column {label!r} is read as the labels, by its name."
        )
    left_out, new = draft.request.left_out, [] if draft.labels is None else people
    while True:
        others = {item, label, *people, *left_out, *new}
        judges = [name for name in names if name not in others]
        try:
            check_judge_columns(table, judges, draft.request.votes)
        except NotJudgesError as error:
            new += error.columns
            continue
        except JudgeBayesError as error:
            return draft.with_finding("bad", "columns", str(error))
        break
    if not judges:
        return draft.with_finding("bad", "columns", "No column contains the votes of a judge.")
    if new:
        text = f"No judge, by other values: {listing(new, 20)}."
        draft = draft.with_finding("bad", "columns", text, ignore=join_names([*left_out, *new]))
    return draft.with_finding("note", "columns", f"Judges: {listing(judges, 20)}.")


def find_long(draft: Draft) -> Draft:
    """Find the columns of a table with a row per vote, and its repeated votes."""
    table, names = draft.votes, [str(name) for name in draft.votes.columns]
    given = draft.request.named()
    unknown = [name for name in given.values() if name not in (None, "none", *names)]
    if any(set(split_names(str(name))) - set(names) for name in unknown):
        return draft  # reading names the column that does not exist
    chosen: dict[str, str | None] = {
        role: None if name == "none" else name for role, name in given.items()
    }
    here = draft.labels is None
    for role in ("item", "judge", "vote", "sample", "order", *(["label"] if here else [])):
        if given[role] is None:
            name = by_name(names, role, chosen.values())
            if role == "order" and name is not None:
                name = name if are_orders(table[name]) else None
            chosen[role] = name
    label = chosen["label"]
    # The reading of a table finds the other ones by itself.
    if given["label"] is None and label is not None and most_likely(names, "label") != label:
        text = f"Column {label!r} is read as the label, by its name."
        draft = draft.with_finding("bad", "labels", text, label=label)
    draft, chosen = _by_values(draft, chosen)
    if chosen["item"] is None or chosen["vote"] is None:
        missing = " and ".join(role for role in ("item", "vote") if chosen[role] is None)
        return draft.with_finding(
            "bad", "columns", f"No column looks like the {missing}; name it with --{missing}."
        )
    draft = draft.with_finding("note", "columns", f"Columns: {listed_roles(chosen)}.")
    kind = None if draft.request.verdicts else kind_of_answers(table[chosen["vote"]])
    if kind is not None:
        text = f"Column {chosen['vote']!r} has raw answers: verdicts ({kind}) are read from them."
        draft = draft.with_finding("bad", "columns", text, verdicts=kind)
    return _repeats(draft)


def _by_values(draft: Draft, chosen: dict[str, str | None]) -> tuple[Draft, dict[str, str | None]]:
    """Find by their values the columns that names do not tell."""
    table = draft.votes
    labelled = _labelled(draft)

    def say(draft: Draft, role: str, name: str) -> Draft:
        values = listing([v[:40] if isinstance(v, str) else v for v in table[name].unique()], 3)
        text = f"Column {name!r} is read as the {role}, by its values ({values})."
        return draft.with_finding("bad", "columns", text, **{role: name})

    vote = chosen["vote"]
    if chosen["item"] is None:
        item = likely_item(table, chosen.values(), labelled)
        if item is not None:
            chosen, draft = chosen | {"item": item}, say(draft, "item", item)
    if vote is None:
        judge = chosen["judge"]
        if judge is None and chosen["item"] is not None and draft.request.judge is None:
            judge = likely_judge(table, chosen["item"], chosen.values())
        vote = likely_vote(table, [*chosen.values(), judge])
        free = (n for n in map(str, table.columns) if n not in (*chosen.values(), judge))
        vote = vote or next((n for n in free if kind_of_answers(table[n])), None)
        if vote is not None:
            chosen, draft = chosen | {"vote": vote}, say(draft, "vote", vote)
    keys = [n for role in ("item", "order", "sample") if (n := chosen[role]) is not None]
    several = chosen["item"] is not None and bool(table.duplicated(keys).any())
    if chosen["judge"] is None and several and draft.request.judge is None:
        judge = likely_judge(table, str(chosen["item"]), chosen.values())
        if judge is not None:
            chosen, draft = chosen | {"judge": judge}, say(draft, "judge", judge)
    return draft, chosen


def _labelled(draft: Draft) -> list[object] | None:
    """Return the items of the labels' file; None if its column is unknown."""
    gold = draft.labels
    if gold is None:
        return None
    names = [str(name) for name in gold.columns]
    name = draft.request.item if draft.request.item in names else by_name(names, "item")
    if name is None:
        name = max(names, key=lambda each: gold[each].map(str).nunique())
    return list(gold[name].dropna().unique())


def _repeats(draft: Draft) -> Draft:
    """Find the column that numbers repeated votes, among the records that are no copies."""
    opened = try_open(replace(draft, request=replace(draft.request, labels=None, bins=None)))
    if opened is None:
        return draft
    table, chosen = opened.table, opened.columns
    keys = [n for role in ("item", "judge", "order") if (n := chosen[role]) is not None]
    sample = chosen["sample"]
    again = table.duplicated([*keys, *([] if sample is None else [sample])])
    if draft.request.repeats or not again.any():
        if sample is not None and draft.request.sample is None:
            draft = draft.with_finding(
                "note", "repeats", f"Column {sample!r} is read as the number of the repeated vote."
            )
        return draft
    column = likely_sample(table, keys, [name for role, name in chosen.items() if role != "sample"])
    if column is not None:
        text = f"Judges voted several times on an item: column {column!r} numbers the votes."
        return draft.with_finding("bad", "repeats", text, sample=column)
    text = (
        f"{int(again.sum())} votes repeat a judge's vote on an item, and no column numbers them; they "
        "count as repeated votes in the order of the file."
    )
    return draft.with_finding("bad", "repeats", text, repeats=True, sample="none")
