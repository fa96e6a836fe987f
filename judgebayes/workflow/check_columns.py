"""A check of the columns of votes: their roles, and repeated votes.

A check of labels: their column, their people and their items.
"""

from collections import Counter
from dataclasses import replace

import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.io.cells import changed
from judgebayes.io.columns import SETTLED, like_a_label, listed_roles, most_likely, plain_label
from judgebayes.io.gathering import MAX_CLASSES
from judgebayes.io.options import join_names, split_names
from judgebayes.io.vote_tables import kind_of_answers
from judgebayes.io.wide import NotJudgesError, check_judge_columns
from judgebayes.votes.classes import canonical, classes_of_most, listing
from judgebayes.votes.slots import are_orders
from judgebayes.workflow.check_draft import Draft, try_open
from judgebayes.workflow.item_ids import match_items
from judgebayes.workflow.likely import (
    ITEM,
    MEASURE,
    by_name,
    likely_item,
    likely_judge,
    likely_label,
    likely_order,
    likely_sample,
    likely_vote,
)
from judgebayes.workflow.scales import are_scores

SHARE = 0.2
"""The least share of items with several labels from which an item is more than one column."""


def find_label(draft: Draft) -> Draft:
    """Find the column of the label in a file of its own."""
    gold = draft.labels
    if gold is None or draft.request.label is not None or try_open(draft) is not None:
        return draft
    names = [str(name) for name in gold.columns]
    one_hot = _one_hot(gold)
    if one_hot:
        text = (
            f"Columns {listing(one_hot)} of the labels are 0 or 1, and one of them is 1 in each row: "
            "make one column with the name of that one."
        )
        return draft.with_finding("bad", "labels", text)
    if by_name(names, "label") is not None:
        return draft
    vote = draft.request.vote if draft.request.vote in names else None
    vote = vote or likely_vote(gold, [by_name(names, "item")])
    if vote is None:
        return draft
    text = f"Column {vote!r} is read as the label, by its values."
    settled = draft.with_finding("bad", "labels", text, label=vote)
    return draft if try_open(settled) is None else settled  # else something else is wrong


def _one_hot(table: pd.DataFrame) -> list[str]:
    """Return the columns that are 0 or 1, of which one is 1 in each row; none if there are no three."""
    plain = table.select_dtypes("number")
    flags = [name for name in plain if set(plain[name].dropna().unique()) == {0, 1}]
    return flags if len(flags) > 2 and (plain[flags].sum(axis=1) == 1).all() else []


def find_merged(draft: Draft) -> Draft:
    """Find items with different labels by several people."""
    opened = try_open(draft)
    if opened is None or opened.labels is None or draft.request.labels_merge:
        return draft
    gold = opened.labels
    pairs = gold.table[[gold.item, gold.label]].dropna().map(canonical).drop_duplicates()
    split = pairs.loc[pairs[gold.item].duplicated(), gold.item].nunique()
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
        {"labels_merge": "noisy"},
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
    item = columns.item or _item_of_rows(draft)
    if item is None or item not in table.columns or table[item].duplicated().any():
        return False
    label = plain_label(names)
    return (
        len(_alike([table[n] for n in names if n not in (item, label)], _label_values(draft))) > 1
    )


def _item_of_rows(draft: Draft) -> str | None:
    """Return the column that most likely names the item of each row of a wide table."""
    table, names = draft.votes, [str(name) for name in draft.votes.columns]
    likely = [by_name(names, "item"), likely_item(table, labelled=_labelled(draft))]
    likely += [name for name in names if ITEM.fullmatch(name.strip().casefold())]
    return next((n for n in likely if n is not None and not table[n].duplicated().any()), None)


def _label_values(draft: Draft) -> frozenset[str]:
    """Return the values in the likely column of a file of labels, of any column if there is none."""
    gold = draft.labels
    if gold is None:
        return frozenset()
    label = draft.request.label or by_name([str(n) for n in gold.columns], "label")
    columns = [label] if label in gold.columns else list(gold.columns)
    return frozenset(
        str(v).casefold() for n in columns for v in changed(gold[n], canonical).dropna()
    )


def _alike(columns: list[pd.Series], labels: frozenset[str] = frozenset()) -> list[str]:
    """Return the largest set of columns with votes for the same classes, or with scores.

    Classes are few words or whole numbers, of which each column has at least half, or no others; those
    of the labels come first.
    """
    values: dict[str, frozenset[str]] = {}
    scores: list[str] = []
    for cells in columns:
        number = pd.api.types.is_numeric_dtype(cells.dtype)
        if number and MEASURE.fullmatch(str(cells.name).strip().casefold().replace(" ", "_")):
            continue
        if cells.dtype == object and not all(map(pd.api.types.is_scalar, cells)):
            continue
        counts = Counter(changed(cells, canonical).dropna())
        classes = classes_of_most(counts)
        few = 0 < len(counts) <= MAX_CLASSES and counts.total() >= min(2 * len(counts), len(cells))
        if classes is not None or (few and not any(isinstance(v, float) for v in counts)):
            own = counts if classes is None else classes.values
            values[str(cells.name)] = frozenset(str(value).casefold() for value in own)
        elif are_scores(list(counts)) and all(0 <= float(value) <= 1 for value in counts):
            scores.append(str(cells.name))

    def like(scale: frozenset[str]) -> list[str]:
        return [n for n, v in values.items() if v <= scale or 2 * len(v & scale) >= len(v | scale)]

    sets = [(len(s & labels), like(s)) for s in dict.fromkeys(values.values()) if len(s) > 1]
    sets = [(of_labels if len(names) > 1 else 0, names) for of_labels, names in sets]
    return max([*sets, (0, scores)], key=lambda each: (each[0] > 1, len(each[1])))[1]


def _of_people(table: pd.DataFrame, names: list[str]) -> list[str]:
    """Return the columns of a wide table whose names are like people's, and whose cells like votes.

    None if there are no other judges: people can be judges too.
    """
    people = [n for n in names if like_a_label(n)]
    people = [n for n in people if 2 <= changed(table[n], canonical).nunique() <= MAX_CLASSES]
    others = _alike([table[n] for n in names if n not in people])
    return people if len(others) > 1 or len(others) == len(people) else []


def find_wide(draft: Draft) -> Draft:
    """Find the item, the labels and the columns that are not judges, of a wide table."""
    table, names = draft.votes, [str(name) for name in draft.votes.columns]
    if not draft.request.wide:
        text = "The table has a row per item and a column per judge."
        draft = draft.with_finding("bad", "columns", text, wide=True)
    item = draft.request.item or _item_of_rows(draft) or likely_item(table, (), _labelled(draft))
    if item is None:
        return draft.with_finding(
            "bad", "columns", "Which column is the item? Name it with --item."
        )
    if item not in (draft.request.item, by_name(names, "item")):
        text = f"Column {item!r} is read as the item, by its values."
        draft = draft.with_finding("bad", "columns", text, item=item)
    names = [name for name in names if name != item]
    given, here = draft.request.label, draft.labels is None
    label = given or plain_label(names)
    labels = [label] if label in names else split_names(label or "")
    people = [name for name in _of_people(table, names) if name not in labels]
    if people and label is None and here:
        settled = [name for name in people if SETTLED.search(name)]
        labels = settled if len(settled) == 1 else people
        text = (
            f"Column {listing(people)} is named like the answers of people, and not read as a judge: "
            f"{listing(labels)} is read as the labels. If it is a judge, use --label none."
        )
        ways = [{"label": name} for name in ("none", *people) if [name] != labels]
        option = labels[0] if len(labels) == 1 else join_names(labels)
        draft = draft.with_finding("bad", "labels", text, *ways, label=option)
    elif label is None and here:
        judges = _alike([table[name] for name in names])
        sparse = [n for n in judges if table[n].isna().any() and by_name([n], "label") is not None]
        if len(sparse) == 1 and len(judges) > 2:
            labels = sparse
            text = f"Column {sparse[0]!r} is read as the labels, not as a judge."
            draft = draft.with_finding("note", "labels", text, label=sparse[0])
    elif label is not None and given is None and here:
        draft = draft.with_finding(
            "note", "labels", f"Column {label!r} is read as the labels, by its name."
        )
    if given == "none":
        people = []
    left_out = draft.request.left_out
    new = [name for name in people if name not in (*labels, *left_out)]
    taken = (*labels, *people, *left_out)
    group = _alike([table[n] for n in names if n not in taken], _label_values(draft))
    if len(group) > 1:
        new += [n for n in names if n not in (*taken, *group)]
    while True:
        others = {*taken, *new}
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
        named = [name for name in people if name in new]
        why = f" {listing(named)}: named like people's answers." if named else ""
        text = f"No judge, by name or by other values: {listing(new, 20)}.{why}"
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
    if not here:
        chosen["label"] = None
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
    if chosen["vote"] is None and draft.labels is not None:
        both = [n for n in names if n in draft.labels.columns and n not in chosen.values()]
        both = [n for n in both if 2 <= changed(table[n], canonical).nunique() <= MAX_CLASSES]
        items = table.groupby(chosen["item"]) if chosen["item"] is not None else None
        both = [n for n in both if items is None or items[n].nunique().max() > 1]
        if both:
            chosen["vote"] = both[0]
            text = (
                f"Column {listing(both)} is in both files: {both[0]!r} is read as vote and label."
            )
            ways = [{"vote": name, "label": name} for name in both[1:]]
            draft = draft.with_finding("bad", "columns", text, *ways, vote=both[0], label=both[0])
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
        vote = likely_vote(table, [*chosen.values(), judge], chosen["item"])
        free = (n for n in map(str, table.columns) if n not in (*chosen.values(), judge))
        vote = vote or next((n for n in free if kind_of_answers(table[n])), None)
        if vote is not None:
            chosen, draft = chosen | {"vote": vote}, say(draft, "vote", vote)
    if chosen["order"] is None and draft.request.order is None:
        order = likely_order(table, chosen.values())
        if order is not None:
            chosen, draft = chosen | {"order": order}, say(draft, "order", order)
    keys = [n for role in ("item", "order", "sample") if (n := chosen[role]) is not None]
    several = chosen["item"] is not None and bool(table.duplicated(keys).any())
    if chosen["judge"] is None and several and draft.request.judge is None:
        judge = likely_judge(table, str(chosen["item"]), chosen.values())
        if judge is not None:
            item = str(chosen["item"])
            votes = set() if vote is None else set(changed(table[vote], canonical).dropna())
            people = [n for n in _of_people(table, list(table)) if n != vote]
            gold = next(
                (n for n in people if set(changed(table[n], canonical).dropna()) <= votes), None
            )
            plain = (
                table if gold is None else table.assign(**{gold: changed(table[gold], canonical)})
            )
            once = plain.groupby([item, judge])[gold].nunique().max() <= 1 if gold else False
            if gold and once and (plain.groupby(item)[gold].nunique() > 1).mean() > SHARE:
                text = (
                    f"Items are named by {item!r} and {judge!r} together, because {gold!r}, which is "
                    "named like the answers of people, has one value for each pair of them."
                )
                pair = {"item": join_names([item, judge]), "judge": "none", "label": gold}
                return draft.with_finding("bad", "columns", text, **pair), chosen | pair
            chosen, draft = chosen | {"judge": judge}, say(draft, "judge", judge)
    known = chosen["item"] is not None and chosen["vote"] is not None
    if (
        known
        and draft.labels is None
        and chosen.get("label") is None
        and draft.request.label is None
    ):
        label = likely_label(table, str(chosen["item"]), str(chosen["vote"]), chosen.values())
        if label is not None:
            chosen, draft = chosen | {"label": label}, say(draft, "label", label)
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
