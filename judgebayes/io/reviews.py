"""A table of judges' answers that review several items each, and a table of the items (P4)."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from judgebayes.errors import JudgeBayesError
from judgebayes.io.cells import changed
from judgebayes.io.columns import guess_columns, names_of_items, the_column
from judgebayes.io.gathering import Row, reasons
from judgebayes.io.matching import AMBIGUOUS, CONTRADICTORY
from judgebayes.io.options import Files, Options
from judgebayes.io.repair import LINE_KEYS, TEXT_KEYS, Shown, repair_verdicts
from judgebayes.io.tables import notes_of, read_table
from judgebayes.io.vote_tables import TEXTS, cell
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


def read_reviews(given: Files) -> Iterator[Row | str]:
    """Return the votes in answers that contain a list of verdicts in JSON (`repair_verdicts`).

    A row of the answers is one answer on all items of a group; `options.items` is the table of the
    items, with their name, group, line and text. Without a column of groups, every answer is on all
    items.

    Raises
    ------
    JudgeBayesError
        If a file cannot be read, a column is not recognised, or an answer's group has no items.
    """
    options = given.options
    if options.items is None:
        raise JudgeBayesError(
            "The format reviews needs the items that the judges were shown: use --items FILE, a table "
            "with the columns item, group, line and text."
        )
    groups, grouped = _read_items(options.items, options)
    lost: Counter[str] = Counter()
    for file in given.files:
        table = read_table(file, options.layout())
        alone = file.name.split(".")[0] if len(given.files) > 1 else "judge"
        yield from notes_of(table)
        text = the_column(table, "text", TEXTS, file, options.text, flag="text")
        # Named as in the items, else `item`.
        groups_named = (options.group or GROUP, "item")
        group = the_column(table, "group", groups_named, file) if grouped else None
        named = {"judge": options.judge, "sample": options.sample}
        columns = guess_columns([n for n in table.columns if n not in (text, group)], named)
        for number, record in zip(table.index, table.to_dict("records"), strict=True):
            name = "" if group is None else written(record[group])
            if name is None or name not in groups:
                raise JudgeBayesError(
                    f"Row {number} of {str(file)!r} is on the group {name!r}, of which "
                    f"{str(options.items)!r} has no items."
                )
            judge = None if columns["judge"] is None else written(record[columns["judge"]])
            repaired = repair_verdicts(record[text], [each.shown for each in groups[name]])
            lost += repaired.lost
            for place, each in enumerate(groups[name]):
                yield Row(
                    each.name,
                    alone if judge is None else judge,
                    VOTES.get(repaired.votes[place]),
                    WHY[repaired.reasons[place]],
                    sample=cell(record, columns["sample"]),
                    label=each.label,
                    repairs=None if place else tuple(repaired.repairs.elements()),
                )
    if lost:
        yield f"Verdicts and answers that are not votes: {reasons(lost)}."


def _read_items(path: Path, options: Options) -> tuple[dict[str, list[_Item]], bool]:
    """Return the items by group, and whether there is a column of groups."""
    table = read_table(path)
    line = the_column(table, "line", (*LINE_KEYS, "lines"), path)
    text = the_column(table, "text", TEXT_KEYS, path)
    grouped = options.group is not None or GROUP in table.columns
    group = the_column(table, "group", (options.group or GROUP,), path) if grouped else None
    roles = {
        role: name for role, name in (("line", line), ("text", text), ("group", group)) if name
    }
    columns = guess_columns(
        table.columns.drop(list(roles.values())), {"item": options.item, "label": options.label}
    )
    names = names_of_items(table, str(columns["item"]), path, "")
    for role, name in roles.items():
        blank = changed(table[name], written).isin(["", None])
        if blank.any():
            raise JudgeBayesError(
                f"Row {blank.idxmax()} of {str(path)!r} has no {role} in {name!r}."
            )
    groups: dict[str, list[_Item]] = defaultdict(list)
    for item, record in zip(names, table.to_dict("records"), strict=True):
        shown = Shown(str(written(record[line])), str(record[text]))
        in_group = "" if group is None else str(written(record[group]))
        groups[in_group].append(_Item(item, shown, cell(record, columns["label"])))
    return dict(groups), grouped
