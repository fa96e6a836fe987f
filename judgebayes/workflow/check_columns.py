"""A check of the columns of votes: their roles, and repeated votes.

A check of labels: their column, their people and their items.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.io.cells import changed, with_points
from judgebayes.io.columns import (
    SETTLED,
    guess_columns,
    join_judge,
    judge_of_criteria,
    like_a_label,
    listed_roles,
    most_likely,
    plain_label,
    unrecognised,
)
from judgebayes.io.gathering import MAX_CLASSES
from judgebayes.io.options import join_names, split_names
from judgebayes.io.vote_tables import kind_of_answers
from judgebayes.io.wide import NotJudgesError, check_judge_columns
from judgebayes.votes.classes import canonical, classes_of_most, given_classes, listing, written
from judgebayes.votes.slots import are_orders
from judgebayes.workflow.annotators import label_columns
from judgebayes.workflow.check_draft import Draft, try_open
from judgebayes.workflow.item_ids import hint, match_items
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
from judgebayes.workflow.options import ROLES
from judgebayes.workflow.roles import labels_of_file
from judgebayes.workflow.scales import are_scores

SHARE = 0.2
"""The least share of items with several labels from which an item is more than one column."""


def find_label(draft: Draft) -> Draft:
    """Find the columns of labels in a file of their own."""
    gold, opened = draft.labels, try_open(draft)
    if gold is None or opened is None:
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
        vote = draft.tables.vote if draft.tables.vote in names else None
        vote = vote or likely_vote(gold, [by_name(names, "item")])
        if vote is None or draft.tables.label is not None:
            return draft.with_finding("bad", "labels", str(error))
        try:
            labels, message = labels_of_file(replace(draft.tables, label=vote), opened.items)
        except JudgeBayesError:  # something else is wrong
            return draft.with_finding("bad", "labels", str(error))
        text = f"Column {vote!r} is read as the label, by its values."
        draft = draft.with_finding("bad", "labels", text, label=vote)
    if message:
        draft = draft.saying("labels", message)
    return replace(draft, gold=labels)


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
    items, labels = changed(gold.items, written), changed(gold.table[gold.label], canonical)
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
    draft = draft.with_finding(
        "bad",
        "labels",
        f"{split} item(s) have different labels by several people; the most frequent one is used, and "
        "an item with a tie has none. Other ways: adjudicated, noisy.",
        {"labels_merge": "noisy"},
        question=f"{split} item(s) have different labels in column {gold.label!r}: use --labels-merge "
        "majority, adjudicated or noisy.",
        labels_merge="majority",
    )
    if draft.gold is None:
        return draft
    return replace(draft, gold=labels_of_file(draft.tables, opened.items)[0])  # with annotators


def find_items(draft: Draft) -> Draft:
    """Match the items of the labels with those of the votes."""
    gold, opened = draft.gold, try_open(replace(draft, gold=None))
    if gold is None or opened is None:
        return draft
    given, items = gold.items, opened.items.unique()
    matching, drop = match_items(given.unique(), items), draft.tables.drop_unknown_labels
    draft = replace(draft, matching=matching)
    exactly = draft.tables.match_ids == "exactly"
    same = set(map(written, given.unique())) & set(map(written, items))
    question = (
        f"Column {gold.label!r} labels {given.nunique() - len(same)} item(s) that have no votes. Items "
        f"with votes are named {listing(items, 3)}. {hint(matching)} To drop these labels, use "
        "--drop-unknown-labels."
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
        text = f"Items match after folding {matching.how}: {matching.preview}."
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


def is_wide(draft: Draft) -> bool:
    """Tell whether a table has a row per item and a column per judge."""
    if draft.tables.wide:
        return True
    given, names = _given(draft), [str(name) for name in draft.votes.columns]
    long = [given[role] or by_name(names, role) for role in ("vote", "judge")]
    if any(long):
        return False
    table = plain_table(draft.votes)
    item = given["item"] or _item_of_rows(draft, table)
    if item is None or item not in table.columns or table[item].duplicated().any():
        return False
    label = plain_label(names)
    return (
        len(_alike([table[n] for n in names if n not in (item, label)], _label_values(draft))) > 1
    )


def _item_of_rows(draft: Draft, table: pd.DataFrame) -> str | None:
    """Return the column that most likely names the item of each row of a wide table."""
    names = [str(name) for name in table.columns]
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
    """Find the item, the labels and the columns that are not judges, of a wide table.

    It is wide without a word if every column but those of the item and the labels, which have usual
    names, is alike; and if not, this is asked.
    """
    given, here = _given(draft), draft.labels is None
    table = join_judge(plain_table(draft.votes), given["item"])
    every = [str(name) for name in table.columns]
    item = given["item"] or _item_of_rows(draft, table) or likely_item(table, (), _labelled(draft))
    if item is None:
        text = "Which column is the item? Name it with --item."
        return draft.with_finding("bad", "columns", text)
    try:
        known = {"item": item, "task": given["task"], "group": given["group"]}
        columns = guess_columns(every, known)
        if here and not label_columns(table, given["label"]):
            guess_columns(every, {"label": given["label"] or "none"})
    except JudgeBayesError as error:
        return draft.with_finding("bad", "columns", str(error))
    left_out = (*draft.tables.left_out, *draft.earlier.ignored)
    names = [n for n in every if n not in (*columns.values(), *left_out)]
    named = given["label"] if here or given["label"] in names else None
    label = named or plain_label(names)
    labels = [label] if label in names else label_columns(table, label)
    people = [name for name in _of_people(table, names) if name not in labels]
    people = [] if given["label"] == "none" else people
    group = _alike([table[n] for n in names if n not in (*labels, *people)], _label_values(draft))
    sure = len(group) + len(labels) == len(names) and item == by_name(every, "item")
    given_wide = draft.tables.wide
    if not given_wide:
        text = "The table has a row per item and a column per judge."
        if sure:
            draft = draft.saying("columns", text, wide=True)
        else:
            asked = unrecognised("vote", every)
            draft = draft.with_finding("bad", "columns", text, question=asked, wide=True)
    if item not in (given["item"], by_name(every, "item")):
        text = f"Column {item!r} is read as the item, by its values."
        draft = draft.with_finding("bad", "columns", text, item=item)
    if people and label is None and here:
        settled = [name for name in people if SETTLED.search(name)]
        labels = settled if len(settled) == 1 else people
        text = (
            f"Column {listing(people)} is named like the answers of people, and not read as a judge: "
            f"{listing(labels)} is read as the labels. If it is a judge, use --label none."
        )
        ways = [{"label": name} for name in ("none", *people) if [name] != labels]
        label = labels[0] if len(labels) == 1 else join_names(labels)
        draft = draft.with_finding("bad", "labels", text, *ways, label=label)
    elif label is None and here:
        sparse = [n for n in group if table[n].isna().any() and by_name([n], "label") is not None]
        if len(sparse) == 1 and len(group) > 2:
            labels, label = sparse, sparse[0]
            text = f"Column {label!r} is read as the labels, not as a judge."
            draft = draft.with_finding("note", "labels", text, label=label)
    elif label is not None and given["label"] is None and here:
        text = f"Column {label!r} is read as the labels, by its name."
        draft = draft.with_finding("note", "labels", text)
    new = [name for name in people if name not in labels]
    if len(group) > 1 and not given_wide:
        new += [n for n in names if n not in (*labels, *people, *group)]
    aside = labels if labels and not here else []
    classes = draft.tables.classes
    scale = None if classes is None else given_classes(split_names(classes), None)
    question = ""
    while True:
        judges = [name for name in names if name not in (*labels, *new)]
        try:
            check_judge_columns(table, judges, draft.tables.votes, scale)
        except NotJudgesError as error:
            new += error.columns
            question = question or str(error)
            continue
        except JudgeBayesError as error:
            return draft.with_finding("bad", "columns", str(error))
        break
    if not judges:
        return draft.with_finding("bad", "columns", "No column contains the votes of a judge.")
    if new:
        persons = [name for name in people if name in new]
        why = f" {listing(persons)}: named like people's answers." if persons else ""
        text = f"No judge, by name or by other values: {listing(new, 20)}.{why}"
        ignore = join_names([*draft.tables.left_out, *new])
        draft = draft.with_finding("bad", "columns", text, question=question, ignore=ignore)
    if aside:
        draft = draft.saying(
            "labels",
            f"Column {listing(aside)} is left out: it is named like labels, but the labels are in "
            "another file.",
        )
        earlier = replace(draft.earlier, ignored=(*draft.earlier.ignored, *aside))
        draft = replace(draft, earlier=earlier)
    roles = columns | {"label": label if labels and here else None}
    draft = replace(draft, columns=dict.fromkeys(ROLES) | roles)
    return draft.with_finding("note", "columns", f"Judges: {listing(judges, 20)}.")


def _given(draft: Draft) -> dict[str, str | None]:
    """Return the columns by role that the user or an earlier file names, "none" for one there is not."""
    table, given = draft.votes, draft.tables.named()
    for role, name in draft.earlier.columns.items():
        if given[role] is None and name in table.columns:
            given[role] = name
    for optional in ("task", "group"):
        given[optional] = given[optional] or "none"
    label = given["label"]
    if draft.labels is not None and label not in table.columns:
        given["label"] = "none"
    return given


def find_long(draft: Draft) -> Draft:
    """Find the columns of a table with a row per vote, and its repeated votes."""
    given, here = _given(draft), draft.labels is None
    table = join_judge(join_judge(draft.votes, given["item"]), given["judge"])
    names = [str(name) for name in table.columns]
    several = label_columns(table, given["label"])
    worker = "worker" in names  # as crowd-sourcing tools write: task, worker, label
    crowd = (worker or not here) and "label" in names and most_likely(names, "vote") is None
    if crowd and given["vote"] is None:
        given["vote"] = "label"
    if worker and "task" in names and most_likely(names, "item") is None and given["item"] is None:
        given["item"] = "task"
    try:
        chosen = guess_columns(names, given | ({"label": "none"} if several else {}))
    except JudgeBayesError as error:
        return draft.with_finding("bad", "columns", str(error))
    chosen["label"] = given["label"] if several else chosen["label"]
    order, label = chosen["order"], chosen["label"]
    if order is not None and given["order"] is None and not are_orders(table[order]):
        chosen["order"] = None
        text = (
            f"Column {order!r} is left out: {listing(table[order].dropna().unique(), 3)} are not "
        )
        draft = draft.saying("columns", f"{text}presentation orders (AB, BA).")
    if label is None and given["label"] is None:
        chosen["label"] = label = plain_label(n for n in names if n not in chosen.values())
        if label is not None:
            text = f"Column {label!r} is read as the label, by its name."
            draft = draft.with_finding("note", "labels", text)
    draft, chosen = _by_values(draft, table, chosen, given)
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
    missing = next((role for role in ("item", "vote") if chosen[role] is None), None)
    if missing is not None:
        return draft.with_finding("bad", "columns", unrecognised(missing, names))
    if given["judge"] is None:
        by_criteria = judge_of_criteria(table, chosen)
        if by_criteria is not None:
            chosen["judge"], message = by_criteria
            draft = draft.saying("columns", message)
    draft = draft.with_finding("note", "columns", f"Columns: {listed_roles(chosen)}.")
    kind = None if draft.request.verdicts else kind_of_answers(table[chosen["vote"]])
    if kind is not None:
        text = f"Column {chosen['vote']!r} has raw answers: verdicts ({kind}) are read from them."
        draft = draft.with_finding("bad", "columns", text, verdicts=kind)
    return _repeats(replace(draft, columns=chosen))


def _by_values(
    draft: Draft,
    table: pd.DataFrame,
    chosen: dict[str, str | None],
    given: Mapping[str, str | None],
) -> tuple[Draft, dict[str, str | None]]:
    """Find by their values the columns that names do not tell."""
    if chosen["item"] is None or chosen["vote"] is None:
        table = plain_table(table)
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
        if judge is None and chosen["item"] is not None and given["judge"] is None:
            judge = likely_judge(table, chosen["item"], chosen.values())
        vote = likely_vote(table, [*chosen.values(), judge], chosen["item"])
        free = (n for n in map(str, table.columns) if n not in (*chosen.values(), judge))
        vote = vote or next((n for n in free if kind_of_answers(table[n])), None)
        if vote is not None:
            chosen, draft = chosen | {"vote": vote}, say(draft, "vote", vote)
    if chosen["order"] is None and given["order"] is None:
        order = likely_order(table, chosen.values())
        if order is not None:
            chosen, draft = chosen | {"order": order}, say(draft, "order", order)
    keys = [n for role in ("item", "order", "sample") if (n := chosen[role]) is not None]
    several = chosen["item"] is not None and bool(table.duplicated(keys).any())
    if chosen["judge"] is None and several and given["judge"] is None:
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
                draft = draft.with_finding("bad", "columns", text, **pair)
                return draft, chosen | pair | {"judge": None}
            chosen, draft = chosen | {"judge": judge}, say(draft, "judge", judge)
    known = chosen["item"] is not None and chosen["vote"] is not None
    if known and draft.labels is None and chosen["label"] is None and given["label"] is None:
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
    opened = try_open(draft)
    if opened is None:
        return draft
    table, chosen = opened.table, dict(draft.columns)
    keys = [n for role in ("item", "judge", "order") if (n := chosen[role]) is not None]
    sample = chosen["sample"]
    again = table.duplicated([*keys, *([] if sample is None else [sample])])
    if draft.request.repeats or not again.any():
        if sample is not None and draft.request.sample is None:
            draft = draft.with_finding(
                "note", "repeats", f"Column {sample!r} is read as the number of the repeated vote."
            )
        return draft
    row = again.idxmax()
    first = (table[keys] == table.loc[row, keys]).all(axis=1).idxmax()
    named = ", ".join(f"{n} {canonical(table.loc[row, n])!r}" for n in keys)
    question = f"Rows {first} and {row} are the same vote ({named})."
    column = likely_sample(table, keys, [name for role, name in chosen.items() if role != "sample"])
    if column is not None:
        text = f"Judges voted several times on an item: column {column!r} numbers the votes."
        draft = draft.with_finding("bad", "repeats", text, question=question, sample=column)
        return replace(draft, columns=chosen | {"sample": column})
    text = (
        f"{int(again.sum())} votes repeat a judge's vote on an item, and no column numbers them; they "
        "count as repeated votes in the order of the file."
    )
    draft = draft.with_finding(
        "bad", "repeats", text, question=question, repeats=True, sample="none"
    )
    return replace(draft, columns=chosen | {"sample": None})


def plain_table(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with points for decimal commas, in columns of plain cells."""
    objects = [name for name in table if table[name].dtype == object]
    lists = [n for n in objects if not table[n].map(pd.api.types.is_scalar).all()]
    return with_points(table, [n for n in table if n not in lists])[0]
