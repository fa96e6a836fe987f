"""A table of judges' answers that review several items each, and a table of the items (P4)."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.io.columns import guess_columns
from judgebayes.io.gathering import Imported, Row, gather
from judgebayes.io.judge_text import TEXTS
from judgebayes.io.matching import AMBIGUOUS, CONTRADICTORY
from judgebayes.io.options import Options
from judgebayes.io.records import find_files
from judgebayes.io.repair import LINE_KEYS, LOST, SAYS, TEXT_KEYS, Shown, repair_verdicts
from judgebayes.io.tables import notes_of, read_table
from judgebayes.io.tidy import TABLES, cell
from judgebayes.votes.classes import written

GROUP = "group"
"""The usual column that says which items an answer is on."""
VOTES = {1: "valid", 0: "invalid"}
WHY = {
    AMBIGUOUS: "the verdict may be on another item",
    CONTRADICTORY: "verdicts that differ",
    None: "no verdict on the item",
}


@dataclass(frozen=True)
class _Item:
    name: str
    shown: Shown
    label: str | int | float | None


def read_reviews(path: Path, options: Options = Options()) -> Imported:  # noqa: B008
    """Return the votes in answers that contain a list of verdicts in JSON (`repair_verdicts`).

    A row of the answers is one answer on all items of a group; `options.items` is the table of the
    items, with their name, group, line and text. Without a column of groups, every answer is on all
    items.

    Raises
    ------
    JudgeBayesError
        If a file cannot be read, a column is not recognised, or an answer's group has no items.
    """
    files = find_files(path, TABLES, "table")
    if options.items is None:
        raise JudgeBayesError(
            "The format reviews needs the items that the judges were shown: use --items FILE, a table "
            "with the columns item, group, line and text."
        )
    groups, grouped = _read_items(options.items, options)
    steps: Counter[str] = Counter()
    rows: list[Row] = []
    notes: dict[str, None] = {}
    for file in files:
        table = read_table(file, options.layout())
        notes |= dict.fromkeys(notes_of(table))
        text = _column(table, options.text, TEXTS, "text", file)
        group = _group_of_answers(table, options, file) if grouped else None
        named = {"judge": options.judge, "sample": options.sample}
        columns = guess_columns([n for n in table.columns if n not in (text, group)], named)
        judge_of_file = file.name.split(".")[0] if len(files) > 1 else "judge"
        for number, record in zip(table.index, table.to_dict("records"), strict=True):
            name = "" if group is None else written(record[group])
            if name is None or name not in groups:
                raise JudgeBayesError(
                    f"Row {number} of {str(file)!r} is on the group {name!r}, of which "
                    f"{str(options.items)!r} has no items."
                )
            judge = None if columns["judge"] is None else written(record[columns["judge"]])
            repaired = repair_verdicts(record[text], [each.shown for each in groups[name]])
            steps += repaired.steps
            rows += [
                Row(
                    each.name,
                    judge_of_file if judge is None else judge,
                    VOTES.get(vote),
                    WHY[reason],
                    sample=cell(record, columns["sample"]),
                    label=each.label,
                )
                for each, vote, reason in zip(
                    groups[name], repaired.votes, repaired.reasons, strict=True
                )
            ]
    lost = [f"{SAYS[name]} {steps[name]}" for name in SAYS if name in LOST and steps[name]]
    if lost:
        notes[f"Verdicts and answers that are not votes: {', '.join(lost)}."] = None
    return gather(
        rows,
        str(path),
        missing=options.missing,
        classes=("invalid", "valid"),
        repairs=Counter({SAYS[n]: steps[n] for n in SAYS if n not in LOST and steps[n]}),
        notes=list(notes),
    )


def _read_items(path: Path, options: Options) -> tuple[dict[str, list[_Item]], bool]:
    """Return the items by group, and whether there is a column of groups."""
    table = read_table(path)
    line = _column(table, None, (*LINE_KEYS, "lines"), "line", path)
    text = _column(table, None, TEXT_KEYS, "text", path)
    group = options.group or (GROUP if GROUP in table.columns else None)
    if group is not None and group not in table.columns:
        raise JudgeBayesError(
            f"There is no column {group!r} for the group in {str(path)!r}; it has "
            f"{', '.join(map(repr, table.columns[:20]))}."
        )
    free = table.drop(columns=[name for name in (line, text, group) if name is not None])
    columns = guess_columns(free.columns, {"item": options.item, "label": options.label})
    groups: dict[str, list[_Item]] = defaultdict(list)
    names: set[str] = set()
    for number, record in zip(table.index, table.to_dict("records"), strict=True):
        item = written(record[columns["item"]])
        in_group = "" if group is None else written(record[group])
        shown = written(record[line]), record[text]
        for role, value in (("item", item), ("group", in_group), ("line", shown[0])):
            if value is None:
                raise JudgeBayesError(f"Row {number} of {str(path)!r} has no {role}.")
        if not isinstance(shown[1], str) or not shown[1].strip():
            raise JudgeBayesError(f"Row {number} of {str(path)!r} has no text in {text!r}.")
        if item in names:
            raise JudgeBayesError(
                f"Row {number} of {str(path)!r} has the item {item!r} a second time; each item must "
                "have one row."
            )
        names.add(str(item))
        label = cell(record, columns["label"])
        groups[str(in_group)].append(_Item(str(item), Shown(str(shown[0]), shown[1]), label))
    return dict(groups), group is not None


def _group_of_answers(table: pd.DataFrame, options: Options, file: Path) -> str:
    """Return the column of the answers' groups: named as in the items, else `item`."""
    wanted = options.group or GROUP
    return _column(table, None, (wanted, "item"), "group", file)


def _column(
    table: pd.DataFrame, named: str | None, likely: tuple[str, ...], role: str, file: Path
) -> str:
    names = list(table.columns)
    column = next((name for name in ((named,) if named else likely) if name in names), None)
    if column is None:
        raise JudgeBayesError(
            f"Which column of {str(file)!r} is the {role}? It has {', '.join(map(repr, names[:20]))}; "
            f"name it {' or '.join(map(repr, likely[-2:]))}."
        )
    return str(column)
