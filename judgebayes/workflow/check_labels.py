"""A check of labels: their column, their people and their items."""

from dataclasses import replace

from judgebayes.errors import JudgeBayesError
from judgebayes.votes.classes import canonical, listing
from judgebayes.workflow.check_draft import Draft, Tables, opened_by, try_open
from judgebayes.workflow.item_ids import match_items
from judgebayes.workflow.likely import by_name, likely_vote
from judgebayes.workflow.records import with_values


def find_label(draft: Draft, tables: Tables) -> Draft:
    """Find the column of the label in a file of its own."""
    gold = tables.labels
    if gold is None or draft.columns.label is not None:
        return draft
    try:
        opened_by(draft, tables)
    except JudgeBayesError as error:
        if not str(error).startswith("Which column") or "label" not in str(error):
            return draft
        vote = likely_vote(gold, [by_name([str(n) for n in gold.columns], "item")])
        if vote is not None:
            text = f"Column {vote!r} is read as the label, by its values."
            return draft.with_finding("bad", "labels", text, label=vote)
    return draft


def find_merged(draft: Draft, tables: Tables) -> Draft:
    """Find items with different labels by several people."""
    opened = try_open(draft, tables)
    if opened is None or opened.labels is None or draft.request.annotators.labels_merge:
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


def find_items(draft: Draft, tables: Tables) -> Draft:
    """Match the items of the labels with those of the votes."""
    exact = with_values(draft.request, {"match_ids": "exactly"})
    opened = try_open(replace(draft, request=exact), tables)
    if opened is None or opened.labels is None or tables.labels is None:
        return draft
    gold = opened.labels
    given = gold.table.loc[gold.table[gold.label].map(canonical).notna(), gold.item]
    items = opened.table[str(opened.columns["item"])].unique()
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
