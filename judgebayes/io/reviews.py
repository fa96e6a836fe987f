"""A table of judges' answers that review several items each, and a table of the items (P4)."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from judgebayes.errors import JudgeBayesError
from judgebayes.io.columns import ROLES, guess_columns, names_of_items
from judgebayes.io.gathering import Row, reasons
from judgebayes.io.matching import AMBIGUOUS, CONTRADICTORY
from judgebayes.io.options import Files
from judgebayes.io.repair import LINE_KEYS, TEXT_KEYS, Shown, repair_verdicts
from judgebayes.io.tables import notes_of, read_table
from judgebayes.io.tools import plain
from judgebayes.io.vote_tables import TEXTS
from judgebayes.votes.classes import canonical, mapped, written

GROUP = "group"
"""The usual column that says which items an answer is on."""
VOTES = {1: "valid", 0: "invalid"}
WHY = {
    AMBIGUOUS: "the verdict may be on another item",
    CONTRADICTORY: "verdicts that differ",
    None: "no verdict on the item",
}


def read_reviews(given: Files) -> Iterator[Row | str]:
    """Return the votes in answers that contain a list of verdicts in JSON (`repair_verdicts`).

    A row of the answers is one answer on all items of a group; `options.items` is the table of the
    items, with their name, group, line and text. Columns have usual names. Without a column of groups,
    every answer is on all items.

    Raises
    ------
    JudgeBayesError
        If a file cannot be read, a column is not recognised, or an answer's group has no items.
    """
    items = given.options.items
    if items is None:
        raise JudgeBayesError(
            "The format reviews needs the items that the judges were shown: use --items FILE, a table "
            "with the columns item, group, line and text."
        )
    groups, grouped = _read_items(items)
    repairs, lost = Counter[str](), Counter[str]()
    for file in given.files:
        table = read_table(file)
        alone = file.name.split(".")[0] if len(given.files) > 1 else "judge"
        yield from notes_of(table)
        named = {"text": None, "group": None if grouped else "none", "judge": None, "sample": None}
        likely = ROLES | {"text": TEXTS, "group": (GROUP, "item")}
        needed = ("text", "group") if grouped else ("text",)
        columns = guess_columns(table.columns, named, likely, needed, file)
        group = columns["group"]
        for number, record in zip(table.index, table.to_dict("records"), strict=True):
            name = "" if group is None else written(record[group])
            if name is None or name not in groups:
                raise JudgeBayesError(
                    f"Row {number} of {str(file)!r} is on the group {name!r}, of which "
                    f"{str(items)!r} has no items."
                )
            judge = written(record.get(columns["judge"])) or alone
            repaired = repair_verdicts(
                record[columns["text"]], [shown for _, shown, _ in groups[name]]
            )
            repairs += repaired.repairs
            lost += repaired.lost
            for place, (item, _, label) in enumerate(groups[name]):
                yield Row(
                    item,
                    judge,
                    VOTES.get(repaired.votes[place]),
                    WHY[repaired.reasons[place]],
                    sample=plain(record.get(columns["sample"])),
                    label=label,
                )
    if repairs:
        yield f"Repaired: {reasons(repairs)}."
    if lost:
        yield f"Verdicts and answers that are not votes: {reasons(lost)}."


def _read_items(path: Path) -> tuple[dict[str, list[tuple[str, Shown, Any]]], bool]:
    """Return the items by group, with what was shown and the label; and whether there are groups."""
    table = read_table(path)
    grouped = GROUP in table.columns
    shown = {"line": None, "text": None, "group": GROUP if grouped else "none"}
    named = shown | {"item": None, "label": None}
    likely = ROLES | {"line": (*LINE_KEYS, "lines"), "text": TEXT_KEYS}
    columns = guess_columns(table.columns, named, likely, ("line", "text", "item"), path)
    names = names_of_items(table, str(columns["item"]), path, "")
    for role in shown:
        name = columns[role]
        if name is None:
            continue
        blank = mapped(table[name], written).isna()
        if blank.any():
            raise JudgeBayesError(
                f"Row {blank.idxmax()} of {str(path)!r} has no {role} in {name!r}."
            )
    groups: dict[str, list[tuple[str, Shown, Any]]] = defaultdict(list)
    for item, record in zip(names, table.to_dict("records"), strict=True):
        item_shown = Shown(str(written(record[columns["line"]])), str(record[columns["text"]]))
        in_group = "" if columns["group"] is None else str(written(record[columns["group"]]))
        groups[in_group].append((item, item_shown, canonical(record.get(columns["label"]))))
    return dict(groups), grouped
