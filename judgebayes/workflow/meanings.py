"""The order of classes that are words, by their meaning."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from judgebayes.votes.classes import Classes, distinct

MOST_RATINGS = 12
"""More different values than this are probably not classes."""

SCALES: tuple[tuple[str, ...], ...] = (
    ("strongly disagree", "disagree", "neutral", "agree", "strongly agree"),
    (
        *("terrible", "awful", "very bad", "bad", "very poor", "poor", "fair", "ok", "okay"),
        *("average", "acceptable", "good", "very good", "great", "excellent", "perfect"),
    ),
    ("none", "very low", "low", "medium", "moderate", "high", "very high"),
    ("never", "rarely", "sometimes", "often", "always"),
    (
        "no",
        "mostly no",
        "partially",
        "partly",
        "partial",
        "somewhat",
        "mostly",
        "mostly yes",
        "yes",
    ),
    ("incorrect", "mostly incorrect", "partially correct", "partial", "mostly correct", "correct"),
    ("wrong", "partially right", "partial", "right"),
    ("fail", "partial", "borderline", "pass"),
    ("false", "unclear", "true"),
    ("unsafe", "borderline", "safe"),
    ("reject", "weak reject", "borderline", "weak accept", "accept"),
    ("negative", "neutral", "mixed", "positive"),
    ("irrelevant", "partially relevant", "relevant", "highly relevant"),
    ("nein", "teilweise", "ja"),
    ("sehr schlecht", "schlecht", "mittel", "befriedigend", "gut", "sehr gut"),
    ("falsch", "teilweise richtig", "richtig"),
    ("non", "oui"),
    ("not helpful", "somewhat helpful", "helpful", "very helpful"),
    ("b>>a", "b>a", "a=b", "a>b", "a>>b"),
)
"""Words in ascending order, in lower case and with spaces for hyphens and underscores."""


def in_order(values: Sequence[Hashable]) -> tuple[list[Hashable], bool]:
    """Return classes from the lowest to the highest, and whether their order is known.

    Numbers are in order, and so are words of one scale. Others are in alphabetical order, not known.

    >>> in_order(["good", "poor", "fair"])
    (['poor', 'fair', 'good'], True)
    >>> in_order(["red", "blue"])
    (['blue', 'red'], False)
    """
    if all(isinstance(value, int | float) for value in values):
        numbers: list[Any] = list(values)
        return sorted(numbers), True
    plain = {
        value: " ".join(str(value).casefold().replace("_", " ").replace("-", " ").split())
        for value in values
    }
    for scale in SCALES:
        if set(plain.values()) <= set(scale):
            return sorted(values, key=lambda value: scale.index(plain[value])), True
    return sorted(values, key=lambda value: (isinstance(value, str), str(value))), False


def of_words(values: Iterable[object]) -> Classes | None:
    """Return the classes of values that are words: nominal, unless they are those of one scale.

    None if there is only one, or too many to be classes, or a number among them. The first spelling
    of words that differ in case counts.
    """
    plain = distinct(values)
    if not all(isinstance(value, str) for value in plain):
        return None
    words = {str(value).casefold(): value for value in reversed(plain)}
    if not 2 <= len(words) <= MOST_RATINGS:
        return None
    ordered, known = in_order(list(words.values()))
    return Classes(tuple(ordered), pairwise=False, ordered=known)


def no_order(classes: Classes) -> list[str]:
    """Return a sentence on classes without an order, if it would matter."""
    if classes.ordered or len(classes) < 3:
        return []
    return [
        "The classes are read as having no order: each wrong decision costs the same. If they have one, "
        "name them from the lowest to the highest with --classes."
    ]
