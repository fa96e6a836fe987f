"""Sentences with text from a user's file: one line, printable, of limited length."""

from collections.abc import Iterable
from typing import SupportsFloat

__all__ = ["percent", "sentence", "sentences"]

LONGEST = 2000
"""A longer sentence loses its middle: its beginning says what is wrong, and its end what to do."""
HEAD, TAIL = 1400, 500


def sentence(text: str) -> str:
    r"""Return a text as one line that a terminal can show.

    Characters that are not printable (line ends, terminal escapes, marks of writing direction,
    surrogates) are written as Python escapes.

    >>> sentence("Judge \x1b[2J has\nno vote.")
    'Judge \\x1b[2J has\\nno vote.'
    """
    if len(text) > LONGEST:
        text = f"{text[:HEAD]} ... {text[-TAIL:]}"
    if text.isprintable():
        return text
    escaped = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return sentence(escaped) if len(escaped) > LONGEST else escaped


def percent(share: SupportsFloat, digits: int = 0, *, sign: bool = False) -> str:
    """Return a share in per cent, as sentences and captions write it.

    >>> percent(0.9), percent(0.123, 1), percent(0.2, sign=True)
    ('90 %', '12.3 %', '+20 %')
    """
    return f"{100 * float(share):{'+' if sign else ''}.{digits}f} %"


def sentences(lines: Iterable[str]) -> list[str]:
    """Return texts as lines that a terminal can show, each as `sentence` does."""
    return [sentence(line) for line in lines]
