r"""Match a judge's verdicts in JSON to the items it was shown (P4 section 4 and appendix B.3).

A judge that reviews several items at once must repeat each item's text and line, so that its verdicts
can be assigned, and often repeats them inexactly. Each repair is counted; an item without a match has a
missing vote. Nothing is guessed: a verdict without a readable label, whose text matches no item, or
which could as well be on another item, is not a vote.

The format `reviews` is a table of such answers, with a table of the items.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgebayes.errors import JudgeBayesError
from judgebayes.io.columns import ROLES, guess_columns, names_of_items
from judgebayes.io.gathering import Row, reasons
from judgebayes.io.json_lines import find_json
from judgebayes.io.matching import AMBIGUOUS, CONTRADICTORY, Named, lines_of, match
from judgebayes.io.options import Files
from judgebayes.io.tables import notes_of, read_table
from judgebayes.io.tools import plain
from judgebayes.io.verdict import strip_reasoning, validity
from judgebayes.io.vote_tables import TEXTS
from judgebayes.votes.classes import canonical, mapped, written

EXACT = {"valid": 1, "invalid": 0}
"""Votes by the labels that are asked for."""
LINE = (str, int, float)
"""Types of a line number."""
LINE_KEYS = ("line_number", "line_num", "line number", "lineno", "line")
TEXT_KEYS = ("feedback", "comment", "text")
KEYS: Mapping[str, tuple[str, ...]] = {
    "line": LINE_KEYS,
    "text": TEXT_KEYS,
    "label": ("classification", "label", "verdict"),
}
LISTS = ("feedback_lines", "feedback", "verdicts", "results")
MALFORMED, UNLABELLED = "not readable", "no label, or labels that differ"
"""Why a verdict is lost, beside being on no item."""
PIECES = "no list around the verdicts"


@dataclass(frozen=True)
class Shown:
    """An item as shown to the judge."""

    line: str
    text: str


@dataclass(frozen=True)
class Repaired:
    """A vote for every item shown (1, 0, or -1 if none can be read), and what was repaired or lost."""

    votes: list[int]
    reasons: list[str | None]
    """For every item, `ambiguous` if its verdict could be on another one, `contradictory` if it has
    different verdicts, or None."""
    repairs: Counter[str]
    """Counts of what was not as asked in the answer, a verdict or a match, in words."""
    lost: Counter[str]
    """Counts of answers and verdicts that are no vote, by the reason."""


def repair_verdicts(response: object, shown: Sequence[Shown]) -> Repaired:
    """Return the votes in a judge's response on the items it was shown.

    Parameters
    ----------
    response
        The judge's answer: text that contains JSON, or the parsed value. Anything else gives no votes.
    shown
        The items, in order.

    Returns
    -------
    Repaired
        No response raises an exception. A verdict is used for at most one item.

    Examples
    --------
    >>> answer = 'Sure: [{"line_number": 3, "feedback": "Close the file", "classification": "valid"},]'
    >>> repaired = repair_verdicts(answer, [Shown("3", "Close the file."), Shown("9", "Add a test.")])
    >>> repaired.votes, list(repaired.repairs)
    ([1, -1], ['clipped text'])
    """
    repairs: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    verdicts = _verdicts(response, repairs, lost)
    items = [Named(lines_of(item.line)[0], item.text) for item in shown]
    outcomes = match(items, [named for named, _ in verdicts], [vote for _, vote in verdicts])
    votes = [-1] * len(items)
    for place, (item, its) in enumerate(zip(items, outcomes, strict=True)):
        if isinstance(its, int):
            named, votes[place] = verdicts[its]
            if named.text != item.text:
                clipped = item.text.startswith(named.text)
                repairs["clipped text" if clipped else "inexact text"] += 1
            repairs["only the starting line is equal"] += named.lines != item.lines
    reasons = [None if isinstance(each, int) else each for each in outcomes]
    lost["on no item, or repeated"] = len(verdicts) - sum(vote >= 0 for vote in votes)
    return Repaired(votes, reasons, +repairs, +lost)


def _verdicts(
    response: object, repairs: Counter[str], lost: Counter[str]
) -> list[tuple[Named, int]]:
    """Return what each verdict in an answer names, and its vote."""
    verdicts = []
    entries = _entries(response, repairs)
    for entry in [None] if entries is None else entries:
        if not isinstance(entry, dict):
            lost[MALFORMED] += 1
            continue
        line, text = (_value(entry, role, repairs) for role in ("line", "text"))
        vote = _vote(entry, repairs)
        if vote is None:
            lost[UNLABELLED] += 1
        elif not isinstance(text, str) or isinstance(line, bool) or not isinstance(line, LINE):
            lost[MALFORMED] += 1
        else:
            lines, worded = lines_of(line)
            repairs["other notation of the line"] += worded
            verdicts.append((Named(lines, text), vote))
    return verdicts


def _entries(response: object, repairs: Counter[str]) -> list[Any] | None:
    """Return the list of verdicts in an answer; None if there is none, or several that differ."""
    answer = response if isinstance(response, str) else json.dumps(response, default=str)
    values = find_json(answer)
    whole = [(each.start, each.end) for each in values] == [(0, len(answer))]
    if not whole and (outside := strip_reasoning(answer)) != answer:
        repairs["reasoning before the JSON"] += 1
        answer, values = outside, find_json(outside)
    lists = [entries for each in values if (entries := _list(each.value)) is not None]
    lists = [entries for entries in lists if whole or any(map(_labelled, entries))]
    if not lists:
        # Verdicts without a list around them: one per line, or of a list that was cut off.
        pieces = [each.value for each in values if _labelled(each.value)]
        repairs[PIECES] += bool(pieces)
        return pieces or None
    return lists[0] if all(other == lists[0] for other in lists[1:]) else None


def _list(value: object) -> list[Any] | None:
    if isinstance(value, dict):
        value = next((value[name] for name in LISTS if isinstance(value.get(name), list)), None)
    return value if isinstance(value, list) else None


def _labelled(entry: object) -> bool:
    return isinstance(entry, dict) and any(_plain(name) in _PLAIN["label"] for name in entry)


def _plain(name: object) -> str:
    return re.sub(r"[\s_\-]+", "", str(name)).casefold()


_PLAIN = {role: tuple(map(_plain, names)) for role, names in KEYS.items()}


def _value(entry: dict[Any, Any], role: str, repairs: Counter[str]) -> object:
    """Return the value under the expected name, else under a similar one."""
    expected = KEYS[role][0]
    if expected in entry:
        return entry[expected]
    by_name = {_plain(name): value for name, value in reversed(entry.items())}
    for name in _PLAIN[role]:
        if name in by_name:
            repairs["other key"] += 1
            return by_name[name]
    return None


def _vote(entry: dict[Any, Any], repairs: Counter[str]) -> int | None:
    """Return the vote of a verdict; None if there is no label, or several that differ."""
    label = _value(entry, "label", repairs)
    labels = {validity(value) for name, value in entry.items() if _plain(name) in _PLAIN["label"]}
    word = validity(label)
    if word is None or len(labels - {None}) > 1:
        return None
    repairs["other label"] += label not in EXACT
    return EXACT[word]


GROUP = "group"
"""The usual column that says which items an answer is on."""
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
                    {1: "valid", 0: "invalid"}.get(repaired.votes[place]),
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
