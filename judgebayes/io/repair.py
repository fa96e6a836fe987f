r"""Match a judge's verdicts in JSON to the items it was shown (P4 appendix B.3).

A judge that reviews several items at once must repeat each item's text and line, so that its verdicts
can be assigned, and often repeats them inexactly. Each repair is counted; an item without a match has a
missing vote. Nothing is guessed: a verdict without a readable label, or whose text matches no item, is
not a vote.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Repaired", "Shown", "repair_verdicts"]

MATCH = 85.0
"""The similarity, of 100, from which two texts count as the same (P4 B.3)."""
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
KEYS: Mapping[str, tuple[str, ...]] = {
    "line": ("line_number", "line_num", "line number", "lineno", "line"),
    "text": ("feedback", "comment", "text"),
    "label": ("classification", "label", "verdict"),
}
LISTS = ("feedback_lines", "feedback", "verdicts", "results")


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
    """Counts: of repairs (`key`, `line`, `range`, `label`, `fuzzy`, `clipped`), of lost verdicts
    (`malformed`, `unlabelled`, `unmatched`) and of items without a vote (`missing`)."""


@dataclass(frozen=True)
class _Verdict:
    line: str
    text: str
    vote: int


def repair_verdicts(response: object, shown: Sequence[Shown], *, match: float = MATCH) -> Repaired:
    """Return the votes in a judge's response on the items it was shown.

    Parameters
    ----------
    response
        The judge's answer: JSON text, or the parsed value. Anything else gives no votes.
    shown
        The items, in order.
    match
        The similarity of texts, from 0 to 100, that counts as a match.

    Returns
    -------
    Repaired
        No response raises an exception. A verdict is used for at most one item: in the order shown,
        each item takes the most similar unused verdict on its line.
    """
    from rapidfuzz import fuzz

    steps: Counter[str] = Counter()
    verdicts = _verdicts(response, steps)
    votes: list[int] = []
    used: set[int] = set()
    for item in shown:
        line = _line(item.line, Counter())
        best, best_score = -1, 0.0
        for index, verdict in enumerate(verdicts):
            if index in used or verdict.line != line:
                continue
            score = _similarity(fuzz.ratio, item.text, verdict.text)
            if score > best_score:
                best, best_score = index, score
        if best < 0 or best_score < match:
            steps["missing"] += 1
            votes.append(-1)
            continue
        used.add(best)
        verdict_text = verdicts[best].text
        if verdict_text != item.text:
            clipped = bool(verdict_text) and item.text.startswith(verdict_text)
            steps["clipped" if clipped else "fuzzy"] += 1
        votes.append(verdicts[best].vote)
    steps["unmatched"] += len(verdicts) - len(used)
    return Repaired(votes, +steps)


def _similarity(ratio: Any, text: str, answer: str) -> float:
    """Return the similarity, from 0 to 100; a shorter text is compared with the beginning of the item's.

    A text of less than half the length is too short to identify the item, and is compared with all of
    it.
    """
    if not answer.strip():
        return 0.0
    shortened = text[: len(answer)] if 2 * len(answer) >= len(text) else text
    return float(ratio(shortened, answer))


def _verdicts(response: object, steps: Counter[str]) -> list[_Verdict]:
    value = response
    if isinstance(response, str | bytes):
        try:
            value = json.loads(_fenced(response))
        except (ValueError, RecursionError):
            steps["malformed"] += 1
            return []
    if isinstance(value, dict):
        value = next((value[name] for name in LISTS if isinstance(value.get(name), list)), None)
    if not isinstance(value, list):
        steps["malformed"] += 1
        return []
    verdicts = []
    for entry in value:
        if not isinstance(entry, dict):
            steps["malformed"] += 1
            continue
        line, text, label = (_value(entry, role, steps) for role in ("line", "text", "label"))
        vote = _vote(label, steps)
        if vote is None:
            steps["unlabelled"] += 1
        elif not isinstance(text, str) or isinstance(line, bool) or not isinstance(line, LINE):
            steps["malformed"] += 1
        else:
            verdicts.append(_Verdict(_line(line, steps), text, vote))
    return verdicts


def _fenced(response: str | bytes) -> str:
    """Return the content of a Markdown code fence, or all of the text."""
    text = response.decode("utf-8", "replace") if isinstance(response, bytes) else response
    fence = re.search(r"```(?:json)?\s*(.*?)```", text, re.DOTALL)
    return fence.group(1) if fence else text


def _value(entry: dict[Any, Any], role: str, steps: Counter[str]) -> object:
    names = KEYS[role]
    for name in names:
        if name in entry:
            steps["key"] += name != names[0]
            return entry[name]
    return None


def _vote(label: object, steps: Counter[str]) -> int | None:
    if not isinstance(label, str):
        return None
    normalised = re.sub(r"[\s_\-]+", " ", label).strip().casefold()
    vote = LABELS.get(normalised)
    if vote is not None and label not in EXACT:
        steps["label"] += 1
    return vote


def _line(line: object, steps: Counter[str]) -> str:
    """Return a line number as text: "line 3" is 3, and a range is its first line."""
    if isinstance(line, float) and line.is_integer():
        return str(int(line))
    text = str(line).strip()
    match = re.fullmatch(r"(?:lines?\s*)?(\d+)(?:\s*(?:-|–|to)\s*\d+)?", text, re.IGNORECASE)
    if match is None:
        return text
    number = match.group(1)
    if text != number:
        steps["line" if text.casefold().startswith("line") else "range"] += 1
    return number
