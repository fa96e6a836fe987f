"""Sanitise text of unknown origin: control characters, long texts, HTML escapes."""

import html
import re
from collections.abc import Sequence

MAX_TEXT = 4000
# Control characters that a page must not contain, and marks that change the direction of text.
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)


def clean(text: str) -> str:
    """Replace control characters by U+FFFD, the replacement character."""
    return _CONTROLS.sub("\ufffd", text)


def shortened(text: str, most: int) -> str:
    """Return at most `most` characters of a text: its beginning and its end.

    >>> shortened("abcdefghij", 5)
    'ab…ij'
    """
    if len(text) <= most:
        return text
    tail = (most - 1) // 2
    return f"{text[: most - 1 - tail]}…{text[len(text) - tail :]}"


def shortened_apart(names: Sequence[str], most: int) -> list[str]:
    """Return different names, shortened to `most` characters, or to as many as tell them apart."""
    short = [shortened(name, most) for name in names]
    return short if len({*short}) == len({*names}) else shortened_apart(names, 2 * most)


def escaped(text: str) -> str:
    """Return a text as HTML, safe as an element's content and in a quoted attribute."""
    return html.escape(clean(shortened(text, MAX_TEXT)), quote=True)
