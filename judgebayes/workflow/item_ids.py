"""Match the items of labels with the items of votes, exactly or after folding their spelling."""

import difflib
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import product

import pandas as pd

from judgebayes.votes.classes import mapped, written

CLOSE = 0.75
"""The least similarity of a near miss (1 for equal texts)."""
MOST_COMPARED = 2_000
"""With more items, near misses are not searched for."""
SPACES = re.compile(r"[\s_\-]+")
PADDING = re.compile(r"(?<![\d.])0+(?=\d)")
WHOLE = re.compile(r"^(-?\d+)\.0+$")
EXTENSION = re.compile(r"\.[a-z][a-z0-9]{0,5}(?:\.gz)?$")

_Folded = tuple[tuple[str, ...], list[str], list[str]]
"""What was folded, and the items of the labels and of the votes after this."""


@dataclass(frozen=True)
class Matching:
    """Which item of the votes each item of the labels is, after the least folding that matches most."""

    item_of: Mapping[str, str]
    """The item of the votes, for each item of the labels that has one, both as written."""
    folded: tuple[str, ...]
    """What was folded: case, spaces, ...; empty if the items match as written."""
    unmatched: tuple[str, ...]
    """The items of the labels that are no items of the votes."""
    collisions: tuple[tuple[str, str], ...]
    """Two items of one table that are the same after folding."""
    near: Mapping[str, str]
    """For an unmatched item, the most similar item of the votes, if one is similar."""

    @property
    def share(self) -> float:
        """The share of the items of the labels that are different items of the votes."""
        total = len(self.item_of) + len(self.unmatched)
        return len(set(self.item_of.values())) / max(total, 1)

    @property
    def preview(self) -> str:
        """How many items match, with an example: "'Q-0001' ~ 'q-1', 150 of 150"."""
        other = (f"{name!r} ~ {item!r}, " for name, item in self.item_of.items() if name != item)
        return f"{next(other, '')}{len(self.item_of)} of {len(self.item_of) + len(self.unmatched)}"

    @property
    def how(self) -> str:
        """How items match, as words for a sentence."""
        return f"after folding {', '.join(self.folded)}" if self.folded else "as they are written"

    @property
    def collision(self) -> str:
        """The problem that two items of one table are the same after folding; "" without one."""
        if not self.collisions:
            return ""
        one, other = self.collisions[0]
        return (
            f"items {one!r} and {other!r} are the same {self.how} ({self.preview}), so a "
            "label could be that of either; write the items of the labels as in the votes."
        )


def match_items(labels: Iterable[object], votes: Iterable[object]) -> Matching:
    """Return which item of the votes each item of the labels is.

    Items are compared as written; then without differences in case and Unicode form; then also without
    those in spaces, hyphens and underscores, in zero padding, in a decimal point (7.0 is 7), in a file
    extension, and in a prefix that all items of one table share and the other table lacks. The first of
    these steps that matches most items is used.

    Nothing but zeros is folded against numbers that may be places in a file: case-1 may be the first
    case, which is at place 0.
    """
    ours, theirs = _names(labels), _names(votes)
    best: _Folded = (), ours, theirs
    matched = _matched(*best)
    for step in _steps(ours, theirs):
        if matched == len(ours):
            break
        if _matched(*step) > matched and not _by_position(ours, theirs, step):
            best, matched = step, _matched(*step)
    of_labels = dict(zip(ours, best[1], strict=True))
    of_votes = dict(zip(theirs, best[2], strict=True))
    first = dict(zip(reversed(best[2]), reversed(theirs), strict=True))
    item_of = {name: first[key] for name, key in of_labels.items() if key in first}
    unmatched = tuple(name for name in ours if name not in item_of)
    used = {of_labels[name] for name in item_of}
    collisions = [pair for pair in _collisions(of_votes) if of_votes[pair[0]] in used]
    collisions += _collisions(of_labels)
    taken = set(item_of.values())
    free = {key: name for key, name in first.items() if name not in taken}
    near: dict[str, str] = {}
    for name in unmatched[:20] if len(free) <= MOST_COMPARED else ():
        key = of_labels[name]
        close = [] if key.isdigit() else difflib.get_close_matches(key, free, 1, CLOSE)
        if close:
            near[name] = free[close[0]]
    return Matching(item_of, best[0], unmatched, tuple(collisions), near)


def hint(matching: Matching) -> str:
    """Return what to do about items of the labels that do not match as written; "" if unknown."""
    parts = []
    if matching.folded and not matching.collisions:
        parts.append(
            f"They match {matching.how} ({matching.preview}): use --set match_ids=loosely."
        )
    elif matching.folded:
        parts.append(f"With match_ids=loosely, {matching.collision}")
    if matching.near:
        wrong, right = next(iter(matching.near.items()))
        parts.append(f"For {wrong!r}, did you mean {right!r}?")
    return " ".join(parts)


def _names(items: Iterable[object]) -> list[str]:
    names = mapped(pd.Series([*items], dtype=object), written)
    return list(dict.fromkeys(names.dropna()))


def _matched(_: tuple[str, ...], labels: list[str], votes: list[str]) -> int:
    """Return the number of items of the labels that are items of the votes."""
    keys = set(votes)
    return sum(key in keys for key in labels)


def _steps(labels: list[str], votes: list[str]) -> Iterable[_Folded]:
    """Yield the items after each step, which folds what the one before left."""
    steps: dict[str, Callable[[str], str]] = {
        "case": lambda name: unicodedata.normalize("NFKC", name).casefold().strip(),
        "spaces": lambda name: SPACES.sub("-", name),
        "zero padding": lambda name: PADDING.sub("", name),
        "decimals": lambda name: WHOLE.sub(r"\1", name),
        "file extension": lambda name: EXTENSION.sub("", name),
    }
    folded: tuple[str, ...] = ()
    for what, step in steps.items():
        before = labels, votes
        labels, votes = list(map(step, labels)), list(map(step, votes))
        if (labels, votes) != before:
            folded = (*folded, what)
            yield folded, labels, votes
    for cut_labels, cut_votes in product(*(["", _shared_prefix(each)] for each in (labels, votes))):
        related = cut_labels.endswith(cut_votes) or cut_votes.endswith(cut_labels)
        if related and (cut_labels or cut_votes):  # u1 is not t1
            cut = ((labels, cut_labels), (votes, cut_votes))
            ours, theirs = (
                [PADDING.sub("", name.removeprefix(prefix)) for name in names]
                for names, prefix in cut
            )
            yield (*folded, "prefix"), ours, theirs


def _by_position(labels: list[str], votes: list[str], keys: _Folded) -> bool:
    """Tell whether the numbers of one table may be places, and the texts of the other are not.

    They are the numbers 0 to n - 1, or some of them where the texts are numbered from 1 to n.
    """
    for numbers, texts, folded in ((labels, votes, keys[2]), (votes, labels, keys[1])):
        if not all(map(str.isdecimal, numbers)) or all(map(str.isdecimal, texts)):
            continue
        places = set(map(int, numbers))
        counted = {int(key) for key in folded if key.isdecimal()}
        from_one = bool(counted) and counted == set(range(1, len(counted) + 1))
        if places == set(range(len(places))) or (from_one and max(places) < len(counted)):
            return True
    return False


def _shared_prefix(names: list[str]) -> str:
    """Return the beginning that all names share, up to a separator or to the number that follows."""
    if len(names) < 2:
        return ""
    first, last = min(names), max(names)  # what these share, all share
    differs = (i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b)
    prefix = first[: next(differs, min(len(first), len(last)))].rstrip("0123456789")
    if prefix and all(name[len(prefix) :][:1].isdigit() for name in names):
        return prefix
    return re.sub(r"[^\W_]+$", "", prefix)


def _collisions(keys: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return pairs of names with the same key."""
    first: dict[str, str] = {}
    return [(first[key], name) for name, key in keys.items() if first.setdefault(key, name) != name]
