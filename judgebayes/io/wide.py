"""A table with a row per item and a column per judge."""

from pathlib import Path

from judgebayes.errors import JudgeBayesError
from judgebayes.io.cells import with_points
from judgebayes.io.columns import guess_columns, plain_label
from judgebayes.io.gathering import gather
from judgebayes.io.imported import Imported, Row
from judgebayes.io.judge_columns import check_judge_columns
from judgebayes.io.options import Options
from judgebayes.io.tables import notes_of, read_table
from judgebayes.io.tidy import cell, why_none
from judgebayes.votes.classes import listing, written
from judgebayes.votes.columns import require_columns


def read_wide(path: Path, options: Options = Options()) -> Imported:  # noqa: B008
    """Return the votes of a wide table.

    Every column is a judge, except the item and the label (`--label`, or a column whose name is clearly
    that of a label). An empty cell is a missing vote.

    Raises
    ------
    JudgeBayesError
        If the table cannot be read, no column is the item, an item has two rows, or the votes are
        -1, 0 and 1 and it is unclear whether -1 is a vote.
    """
    table = read_table(path, options.layout())
    notes = notes_of(table)
    names = list(table.columns)
    columns = guess_columns(names, {"item": options.item, "label": options.label or "none"})
    item, label = str(columns["item"]), columns["label"]
    if options.label is None:
        label = plain_label(n for n in names if n != item)
    judges = [name for name in names if name not in (item, label)]
    if not judges:
        raise JudgeBayesError(f"{str(path)!r} has no judge columns, only the item column {item!r}.")
    require_columns(table, {"item": item, "label": label, **{name: name for name in judges}})
    table, commas = with_points(table, [*judges, *([label] if label else [])])
    check_judge_columns(table, judges, path)
    rows: list[Row] = []
    items: set[str] = set()
    for row_number, record in zip(table.index, table.to_dict("records"), strict=True):
        name = written(record[item])
        if name is None:
            raise JudgeBayesError(
                f"Row {row_number} of {str(path)!r} has no item in column {item!r}."
            )
        if name in items:
            raise JudgeBayesError(
                f"Item {name!r} has more than one row in {str(path)!r}; a wide table has one row "
                "per item (for repeated votes, use the format tidy, with a row per vote)."
            )
        items.add(name)
        gold = cell(record, label)
        for judge in judges:
            vote, why = cell(record, judge), why_none(record[judge])
            rows.append(Row(name, judge, vote, why, label=gold))
    _refuse_ambiguous(rows, path, missing=options.missing)
    roles = f"Columns: item = {item!r}{'' if label is None else f', label = {label!r}'}; "
    notes += [roles + f"judges: {listing(judges)}.", *commas]
    return gather(rows, str(path), missing=options.missing, notes=notes)


def _refuse_ambiguous(rows: list[Row], path: Path, missing: str | None) -> None:
    """Refuse -1 beside 0 and 1 if no cell is empty: it may be a class or a missing vote."""
    values = {row.vote for row in rows}
    if missing is None and -1 in values and values <= {-1, 0, 1} and None not in values:
        labels = {row.label for row in rows}
        if -1 not in labels:
            raise JudgeBayesError(
                f"{str(path)!r} contains -1, 0 and 1, but no empty cell. If -1 means no vote, use "
                "--missing=-1; if it is a vote, leave one cell empty or use the format tidy."
            )
