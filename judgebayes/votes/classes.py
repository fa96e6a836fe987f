"""The classes of a vote: their values in the user's table, and their indices in arrays."""

import math
import numbers
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.votes.array import MISSING, UNDECIDED

SAFE = frozenset({str, int})
"""Types of cells of which equal ones are the same cell: 1, 1.0 and True are equal, but not the same."""
COMMON = 0.02
"""A value with less than this share of the votes counts as an error, not a class."""
MOST_CLASSES = 1000
"""More classes than this are refused: a confusion matrix of a judge has a million cells."""
MOST_VALUES = 50
"""With more distinct values than this, no set of usual classes is searched for."""
BINARY = (0, 1)
TERNARY = (-1, 0, 1)
TOO_LARGE = 10**300
"""Whole numbers from here on are infinite: a float cannot hold them."""
LONGEST = 200
"""Longer values are cut in sentences."""
ENDS = re.compile(r"^[\s\u200b\u2060\ufeff]+|[\s\u200b\u2060\ufeff]+$")
"""What is not part of a name: spaces around it, those without width too."""
WHOLE = re.compile("[+-]?[0-9]{1,300}")
NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
MISSING_WORDS = frozenset({"", "nan", "none", "null", "na", "n/a", "<na>", "missing", "unparsed"})

# Verdicts on a pair as people write them, lower case, spaces for underscores: the sign of "A, the
# first, is better".
_SIGNS: dict[str, int] = {
    **dict.fromkeys(("a", "[[a]]", "a>b", "a>>b", "output 1", "response a", "model a"), 1),
    **dict.fromkeys(("b", "[[b]]", "b>a", "b>>a", "output 2", "response b", "model b"), -1),
    **dict.fromkeys(("a better", "a is better", "a wins", "assistant a"), 1),
    **dict.fromkeys(("b better", "b is better", "b wins", "assistant b"), -1),
    **dict.fromkeys(
        ("tie", "same", "[[same]]", "[[c]]", "a=b", "b=a", "equal", "draw", "tie (bothbad)"), 0
    ),
}

# Verdicts on one output as people write them, lower case: pairs of bad and good.
_BAD = ("invalid", "incorrect", "wrong", "bad", "fail", "no", "n", "false")
_GOOD = ("valid", "correct", "right", "good", "pass", "yes", "y", "true")
_VERDICTS = tuple(zip(_BAD, _GOOD, strict=True))


@dataclass(frozen=True)
class Classes:
    """The values a vote or label can take, from the lowest to the highest.

    `pairwise` is True if the two ends of the scale are two responses that could be swapped: the scale
    is then symmetric, and a model of it should be. `undecided` are values of votes that are for no
    class, and that no label has. Without `ordered`, the classes are nominal: their places mean nothing.
    """

    values: tuple[Hashable, ...]
    pairwise: bool
    undecided: tuple[Hashable, ...] = ()
    ordered: bool = True

    def __len__(self) -> int:
        """Return the number of classes."""
        return len(self.values)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the values as text, +1 with its sign where there is a -1."""
        signed = self.values == TERNARY
        return tuple("+1" if signed and v == 1 else str(v) for v in self.values)

    def indices(self, values: Iterable[object]) -> list[int | None]:
        """Return the index of each value, as `index` does."""
        return [self.index(value) for value in values]

    @cached_property
    def _places(self) -> dict[Hashable, int]:
        """The index of each value, and of each text in lower case."""
        exact = {v: i for i, v in reversed(list(enumerate(self.values)))}
        return {folded(v): i for i, v in enumerate(self.values)} | exact

    @cached_property
    def _by_sign(self) -> dict[int | None, int]:
        """The index of each sign of a verdict on a pair."""
        return {_sign(v): i for i, v in enumerate(self.values)}

    def index(self, value: object) -> int | None:
        """Return the index of a value, `MISSING` or `UNDECIDED`, or None where it is unknown."""
        plain = canonical(value)
        if plain is None:
            return MISSING
        place = self._places.get(plain, self._places.get(folded(plain)))
        if place is not None:
            return place
        sign = _sign(plain)
        tie = sign == 0 and 0 in map(_sign, self.undecided)  # another word for a tie
        if tie or folded(plain) in map(folded, self.undecided):
            return UNDECIDED
        return None if sign is None or None in self._by_sign else self._by_sign.get(sign)


def _sign(value: object) -> int | None:
    return _SIGNS.get(value.casefold().replace("_", " ")) if isinstance(value, str) else None


def canonical(value: object) -> Hashable | None:
    """Return a value in plain form: text stripped, whole numbers as int, missing as None."""
    if isinstance(value, str):
        text = value.strip()
        if text.casefold() in MISSING_WORDS:
            return None
        # Stricter than `float`: "1_0" and Arabic digits are names.
        if WHOLE.fullmatch(text):
            return int(text)
        return canonical(float(text)) if NUMBER.fullmatch(text) else text
    if isinstance(value, numbers.Integral | np.bool_):
        whole = int(value)  # exact: above 2^53, two integers may be the same float
        if abs(whole) < TOO_LARGE:
            return whole
        return math.inf if whole > 0 else -math.inf
    if isinstance(value, numbers.Real):
        number = float(value)
        exact = number.is_integer() and abs(number) < TOO_LARGE
        return None if math.isnan(number) else int(number) if exact else number
    return None if value is None or value is pd.NA or value is pd.NaT else str(value)


def folded(value: Hashable) -> Hashable:
    """Return a value in plain form, text in lower case."""
    return value.casefold() if isinstance(value, str) else value


def decided(values: Iterable[object], undecided: tuple[Hashable, ...]) -> list[object]:
    """Return the values that are not among those, in plain form, that are for no class."""
    none = Classes((), pairwise=False, undecided=undecided)
    return [value for value in values if none.index(value) != UNDECIDED]


def distinct(values: Iterable[object]) -> list[Hashable]:
    """Return the different values in plain form, without missing ones, in order of appearance."""
    return list(dict.fromkeys(p for p in map(canonical, values) if p is not None))


def plain_text(text: str) -> str:
    """Return a text without spaces around it, with composed letters (NFC)."""
    if text.isascii() and text == text.strip():
        return text
    return unicodedata.normalize("NFC", ENDS.sub("", text))


def written(name: object) -> str | None:
    """Return the name of an item or a judge as text, None if it is missing.

    Text stays as it is, but for `plain_text`: 007 is not 7, 2.10 is not 2.1, and NA is a name. True is 1
    as a vote, but not as a name.
    """
    if isinstance(name, str):
        return plain_text(name) or None
    plain = canonical(name)
    if plain is None:
        return None
    # The text of a float of 32 bits is not that of the same float of 64 bits.
    return str(name) if isinstance(name, bool) or isinstance(plain, float) else str(plain)


def mapped(column: pd.Series, function: Callable[[Any], Hashable | None]) -> pd.Series:
    """Return a function of each cell, called once for each different one, and with None if missing."""
    # Values of several types, such as 1 and True, would have one code; lists have none.
    if pd.api.types.is_object_dtype(column.dtype) and not set(map(type, column.dropna())) <= SAFE:
        return pd.Series([*map(function, column)], column.index, dtype=object)
    code, different = pd.factorize(column)
    values = np.array([*map(function, different.tolist()), function(None)], dtype=object)
    return pd.Series(values[code], column.index, dtype=object)


def listing(values: Iterable[object], limit: int = 8) -> str:
    """Return values as text for a sentence, at most `limit` of them."""
    every = list(values)
    more = f" and {len(every) - limit} more" if len(every) > limit else ""
    shown = (v.strip() if isinstance(v, str) else canonical(v) for v in every[:limit])
    return ", ".join(_cut(repr(each)) for each in shown) + more


def _cut(text: str) -> str:
    """Return a text of at most `LONGEST` characters."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def infer_classes(values: Iterable[object], what: str) -> Classes:
    """Return the classes to which some values belong, binary or ternary, or raise an error.

    Numbers 0 and 1 (or True and False) are binary, and so are the words of a verdict, such as
    invalid and valid. -1, 0 and 1 are ternary, and so are words for "A is better", "tie" and "B is
    better"; without a tie among them they are a forced choice of two. For anything else, only the user
    knows the order.

    Raises
    ------
    JudgeBayesError
        If every value is missing, or the values are neither binary nor ternary.
    """
    plain = distinct(values)
    _refuse_infinite(plain, what)
    if not plain:
        raise JudgeBayesError(f"There is no vote in {what}: every value is missing.")
    if (known := inferred(plain)) is not None:
        return known
    ordered = sorted(plain, key=lambda p: (isinstance(p, str), p))
    raise JudgeBayesError(
        f"The values {listing(ordered)} in {what} are neither binary (0, 1; no, yes; invalid, valid) "
        "nor ternary (-1, 0, 1; B, tie, A). Name the classes in order, from the lowest to the highest: "
        "--set classes=LOW,...,HIGH at the command line, classes=(LOW, ..., HIGH) in Python."
    )


def _refuse_infinite(values: Iterable[Hashable | None], what: str) -> None:
    """Refuse numbers without end as classes; a number such as 1e400 is one of them for a computer."""
    if not {math.inf, -math.inf}.isdisjoint(values):
        raise JudgeBayesError(
            f"There is an infinite number in {what}, perhaps one such as 1e400, which is too large: no "
            "class is infinite. Correct it, or read it as missing with --set missing=inf,-inf."
        )


def counted(column: pd.Series) -> Counter[Hashable]:
    """Return how often a column has each value in plain form, without missing ones."""
    counts: Counter[Hashable] = Counter()
    for value, n in column.value_counts(sort=False).items():
        counts[canonical(value)] += n
    del counts[None]
    return counts


def usual_classes(counts: Counter[Hashable]) -> tuple[Classes | None, Counter[Hashable]]:
    """Return the classes of the values, or of most of them, None if there are none; and the odd values.

    Odd values are rare, or words with less than half of the votes besides two or more usual values.

    Parameters
    ----------
    counts
        The number of occurrences of each value, in canonical form.
    """
    if (known := inferred(counts)) is not None:
        return known, Counter()
    ordered, total = counts.most_common(), counts.total()
    scale = inferred(v for v, n in ordered if n >= COMMON * total)
    rare = scale is not None
    if scale is None and len(ordered) <= MOST_VALUES:
        usual: list[Hashable] = []
        for value, _ in ordered:
            usual += [value] if inferred([*usual, value]) is not None else []
        scale = inferred(usual) if len(usual) > 1 else None
    if scale is None:
        return None, Counter()
    odd = Counter({v: n for v, n in ordered if scale.index(v) is None})
    words = all(isinstance(v, str) for v in odd) and 2 * odd.total() < total
    return (scale, odd) if rare or words else (None, Counter())


def inferred(values: Iterable[object]) -> Classes | None:
    """Return the classes to which some values belong, None where `infer_classes` raises an error."""
    plain = distinct(values)
    for scale in (BINARY, (-1, 1), TERNARY):
        if plain and set(plain) <= set(scale):
            return Classes(scale, pairwise=scale != BINARY)
    signs = {_sign(p): p for p in reversed(plain)}  # the first spelling of each class
    if plain and None not in signs:
        low, middle, high = signs.get(-1, "B"), signs.get(0), signs.get(1, "A")
        return Classes((low, high) if middle is None else (low, middle, high), pairwise=True)
    words = {folded(p): p for p in reversed(plain)}
    ends = _ends(plain)
    if ends is None or ends == BINARY:
        return None
    return Classes(tuple(words.get(end, end) for end in ends), pairwise=False)


def other_words(values: Iterable[object], votes: Classes) -> dict[Hashable, Hashable]:
    """Return a mapping of binary labels to the corresponding classes of the votes, if both differ.

    Numbers 0 and 1, no and yes, incorrect and correct name the same two ends (bad, good) of a scale.

    Returns
    -------
    dict
        Empty if the values are those of the votes, or one of the two scales is not of this kind.

    Examples
    --------
    >>> other_words(["no", "yes", None], Classes(("incorrect", "correct"), pairwise=False))
    {'no': 'incorrect', 'yes': 'correct'}
    """
    plain = sorted(distinct(values), key=str)
    value_ends, vote_ends = _ends(plain), _ends(votes.values)
    if value_ends is None or vote_ends is None or value_ends == vote_ends:
        return {}
    return {p: votes.values[value_ends.index(folded(p))] for p in plain}


def _ends(values: Iterable[Hashable]) -> tuple[Hashable, Hashable] | None:
    """Return the two ends, in lower case, of the scale that contains all values."""
    plain = set(map(folded, values))
    return next((pair for pair in (BINARY, *_VERDICTS) if plain and plain <= set(pair)), None)


def may_compare(classes: Classes) -> bool:
    """Tell whether classes that are not read as comparing two responses might do so.

    They have two ends and at most one class between them, and are no words of a verdict on one output.
    """
    few = len(classes) <= 3 and not classes.pairwise
    return few and (_ends(classes.values) is None or classes.values == BINARY)


def given_classes(values: Sequence[object], pairwise: bool | None) -> Classes:
    """Return the classes that the user named, from lowest to highest."""
    named = tuple(distinct(values))
    _refuse_infinite(named, "classes")
    if len(named) < 2 or len(named) < len(values):
        raise JudgeBayesError(
            f"classes={_cut(repr(tuple(values)))} does not name two or more different classes."
        )
    if len(named) > MOST_CLASSES:
        raise JudgeBayesError(
            f"{len(named):,} classes are named; at most {MOST_CLASSES:,} are supported, because a "
            "judge's errors need a number for each pair of classes. Group the votes into fewer classes."
        )
    if pairwise is None:
        pairwise = named in (TERNARY, (-1, 1)) or all(_sign(p) is not None for p in named)
    return Classes(named, pairwise)


def scale_of(
    values: Iterable[object],
    classes: Sequence[object] | Classes | None,
    pairwise: bool | None,
    what: str,
    undecided: Sequence[object] = (),
) -> Classes:
    """Return the classes of votes: the given ones, or those inferred from their values.

    `what` names the votes in error messages; `undecided` are values of votes for no class.

    Raises
    ------
    JudgeBayesError
        If fewer than two different classes are given, or the classes cannot be inferred.
    """
    if isinstance(classes, Classes):
        return classes
    none = tuple(distinct(undecided))
    if classes is None:
        scale = infer_classes(decided(values, none), what)
    else:
        scale = given_classes(decided(classes, none), pairwise)
    return replace(scale, undecided=none, pairwise=scale.pairwise if pairwise is None else pairwise)
