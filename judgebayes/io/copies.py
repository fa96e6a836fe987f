"""Records that are identical to an earlier one, and criteria by which a judge votes several times."""

import pandas as pd

from judgebayes.io.columns import criterion_column
from judgebayes.io.options import join_names, split_names
from judgebayes.votes.classes import written

COPY = "identical to an earlier record"
"""Why a copy is left out."""


def without_copies(
    table: pd.DataFrame, columns: dict[str, str | None], *, repeats: bool
) -> tuple[pd.DataFrame, int]:
    """Return a long table without copies of records, and how many there were.

    A copy is identical to an earlier record in every column. Where nothing numbers or tells apart the
    repeated votes of a judge on an item, identical records may be repeated votes and stay: with
    `repeats`, or if other records of the judge on the item differ in their vote.
    """
    keys = [columns[role] for role in ("item", "judge", "sample", "order", "vote")]
    used = [name for name in keys if name is not None]
    again = table.duplicated(used, keep=False)
    if not again.any():
        return table, 0
    same = table[again]
    try:
        copy = same.duplicated()
    except TypeError:  # lists and the like
        copy = same.map(repr).duplicated()
    if not copy.any():
        return table, 0
    rest = table.drop(index=copy.index[copy])
    if columns["sample"] is None:
        place = [name for name in used if name != columns["vote"]]
        others = [str(name) for name in table.columns if name not in columns.values()]
        seen = rest[rest.duplicated(place, keep=False)]
        if not _distinguishes(seen, rest, place, others) and (repeats or len(seen)):
            return table, 0
    return rest, int(copy.sum())


def _distinguishes(
    seen: pd.DataFrame, rest: pd.DataFrame, place: list[str], others: list[str]
) -> bool:
    """Tell whether a column tells repeated votes apart; if there are none, whether its values differ."""
    for name in others:
        cells = (seen if len(seen) else rest)[name].map(repr)
        if len(seen) == 0:
            if cells.is_unique:
                return True
        elif (~seen.assign(**{name: cells}).duplicated([*place, name])).sum() > (
            ~seen.duplicated(place)
        ).sum():
            return True
    return False


def join_judge(table: pd.DataFrame, named: str | None) -> pd.DataFrame:
    """Return the table with a column for a judge that several columns name (`judge,criterion`)."""
    if named is None or named in table.columns:
        return table
    parts = split_names(named)
    if len(parts) < 2 or not set(parts) <= set(table.columns):
        return table
    joined = table[parts[0]].map(written).astype(object)
    for name in parts[1:]:
        joined = joined + " / " + table[name].map(written).astype(object)
    return table.assign(**{named: joined})


def judge_of_criteria(
    table: pd.DataFrame, columns: dict[str, str | None]
) -> tuple[str, str] | None:
    """Return the judge as several columns, if a criterion tells votes of a judge on an item apart.

    The second value is a sentence about it. None if there is no such column.
    """
    free = [name for name in table.columns if name not in columns.values()]
    criterion = criterion_column(free)
    if criterion is None:
        return None
    judge = columns["judge"]
    place = [
        name for role in ("item", "judge", "sample", "order") if (name := columns[role]) is not None
    ]
    if not table.groupby(place, dropna=False)[criterion].nunique().gt(1).any():
        return None
    named = criterion if judge is None else join_names([judge, criterion])
    n = table[criterion].nunique()
    example = join_judge(table, named)[named].iloc[0]
    return named, (
        f"Column {criterion!r} has {n} values for the same item: a judge counts as another judge on "
        f"each, such as {example!r}. To use one of them, keep its rows, or use --only-judge."
    )
