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


@dataclass(frozen=True)
class Lines:
    """A line number or a range of them, as text: the starting line and the last."""

    start: str
    end: str


@dataclass(frozen=True)
class Named:
    """What an item is named by, or a verdict names."""

    lines: Lines
    text: str


@dataclass(frozen=True)
class Match:
    """A verdict that counts for an item."""

    verdict: int
    """Its index."""
    starting_line: bool = False
    """Whether only the starting lines are equal."""


def lines_of(value: object) -> tuple[Lines, bool]:
    """Return a line number or range, and whether a word had to be removed ("line 3" is 3).

    >>> lines_of("Lines 3-5")
    (Lines(start='3', end='5'), True)
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = str(value).strip()
    parts = _RANGE.fullmatch(text)
    if parts is None:
        return Lines(text, text), False
    start = str(int(parts["start"]))
    return Lines(start, str(int(parts["end"] or start))), bool(parts["word"])


def match(
    items: Sequence[Named], verdicts: Sequence[Named], votes: Sequence[int]
) -> list[Match | str | None]:
    """Return the verdict that counts for each item, or why none does; None if none is near.

    Parameters
    ----------
    items, verdicts
        What was shown, and what the judge named.
    votes
        The vote of each verdict.
    """
    state = _State(items, verdicts, votes)
    on_line: dict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for place, named in enumerate((items, verdicts)):
        for index, each in enumerate(named):
            on_line[each.lines.start][place].append(index)
    for its_items, its_verdicts in on_line.values():
        if its_items and its_verdicts:
            state.match_line(its_items, its_verdicts)
    return state.outcomes


class _State:
    """The outcomes so far."""

    def __init__(
        self, items: Sequence[Named], verdicts: Sequence[Named], votes: Sequence[int]
    ) -> None:
        self.items, self.verdicts, self.votes = items, verdicts, votes
        self.outcomes: list[Match | str | None] = [None] * len(items)

    def match_line(self, items: list[int], verdicts: list[int]) -> None:
        """Match the items and verdicts with one starting line."""
        free = self._equal(items, verdicts)
        open_ = [i for i in items if self.outcomes[i] is None]
        if open_ and free:
            self._nearest(items, open_, free)

    def _equal(self, items: list[int], verdicts: list[int]) -> list[int]:
        """Match equal texts, ranges before starting lines; return the other verdicts."""
        used: set[int] = set()
        by_name: dict[Named, list[int]] = defaultdict(list)
        by_text: dict[str, list[int]] = defaultdict(list)
        for j in verdicts:
            by_name[self.verdicts[j]].append(j)
            by_text[self.verdicts[j].text].append(j)
        for twins in _twins(items, [self.items[i].text for i in items]):
            lists = {self.items[i]: by_name.get(self.items[i], []) for i in twins}
            used.update(j for each in lists.values() for j in each)
            if len(twins) > 1:
                # A judge that normalises quotes or clips a text turns an item's name into its twin's;
                # and items with one name cannot be told apart.
                whole = len(lists) == len(twins) and all(lists.values())
                for i in twins:
                    if whole:
                        self._settle(i, lists[self.items[i]])
                    elif lists[self.items[i]]:
                        self.outcomes[i] = AMBIGUOUS
                continue
            (i,) = twins
            if lists[self.items[i]]:
                self._settle(i, lists[self.items[i]])
            elif by_text.get(self.items[i].text):
                near = by_text[self.items[i].text]
                used.update(near)
                self._settle(i, near, starting_line=True)
        return [j for j in verdicts if j not in used]

    def _settle(self, item: int, verdicts: list[int], *, starting_line: bool = False) -> None:
        alike = len({self.votes[j] for j in verdicts}) == 1
        self.outcomes[item] = Match(verdicts[0], starting_line) if alike else CONTRADICTORY

    def _nearest(self, items: list[int], open_: list[int], free: list[int]) -> None:
        """Match by the assignment with the fewest edits, where no other is about as good."""
        lengths = [sum(len(named[k].text) for k in indices)
                   for named, indices in ((self.items, items), (self.verdicts, free))]  # fmt: skip
        if len(items) * len(free) > PAIRS or lengths[0] * lengths[1] > WORK:
            for i in open_:
                self.outcomes[i] = AMBIGUOUS
            return
        edits = {(i, j): self._edits(i, j) for i in items for j in free}
        edges = {(i, j) for i in open_ for j in free if self._similar(i, j)}
        if not edges:
            return
        apart = max(edits[e] for e in edges) + MARGIN
        costs = np.full((len(free), len(open_) + len(free)), NEVER)
        costs[:, len(open_) :] = apart  # a verdict on no item
        for row, j in enumerate(free):
            for column, i in enumerate(open_):
                if (i, j) in edges:
                    costs[row, column] = edits[i, j]
        total, chosen = _assignment(costs)
        assigned = {open_[c]: free[r] for r, c in chosen if c < len(open_)}
        sure = set()
        for i, j in assigned.items():
            other = costs.copy()
            same_vote = [row for row, k in enumerate(free) if self.votes[k] == self.votes[j]]
            other[same_vote, open_.index(i)] = NEVER
            if _assignment(other)[0] - total >= MARGIN:
                sure.add(i)
        while unsure := {i for i in sure if not self._apart(i, assigned[i], items, sure, edits)}:
            sure -= unsure
        for i in open_:
            if i in sure:
                starting_line = self.items[i].lines != self.verdicts[assigned[i]].lines
                self.outcomes[i] = Match(assigned[i], starting_line)
            elif any((i, j) in edges for j in free):
                self.outcomes[i] = AMBIGUOUS

    def _apart(
        self, i: int, j: int, items: list[int], sure: set[int], edits: dict[tuple[int, int], int]
    ) -> bool:
        """Return whether a verdict is nearer to its item than to all others.

        An item with a verdict of its own in the assignment needs no margin: an exchange of the two was
        compared. Any other may be the one that the verdict is on, for a judge may repeat itself.
        """
        return all(
            edits[k, j] - edits[i, j] >= (1 if k in sure else MARGIN) for k in items if k != i
        )

    def _similar(self, i: int, j: int) -> bool:
        from rapidfuzz import fuzz

        text, answer = self.items[i].text, self.verdicts[j].text
        if not answer.strip():
            return False
        beginning = text[: len(answer)]
        # A text of less than half the length is too short to identify the item by its beginning.
        compared = (text, beginning) if 2 * len(answer) >= len(text) else (text,)
        return any(fuzz.ratio(each, answer) >= SIMILARITY for each in compared)

    def _edits(self, i: int, j: int) -> int:
        """Return the edits between the texts; a range other than the item's counts as the margin."""
        from rapidfuzz.distance import Levenshtein

        item, verdict = self.items[i], self.verdicts[j]
        text, answer = item.text, verdict.text
        edits = min(Levenshtein.distance(t, answer) for t in (text, text[: len(answer)]))
        ranged = verdict.lines.start != verdict.lines.end
        return edits + MARGIN * (ranged and item.lines != verdict.lines)


def _assignment(costs: np.ndarray) -> tuple[float, Iterable[tuple[int, int]]]:
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(costs)
    return float(costs[rows, columns].sum()), zip(rows.tolist(), columns.tolist(), strict=True)


def _twins(items: list[int], texts: list[str]) -> list[list[int]]:
    """Return the items in sets whose texts have the same letters, or begin with another's."""
    sets: dict[str, list[int]] = {}
    root = ""
    plain = map(_letters, texts)
    for text, item in sorted(zip(plain, items, strict=True)):
        # Sorted, a text is followed by all that begin with it.
        if not sets or not text.startswith(root):
            root = text
        sets.setdefault(root, []).append(item)
    return list(sets.values())


def _letters(text: str) -> str:
    letters = re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text).casefold())
    return letters or text
