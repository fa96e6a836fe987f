"""The order of classes that are words, by their meaning."""

from collections.abc import Hashable, Sequence
from typing import Any

__all__ = ["in_order"]

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
