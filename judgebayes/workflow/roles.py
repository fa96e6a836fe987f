"""The column of each role, in files of votes and of labels."""

from dataclasses import replace
from pathlib import Path

import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.io.columns import guess_columns, listed_roles, most_likely, plain_label
from judgebayes.io.in_memory import InMemory
from judgebayes.io.options import Layout
from judgebayes.io.tables import read_table
from judgebayes.sentence import did_you_mean
from judgebayes.votes.classes import listing, written
from judgebayes.votes.columns import require_columns
from judgebayes.workflow.annotators import label_columns, melted
from judgebayes.workflow.item_ids import match_items
from judgebayes.workflow.options import ReadRequest
from judgebayes.workflow.sources import Labels

ITEM_SHARE = 0.9
"""The least share of values of an item column in a file of labels that are items with votes."""


def wide_columns(
    names: list[str], given: dict[str, str | None], *, elsewhere: bool
) -> tuple[dict[str, str | None], str | None]:
    """Return the column of each role, and a column named like labels if these are in another file.

    All other columns are judges.
    """
    label = given["label"]
    given = given | dict.fromkeys(("judge", "sample", "order"), "none")
    given.pop("vote")
    given["label"] = "none" if label is None or (elsewhere and label not in names) else label
    columns = guess_columns(names, given) | {"vote": None}
    if label is None:
        columns["label"] = plain_label(n for n in names if n not in columns.values())
    if elsewhere:
        return columns | {"label": None}, columns["label"]
    return columns, None


def long_columns(
    table: pd.DataFrame, given: dict[str, str | None], *, elsewhere: bool
) -> dict[str, str | None]:
    """Return the column of each role, for a table with a row per vote."""
    given = dict(given)
    if elsewhere:
        given["label"] = given["label"] if given["label"] in table.columns else "none"
        if (
            given["vote"] is None
            and "label" in table.columns
            and most_likely(list(table), "vote") is None
        ):
            given["vote"] = "label"  # the vote of crowd-sourcing tools
    return guess_columns(table.columns, given)


def open_labels(
    path: Path | InMemory, request: ReadRequest, items: pd.Series
) -> tuple[Labels, list[str]]:
    """Return the labels of a file, and a message if its columns were detected by values."""
    item, label = str(items.name), request.label
    layout = Layout(encoding=request.encoding, ignore=request.left_out, all_ignored_exist=False)
    gold = read_table(path, layout)
    several, annotator = label_columns(gold, label), None
    if several:
        gold, label, annotator = melted(gold, several)
    elif request.labels_merge is not None:
        given = {"annotator": request.annotator}
        annotator = guess_columns(gold.columns, given)["annotator"]
    names = [name for name in gold.columns if name != annotator]
    if label is not None and label not in names:
        raise JudgeBayesError(
            f"There is no column {label!r} for the label in {str(path)!r}; it has "
            f"{', '.join(map(repr, names))}.{did_you_mean(label, names)}"
        )
    column = _same_name(item, names)
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
    labels = Labels(gold, column, label, annotator)
    messages = [message] if by_values else []
    if request.match_ids == "loosely":
        labels, matched = _matched(labels, items)
        messages += matched
    return labels, messages


def _same_name(name: str, names: list[str]) -> str | None:
    """Return the name of a column as another file has it: the same, or the only one but for case."""
    if name in names:
        return name
    folded = [other for other in names if other.casefold() == name.casefold()]
    return folded[0] if len(folded) == 1 else None


def _matched(labels: Labels, items: pd.Series) -> tuple[Labels, list[str]]:
    """Return the labels with the items' names in the votes, and a sentence about what was folded."""
    matching = match_items(labels.table[labels.item].unique(), items.unique())
    if matching.collision:
        raise JudgeBayesError(f"--match-ids loosely: {matching.collision}")
    if not matching.folded:
        return labels, ["--match-ids loosely: the items match as they are written."]
    names = labels.table[labels.item]
    new = names.map(written).map(matching.item_of).fillna(names)
    table = labels.table.assign(**{labels.item: new})
    message = (
        f"--match-ids loosely: {matching.preview} items of the labels match after folding "
        f"{matching.how}."
    )
    return replace(labels, table=table), [message]


def _column_of_items(table: pd.DataFrame, items: pd.Series) -> str | None:
    """Return the only column whose values are nearly all items with votes, None if there is none.

    Of several, such as items 0, 1, 2 and labels 0, 1, it is the one whose values are nearly all
    distinct. If there is none, spellings of the items are folded, as `--match-ids loosely` does.
    """
    with_votes = set(map(written, items.unique()))
    names = [
        str(name)
        for name, cells in table.items()
        if cells.map(lambda value: written(value) in with_votes).mean() >= ITEM_SHARE
    ]
    if len(names) > 1:
        names = [name for name in names if table[name].nunique() >= ITEM_SHARE * len(table)]
    if not names:
        names = [
            str(name)
            for name, cells in table.items()
            if cells.nunique() >= ITEM_SHARE * len(table)
            and match_items(cells.dropna().unique(), items.unique()).share >= ITEM_SHARE
        ]
    return names[0] if len(names) == 1 else None
