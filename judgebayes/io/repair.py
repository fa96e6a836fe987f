r"""Match a judge's verdicts in JSON to the items it was shown (P4 section 4 and appendix B.3).

A judge that reviews several items at once must repeat each item's text and line, so that its verdicts
can be assigned, and often repeats them inexactly. Each repair is counted; an item without a match has a
missing vote. Nothing is guessed: a verdict without a readable label, whose text matches no item, or
which could as well be on another item, is not a vote.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judgebayes.io.loose_json import find_json
from judgebayes.io.matching import Named, lines_of, match
from judgebayes.io.verdict import strip_reasoning, validity

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
