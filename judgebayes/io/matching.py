"""Assign verdicts to the items that they name inexactly (P4 section 4).

Equal texts on equal lines come first, then equal texts with the same starting line, then the assignment
with the fewest edits in total. Where another assignment is about as good and gives an item another vote,
the item gets none.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

AMBIGUOUS, CONTRADICTORY = "ambiguous", "contradictory"
"""Why an item has no vote although a verdict may name it: by the names of the steps."""
SIMILARITY = 85.0
"""The similarity, of 100, from which a verdict may be on an item (P4 B.3), by `rapidfuzz.fuzz.ratio`; a
shorter text is also compared with the beginning of the item's."""
MARGIN = 2
"""The number of edits (Levenshtein distance) by which the assignment must be better than any other that
gives an item another vote or none, and a verdict nearer to its item than to one that has a verdict of
its own: one edit may be a coincidence."""
WORK = 2 * 10**10
"""The largest product of the lengths of texts that are compared; more take more than a second."""
PAIRS = 40_000
"""The largest number of pairs of texts that are compared on one line."""
NEVER = 1e9

_RANGE = re.compile(
    r"(?P<word>(?:lines?|l)?[\s:#.]*)(?P<start>\d{1,9})(?:\s*(?:-|\u2013|\u2014|to)\s*(?P<end>\d{1,9}))?",
    re.IGNORECASE,
)


Lines = tuple[str, str]
"""A line number or a range of them, as text: the starting line and the last."""


@dataclass(frozen=True)
class Named:
    """What an item is named by, or a verdict names."""

    lines: Lines
    text: str


def lines_of(value: object) -> tuple[Lines, bool]:
    """Return a line number or range, and whether a word had to be removed ("line 3" is 3).

    >>> lines_of("Lines 3-5")
    (('3', '5'), True)
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = str(value).strip()
    parts = _RANGE.fullmatch(text)
    if parts is None:
        return (text, text), False
    start = str(int(parts["start"]))
    return (start, str(int(parts["end"] or start))), bool(parts["word"])


def match(
    items: Sequence[Named], verdicts: Sequence[Named], votes: Sequence[int]
) -> list[int | str | None]:
    """Return the index of the verdict that counts for each item, or why none does; None if none is near.

    Parameters
    ----------
    items, verdicts
        What was shown, and what the judge named.
    votes
        The vote of each verdict.
    """
    on_line: dict[str, tuple[dict[int, Named], dict[int, Named]]] = defaultdict(lambda: ({}, {}))
    for place, named in enumerate((items, verdicts)):
        for index, each in enumerate(named):
            on_line[each.lines[0]][place][index] = each
    outcomes: dict[int, int | str] = {}
    for here, free in on_line.values():
        outcomes |= _equal(here, free, votes)
        if free:
            outcomes |= _nearest(here, free, votes, [i for i in here if i not in outcomes])
    return [outcomes.get(i) for i in range(len(items))]


def _equal(
    items: dict[int, Named], verdicts: dict[int, Named], votes: Sequence[int]
) -> dict[int, int | str]:
    """Match equal texts, ranges before starting lines, and take their verdicts out."""
    outcomes: dict[int, int | str] = {}
    by_name, by_text = defaultdict[Named, list[int]](list), defaultdict[str, list[int]](list)
    for j, verdict in verdicts.items():
        by_name[verdict].append(j)
        by_text[verdict.text].append(j)
    for twins in _twins(items):
        exact = {i: by_name.get(items[i], []) for i in twins}
        if len(twins) == 1 and not exact[twins[0]]:
            exact = {i: by_text.get(items[i].text, []) for i in twins}
        # A judge that normalises quotes or clips a text turns an item's name into its twin's; and items
        # with one name cannot be told apart.
        told_apart = len({items[i] for i in twins}) == len(twins) and all(exact.values())
        for i, its in exact.items():
            for j in its:
                verdicts.pop(j, None)
            if its:
                alike = len({votes[j] for j in its}) == 1
                outcomes[i] = AMBIGUOUS if not told_apart else its[0] if alike else CONTRADICTORY
    return outcomes


def _nearest(
    items: dict[int, Named], verdicts: dict[int, Named], votes: Sequence[int], open_: list[int]
) -> dict[int, int | str]:
    """Match open items by the assignment with the fewest edits, where no other is about as good."""
    lengths = [sum(len(each.text) for each in named.values()) for named in (items, verdicts)]
    if len(items) * len(verdicts) > PAIRS or lengths[0] * lengths[1] > WORK:
        return dict.fromkeys(open_, AMBIGUOUS)
    edits = {(i, j): _edits(items[i], verdicts[j]) for i in items for j in verdicts}
    edges = {(i, j) for i in open_ for j in verdicts if _similar(items[i].text, verdicts[j].text)}
    if not edges:
        return {}
    costs = np.full((len(verdicts), len(open_) + len(verdicts)), NEVER)
    costs[:, len(open_) :] = max(edits[e] for e in edges) + MARGIN  # a verdict on no item
    for row, j in enumerate(verdicts):
        for column, i in enumerate(open_):
            if (i, j) in edges:
                costs[row, column] = edits[i, j]
    total, chosen = _assignment(costs)
    named = list(verdicts)
    assigned = {open_[column]: named[row] for row, column in chosen if column < len(open_)}
    sure = set()
    for i, j in assigned.items():
        other = costs.copy()
        other[[votes[k] == votes[j] for k in verdicts], open_.index(i)] = NEVER
        if _assignment(other)[0] - total >= MARGIN:
            sure.add(i)

    def apart(i: int, j: int) -> bool:
        # An item with a verdict of its own in the assignment needs no margin: an exchange of the two was
        # compared. Any other may be the one that the verdict is on, for a judge may repeat itself.
        margins = {k: 1 if k in sure else MARGIN for k in items if k != i}
        return all(edits[k, j] - edits[i, j] >= margin for k, margin in margins.items())

    while unsure := {i for i in sure if not apart(i, assigned[i])}:
        sure -= unsure
    return {i: assigned[i] if i in sure else AMBIGUOUS for i, _ in edges}


def _assignment(costs: np.ndarray) -> tuple[float, Iterable[tuple[int, int]]]:
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(costs)
    return float(costs[rows, columns].sum()), zip(rows.tolist(), columns.tolist(), strict=True)


def _similar(text: str, answer: str) -> bool:
    from rapidfuzz import fuzz

    if not answer.strip():
        return False
    beginning = text[: len(answer)]
    # A text of less than half the length is too short to identify the item by its beginning.
    compared = (text, beginning) if 2 * len(answer) >= len(text) else (text,)
    return any(fuzz.ratio(each, answer) >= SIMILARITY for each in compared)


def _edits(item: Named, verdict: Named) -> int:
    """Return the edits between the texts; a range other than the item's counts as the margin."""
    from rapidfuzz.distance import Levenshtein

    text, answer = item.text, verdict.text
    edits = min(Levenshtein.distance(t, answer) for t in (text, text[: len(answer)]))
    ranged = verdict.lines[0] != verdict.lines[1]
    return edits + MARGIN * (ranged and item.lines != verdict.lines)


def _twins(items: dict[int, Named]) -> list[list[int]]:
    """Return the items in sets whose texts have the same letters, or begin with another's."""
    sets: dict[str, list[int]] = {}
    root = ""
    for text, i in sorted((_letters(item.text), i) for i, item in items.items()):
        # Sorted, a text is followed by all that begin with it.
        if not sets or not text.startswith(root):
            root = text
        sets.setdefault(root, []).append(i)
    return list(sets.values())


def _letters(text: str) -> str:
    letters = re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text).casefold())
    return letters or text
