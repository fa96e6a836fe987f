"""A table with a row per item and a column per judge."""

from collections import Counter
from collections.abc import Hashable
from pathlib import Path

import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.io.cells import with_points
from judgebayes.io.columns import guess_columns
from judgebayes.io.imported import Imported, Row, gather, option
from judgebayes.io.options import Options
from judgebayes.io.tables import notes_of, read_table
from judgebayes.io.tidy import cell, why_none
from judgebayes.votes.classes import (
    Classes,
    canonical,
    infer_classes,
    listing,
    usual_classes,
    written,
)

__all__ = ["read_wide", "refuse_no_judges"]

LABELS = ("label", "gold", "truth", "gold label", "gold_label", "ground truth", "ground_truth")
"""Names that no judge would have; "human" or "reference" may be one."""


def read_wide(path: Path, options: Options = Options()) -> Imported:  # noqa: B008
    """Return the votes of a wide table.

    Every column is a judge's but that of the item and that of the label (`--label`, or one that is
    plainly called so). An empty cell is a missing vote.

    Raises
    ------
    JudgeBayesError
        If the table cannot be read, no column is the item, an item has two rows, or -1 stands
        among 0 and 1 and nothing says whether it is a vote.
    """
    table = read_table(path, options.layout())
    notes = notes_of(table)
    names = list(table.columns)
    columns = guess_columns(names, {"item": options.item, "label": options.label or "none"})
    item, label = str(columns["item"]), columns["label"]
    if options.label is None:
        label = next((n for n in names if n.casefold() in LABELS and n != item), None)
    judges = [name for name in names if name not in (item, label)]
    if not judges:
        raise JudgeBayesError(f"{str(path)!r} has no column of a judge beside {item!r}.")
    table, commas = with_points(table, [*judges, *([label] if label else [])])
    refuse_no_judges(table, judges, path)
    rows: list[Row] = []
    seen: set[str] = set()
    for place, record in zip(table.index, table.to_dict("records"), strict=True):
        name = written(record[item])
        if name is None:
            raise JudgeBayesError(f"Row {place} of {str(path)!r} has no item in column {item!r}.")
        if name in seen:
            raise JudgeBayesError(
                f"Item {name!r} has more than one row in {str(path)!r}; a wide table has one row "
                "per item (repeated votes: a row each, and the format tidy)."
            )
        seen.add(name)
        gold = cell(record, label)
        for judge in judges:
            vote, why = cell(record, judge), why_none(record[judge])
            rows.append(Row(name, judge, vote, why, label=gold))
    _refuse_ambiguous(rows, path, told=options.missing is not None)
    told = f"Columns: item = {item!r}{'' if label is None else f', label = {label!r}'}; "
    notes += [told + f"judges: {listing(judges)}.", *commas]
    return gather(rows, str(path), missing=options.missing, notes=notes)


def refuse_no_judges(table: pd.DataFrame, judges: list[str], path: Path) -> None:
    """Refuse columns of notes, dates or names among those of judges.

    A column is no judge's if fewer than half of its cells hold one of the classes that others vote for:
    of words, or of numbers where more columns vote so.

    Raises
    ------
    JudgeBayesError
        If there is such a column, or one without a name.
    """
    counts = {
        judge: Counter(v for v in map(canonical, table[judge]) if v is not None) for judge in judges
    }
    nameless = [judge for judge in judges if judge.startswith("Unnamed: ") and counts[judge]]
    if nameless:
        raise JudgeBayesError(
            f"{str(path)!r} has {len(nameless)} column(s) without a name that are not empty. Name them; "
            "if the header stands below N other rows, say --skip-rows N."
        )
    scales = {judge: _scale(counts[judge]) for judge in judges}
    known = [judge for judge in judges if scales[judge] is not None]
    votes: Counter[Hashable] = sum((counts[judge] for judge in known), Counter())
    scale = _scale(votes)
    if scale is None or len({scale.index(vote) for vote in votes} - {None}) < 2:
        return
    odd = {
        judge: Counter({v: n for v, n in found.items() if scale.index(v) is None})
        for judge, found in counts.items()
    }
    strange = [judge for judge in judges if 2 * odd[judge].total() > counts[judge].total()]
    words = [j for j in strange if any(isinstance(v, str) for v in (*odd[j], *scale.values))]
    if len(strange) - len(words) >= len(judges) - len(strange):
        strange = words  # the others give scores, perhaps
    if strange:
        first = next(iter(odd[strange[0]]))
        others = f", nor are {listing(strange[1:])}" if strange[1:] else ""
        raise JudgeBayesError(
            f"Column {strange[0]!r} of {str(path)!r} holds {first!r}, and is no judge's that votes for "
            f"{', '.join(scale.names)}{others}. Leave such columns out: "
            f"{option('ignore', strange)}."
        )


def _scale(counts: "Counter[Hashable]") -> Classes | None:
    """Return the classes that values, or most of them, speak of."""
    usual = usual_classes(counts)
    if usual is not None:
        return usual.classes
    try:
        return infer_classes(counts, "")
    except JudgeBayesError:
        return None


def _refuse_ambiguous(rows: list[Row], path: Path, told: bool) -> None:
    """Refuse -1 among 0 and 1 where no cell is empty: it may be a class, or no vote."""
    values = {row.vote for row in rows}
    if not told and -1 in values and values <= {-1, 0, 1} and None not in values:
        labels = {row.label for row in rows}
        if -1 not in labels:
            raise JudgeBayesError(
                f"{str(path)!r} holds -1, 0 and 1 and no empty cell. If -1 means no vote, say "
                "--missing=-1; if it is a vote, leave one cell empty or use the format tidy."
            )
