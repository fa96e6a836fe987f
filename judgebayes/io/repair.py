r"""Match a judge's verdicts in JSON to the items it was shown (P4 section 4 and appendix B.3).

A judge that reviews several items at once must repeat each item's text and line, so that its verdicts
can be assigned, and often repeats them inexactly. Each repair is counted; an item without a match has a
missing vote. Nothing is guessed: a verdict without a readable label, whose text matches no item, or
which could as well be on another item, is not a vote.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from judgebayes.io.loose_json import Found, find_json
from judgebayes.io.matching import Lines, Named, lines_of, match
from judgebayes.io.verdict import strip_reasoning

LABELS = {
    "valid": 1,
    "invalid": 0,
    "correct": 1,
    "incorrect": 0,
    "partially valid": 0,
    "partially correct": 0,
}
"""Votes by label; a partially valid item counts as invalid, as in the released code."""
EXACT = ("valid", "invalid")
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
LOST = ("malformed", "unlabelled", "unmatched", "missing", "ambiguous", "contradictory")
"""The steps that are no repairs: what was lost."""
SAYS: Mapping[str, str] = {
    "fence": "code fence",
    "prose": "sentences around the JSON",
    "reasoning": "reasoning before the JSON",
    "comma": "trailing commas",
    "pieces": "no list around the verdicts",
    "key": "other key",
    "line": "other notation of the line",
    "label": "other label",
    "range": "only the starting line is equal",
    "clipped": "clipped text",
    "fuzzy": "inexact text",
    "malformed": "not readable",
    "unlabelled": "no label, or labels that differ",
    "unmatched": "on no item, or repeated",
}
"""The steps in words, except those that are the reasons of missing votes."""


@dataclass(frozen=True)
class Shown:
    """An item as shown to the judge."""

    line: str
    text: str


@dataclass(frozen=True)
class Repaired:
    """A vote for every item shown (1, 0, or -1 if none can be read), and the repair counts."""

    votes: list[int]
    steps: Counter[str] = field(default_factory=Counter)
    """Counts of repairs: of answers (`fence`, `prose`, `reasoning`, `comma`, `pieces`), of verdicts
    (`key`, `line`, `label`) and of matches (`range`, `fuzzy`, `clipped`). Of what was lost: answers and
    verdicts (`malformed`), verdicts (`unlabelled`, `unmatched`) and items without a vote (`missing`),
    among these the ones whose verdict could be on another item (`ambiguous`) or that have different
    verdicts (`contradictory`)."""
    reasons: list[str | None] = field(default_factory=list)
    """For every item, `ambiguous`, `contradictory` or None."""


@dataclass(frozen=True)
class _Verdict:
    named: Named
    vote: int


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
    >>> repaired.votes, dict(repaired.steps)
    ([1, -1], {'comma': 1, 'prose': 1, 'clipped': 1, 'missing': 1})
    """
    steps: Counter[str] = Counter()
    verdicts = _verdicts(response, steps)
    items = [Named(lines_of(item.line)[0], item.text) for item in shown]
    assignment = match(
        items,
        [verdict.named for verdict in verdicts],
        [verdict.vote for verdict in verdicts],
    )
    votes: list[int] = []
    for item, its, reason in zip(items, assignment.matches, assignment.reasons, strict=True):
        if its is None:
            steps["missing"] += 1
            if reason is not None:
                steps[reason] += 1
            votes.append(-1)
            continue
        text = verdicts[its.verdict].named.text
        if text != item.text:
            steps["clipped" if item.text.startswith(text) else "fuzzy"] += 1
        steps["range"] += its.starting_line
        votes.append(verdicts[its.verdict].vote)
    steps["unmatched"] += len(verdicts) - sum(its is not None for its in assignment.matches)
    return Repaired(votes, +steps, assignment.reasons)


def _verdicts(response: object, steps: Counter[str]) -> list[_Verdict]:
    entries = _entries(response, steps)
    if entries is None:
        steps["malformed"] += 1
        return []
    verdicts = []
    for entry in entries:
        if not isinstance(entry, dict):
            steps["malformed"] += 1
            continue
        line, text = (_value(entry, role, steps) for role in ("line", "text"))
        vote = _vote(entry, steps)
        if vote is None:
            steps["unlabelled"] += 1
        elif not isinstance(text, str) or isinstance(line, bool) or not isinstance(line, LINE):
            steps["malformed"] += 1
        else:
            verdicts.append(_Verdict(Named(_lines(line, steps), text), vote))
    return verdicts


def _entries(response: object, steps: Counter[str]) -> list[Any] | None:
    """Return the list of verdicts in an answer; None if there is none, or several that differ."""
    if isinstance(response, bytes):
        response = response.decode("utf-8", "replace")
    if not isinstance(response, str):
        return _all(response, steps)
    values = find_json(response)
    if len(values) == 1 and _is_all(values[0], response):
        return _all(values[0].value, steps)
    answer = strip_reasoning(response)
    if answer != response:
        steps["reasoning"] += 1
        values = find_json(answer)
    lists = [(each, _list(each.value)) for each in values]
    lists = [(each, entries) for each, entries in lists if entries is not None and _named(entries)]
    if not lists:
        # Verdicts without a list around them: one per line, or of a list that was cut off.
        pieces = [each for each in values if isinstance(each.value, dict) and _labelled(each.value)]
        steps["pieces"] += bool(pieces)
        steps["comma"] += any(each.commas for each in pieces)
        return [each.value for each in pieces] or None
    first, entries = lists[0]
    if any(other != entries for _, other in lists[1:]):
        return None
    steps["comma"] += first.commas
    outside = answer[: first.start] + answer[first.end :]
    steps["fence"] += "```" in outside
    steps["prose"] += bool(re.search(r"\w", re.sub(r"```\w*", "", outside)))
    return entries


def _is_all(value: Found, text: str) -> bool:
    return (value.start, value.end) == (0, len(text)) and not value.commas


def _all(value: object, steps: Counter[str]) -> list[Any] | None:
    """Return the verdicts of an answer that is only JSON: a list of them, or one."""
    entries = _list(value)
    if entries is None and isinstance(value, dict) and _labelled(value):
        steps["pieces"] += 1
        return [value]
    return entries


def _list(value: object) -> list[Any] | None:
    if isinstance(value, dict):
        value = next((value[name] for name in LISTS if isinstance(value.get(name), list)), None)
    return value if isinstance(value, list) else None


def _named(entries: list[Any]) -> bool:
    """Return whether a list between sentences is one of verdicts."""
    return any(isinstance(entry, dict) and _labelled(entry) for entry in entries)


def _labelled(entry: dict[Any, Any]) -> bool:
    return any(_plain(name) in _PLAIN["label"] for name in entry)


def _plain(name: object) -> str:
    return re.sub(r"[\s_\-]+", "", str(name)).casefold()


_PLAIN = {role: tuple(map(_plain, names)) for role, names in KEYS.items()}


def _value(entry: dict[Any, Any], role: str, steps: Counter[str]) -> object:
    """Return the value under the expected name, else under a similar one."""
    expected = KEYS[role][0]
    if expected in entry:
        return entry[expected]
    by_name = {_plain(name): value for name, value in reversed(entry.items())}
    for name in _PLAIN[role]:
        if name in by_name:
            steps["key"] += 1
            return by_name[name]
    return None


def _vote(entry: dict[Any, Any], steps: Counter[str]) -> int | None:
    """Return the vote of a verdict; None if there is no label, or several that differ."""
    label = _value(entry, "label", steps)
    votes = {_vote_of(value) for name, value in entry.items() if _plain(name) in _PLAIN["label"]}
    vote = _vote_of(label)
    if vote is None or len(votes - {None}) > 1:
        return None
    steps["label"] += label not in EXACT
    return vote


def _vote_of(label: object) -> int | None:
    if not isinstance(label, str):
        return None
    return LABELS.get(re.sub(r"[\s_\-]+", " ", label).strip(" .!*'\"`").casefold())


def _lines(line: object, steps: Counter[str]) -> Lines:
    lines, worded = lines_of(line)
    steps["line"] += worded
    return lines
