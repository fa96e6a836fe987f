"""A table with a row per item and a column per judge."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.io.cells import with_points
from judgebayes.io.columns import guess_columns, plain_label
from judgebayes.io.imported import SCORES, Imported, Row, gather, option
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
        label = plain_label(n for n in names if n != item)
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


def refuse_no_judges(
    table: pd.DataFrame, judges: list[str], path: Path, classes: Classes | None = None
) -> None:
    """Refuse columns of notes, dates or names among those of judges.

    A column is no judge's if fewer than half of its cells hold one of the classes, where they are given,
    or else of those that others vote for: of words, or of numbers where more columns vote so. Where no
    column votes for known classes, judges are the most columns that have their few words in common.

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
    if classes is not None:
        strange = [judge for judge in judges if _odd(counts[judge], classes)]
        if 0 < len(strange) < sum(map(bool, counts.values())):
            _refuse(strange, _odd(counts[strange[0]], classes)[0], path, classes.names)
        return
    scales = {judge: _scale(counts[judge]) for judge in judges}
    known = [judge for judge in judges if scales[judge] is not None]
    votes: Counter[Hashable] = sum((counts[judge] for judge in known), Counter())
    scale = _scale(votes)
    alike = _alike(counts)
    if len(alike) > len(known):
        cast = Counter(v for judge in judges if judge in alike for v in counts[judge])
        strange = [
            judge
            for judge, found in counts.items()
            if found and judge not in alike and not (len(found) <= SCORES and found.keys() & cast)
        ]
        if strange:
            unknown = "" if _scale(cast) is not None else _NAME_CLASSES
            _refuse(strange, next(iter(counts[strange[0]])), path, list(map(str, cast)), unknown)
        return
    if scale is None or len({scale.index(vote) for vote in votes} - {None}) < 2:
        return
    strange = [judge for judge in judges if _odd(counts[judge], scale)]
    words = [
        j
        for j in strange
        if any(isinstance(v, str) for v in (*_odd(counts[j], scale), *scale.values))
    ]
    if len(strange) - len(words) >= len(judges) - len(strange):
        strange = words  # the others give scores, perhaps
    if strange:
        _refuse(strange, _odd(counts[strange[0]], scale)[0], path, scale.names)


_NAME_CLASSES = " Then name the classes, from the lowest to the highest: --classes 'LOW,...,HIGH'."


def _refuse(
    strange: list[str], first: Hashable, path: Path, votes: Sequence[str], more: str = ""
) -> None:
    others = f", nor are {listing(strange[1:], 20)}" if strange[1:] else ""
    raise JudgeBayesError(
        f"Column {strange[0]!r} of {str(path)!r} holds {first!r}, and is no judge's that votes for "
        f"{', '.join(votes)}{others}. Leave such columns out: {option('ignore', strange)}.{more}"
    )


def _odd(counts: "Counter[Hashable]", scale: Classes) -> list[Hashable]:
    """Return the values that are no classes of a scale, if more than half of the cells hold such."""
    odd = [value for value in counts if scale.index(value) is None]
    return odd if 2 * sum(counts[value] for value in odd) > counts.total() else []


def _alike(counts: "Mapping[str, Counter[Hashable]]") -> set[str]:
    """Return the largest set of columns that have their few words in common, if one is largest."""
    few = {
        name: Counter(str(value).casefold() for value in found.elements())
        for name, found in counts.items()
        if 0 < len(found) <= SCORES and all(isinstance(value, str) for value in found)
    }
    groups: list[set[str]] = []
    for name in few:
        near = [group for group in groups if any(_share(few[name], few[j]) for j in group)]
        groups = [group for group in groups if group not in near] + [{name}.union(*near)]
    sizes = sorted((len(group) for group in groups), reverse=True)
    return max(groups, key=len) if sizes and sizes[0] > max([1, *sizes[1:]]) else set()


def _share(one: "Counter[str]", other: "Counter[str]") -> bool:
    """Tell whether most cells of one of two columns hold words of the other."""
    return any(2 * sum(a[word] for word in b) > a.total() for a, b in ((one, other), (other, one)))


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
