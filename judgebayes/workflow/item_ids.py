"""Match the items of labels with the items of votes, exactly or after folding their spelling."""

import difflib
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import product

import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.votes.classes import written

__all__ = ["Matching", "hint", "match_items", "refuse_collisions", "renamed"]

CLOSE = 0.75
"""The least similarity of a near miss (1 for equal texts)."""
MOST_COMPARED = 2_000
"""With more items, near misses are not searched for."""
SPACES = re.compile(r"[\s_\-]+")
PADDING = re.compile(r"(?<![\d.])0+(?=\d)")
EXTENSION = re.compile(r"\.[a-z][a-z0-9]{0,5}(?:\.gz)?$")

Fold = Callable[[str], str]


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
    def total(self) -> int:
        """The number of items of the labels."""
        return len(self.item_of) + len(self.unmatched)

    @property
    def example(self) -> tuple[str, str] | None:
        """An item of the labels and its item of the votes that differ in spelling."""
        return next((pair for pair in self.item_of.items() if pair[0] != pair[1]), None)

    @property
    def preview(self) -> str:
        """How many items match, with an example: "'Q-0001' ~ 'q-1', 150 of 150"."""
        text = f"{len(self.item_of)} of {self.total}"
        return text if self.example is None else "{!r} ~ {!r}, {}".format(*self.example, text)

    @property
    def how(self) -> str:
        """What was folded, as words for a sentence."""
        return " and ".join(
            [", ".join(self.folded[:-1]), self.folded[-1]] if len(self.folded) > 1 else self.folded
        )


def match_items(labels: Iterable[object], votes: Iterable[object]) -> Matching:
    """Return which item of the votes each item of the labels is.

    Items are compared as written; then without differences in case and Unicode form; then also without
    those in spaces, hyphens and underscores, in zero padding, in a file extension, and in a prefix that
    all items of one table share and the other table lacks. The first of these steps that matches most
    items is used.
    """
    ours = _names(labels)
    theirs = _names(votes)
    best: tuple[int, tuple[str, ...], dict[str, str], dict[str, str]] | None = None
    for folded, fold_labels, fold_votes in _steps(ours, theirs):
        of_labels = {name: fold_labels(name) for name in ours}
        of_votes = {name: fold_votes(name) for name in theirs}
        keys = set(of_votes.values())
        count = sum(key in keys for key in of_labels.values())
        if best is None or count > best[0]:
            best = count, folded, of_labels, of_votes
        if count == len(ours):
            break
    assert best is not None
    _, folded, of_labels, of_votes = best
    first: dict[str, str] = {}
    for name, key in of_votes.items():
        first.setdefault(key, name)
    item_of = {name: first[key] for name, key in of_labels.items() if key in first}
    unmatched = tuple(name for name in ours if name not in item_of)
    used = {of_labels[name] for name in item_of}
    collisions = [pair for pair in _collisions(of_votes) if of_votes[pair[0]] in used]
    collisions += _collisions(of_labels)
    return Matching(
        item_of, folded, unmatched, tuple(collisions), _near(unmatched, of_labels, first, item_of)
    )


def refuse_collisions(matching: Matching) -> None:
    """Refuse items that are the same after folding.

    Raises
    ------
    JudgeBayesError
        If there are such items.
    """
    if matching.collisions:
        one, other = matching.collisions[0]
        raise JudgeBayesError(
            f"--match-ids loosely: items {one!r} and {other!r} are the same after folding "
            f"{matching.how}, so a label could be that of either; write the items of the labels as in "
            "the votes."
        )


def renamed(column: pd.Series, matching: Matching) -> pd.Series:
    """Return a column of items with the names that the votes have."""
    names = column.map(written)
    return names.map(matching.item_of).where(names.isin(list(matching.item_of)), column)


def hint(matching: Matching) -> str:
    """Return what to do about items of the labels that do not match as written; "" if unknown."""
    parts = []
    if matching.folded and not matching.collisions:
        parts.append(
            f"After folding {matching.how} they match ({matching.preview}): use --match-ids loosely."
        )
    elif matching.folded:
        one, other = matching.collisions[0]
        parts.append(
            f"After folding {matching.how}, {matching.preview} would match, but {one!r} and {other!r} "
            "would be the same item."
        )
    if matching.near:
        wrong, right = next(iter(matching.near.items()))
        parts.append(f"For {wrong!r}, did you mean {right!r}?")
    return " ".join(parts)


def _names(items: Iterable[object]) -> list[str]:
    return list(dict.fromkeys(name for name in map(written, items) if name is not None))


def _steps(labels: list[str], votes: list[str]) -> Iterable[tuple[tuple[str, ...], Fold, Fold]]:
    """Yield what is folded, and the folding of the labels' and of the votes' items."""
    steps: tuple[tuple[str, Fold], ...] = (
        ("case", _plain),
        ("spaces", lambda name: SPACES.sub("-", name)),
        ("zero padding", lambda name: PADDING.sub("", name)),
        ("file extension", lambda name: EXTENSION.sub("", name)),
    )
    yield (), _same, _same
    for n in range(1, len(steps) + 1):
        fold = _chained([step for _, step in steps[:n]])
        yield _that_change(steps[:n], labels, votes), fold, fold
    fold = _chained([step for _, step in steps])
    folded = _that_change(steps, labels, votes)
    cuts = [["", _shared_prefix(list(map(fold, names)))] for names in (labels, votes)]
    for cut_labels, cut_votes in product(*cuts):
        related = cut_labels.endswith(cut_votes) or cut_votes.endswith(cut_labels)
        if related and (cut_labels or cut_votes):  # u1 is not t1
            yield (
                (*folded, "prefix"),
                _without_prefix(fold, cut_labels),
                _without_prefix(fold, cut_votes),
            )


def _that_change(
    steps: tuple[tuple[str, Fold], ...], labels: list[str], votes: list[str]
) -> tuple[str, ...]:
    """Return the names of the steps that change an item."""
    names, texts = [], [*labels, *votes]
    for name, step in steps:
        folded = list(map(step, texts))
        if folded != texts:
            names.append(name)
        texts = folded
    return tuple(names)


def _same(name: str) -> str:
    return name


def _plain(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold().strip()


def _chained(steps: list[Fold]) -> Fold:
    def fold(name: str) -> str:
        for step in steps:
            name = step(name)
        return name

    return fold


def _without_prefix(fold: Fold, prefix: str) -> Fold:
    return lambda name: PADDING.sub("", fold(name).removeprefix(prefix))


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


def _near(
    unmatched: tuple[str, ...],
    of_labels: Mapping[str, str],
    first: Mapping[str, str],
    item_of: Mapping[str, str],
) -> dict[str, str]:
    """Return the most similar item of the votes without a label, for the first unmatched items."""
    taken = set(item_of.values())
    free = {key: name for key, name in first.items() if name not in taken}
    if len(free) > MOST_COMPARED:
        return {}
    near = {}
    for name in unmatched[:20]:
        key = of_labels[name]
        close = [] if key.isdigit() else difflib.get_close_matches(key, free, 1, CLOSE)
        if close:
            near[name] = free[close[0]]
    return near
