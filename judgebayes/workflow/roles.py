"""The columns of the item, the label and the annotator in a file of labels."""

import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.io.columns import guess_columns, listed_roles, most_likely, plain_label
from judgebayes.sentence import did_you_mean
from judgebayes.votes.classes import listing, written
from judgebayes.votes.columns import require_columns
from judgebayes.workflow.annotators import label_columns, melted
from judgebayes.workflow.item_ids import match_items
from judgebayes.workflow.options import ReadRequest
from judgebayes.workflow.sources import Labels

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
    gold = path.table.drop(columns=list(request.left_out), errors="ignore")
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
    return Labels(gold, column, label, annotator), message if by_values else ""


def _same_name(name: str, names: list[str]) -> str | None:
    """Return the name of a column as another file has it: the same, or the only one but for case."""
    if name in names:
        return name
    folded = [other for other in names if other.casefold() == name.casefold()]
    return folded[0] if len(folded) == 1 else None


def _column_of_items(table: pd.DataFrame, items: pd.Series) -> str | None:
    """Return the only column whose values are nearly all items with votes, None if there is none.

    Of several, such as items 0, 1, 2 and labels 0, 1, it is the one whose values are nearly all
    distinct. If there is none, spellings of the items are folded, as `match_ids=loosely` does.
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
