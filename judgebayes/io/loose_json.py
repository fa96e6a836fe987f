"""JSON in a judge's answer: in a code fence, between sentences, with trailing commas.

Only what can be read in one way is read. A text that is cut off is not completed, quotes are not added,
and an object that repeats a name is not read.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from judgebayes.io.records import unique_fields

MAX_LENGTH = 1_000_000
"""Only the beginning of a longer text is searched."""
WORK = 4_000_000
"""Characters that attempts may read in vain, so that a text of brackets costs no more than a second."""
NESTED = 20_000
"""What an attempt counts that ended because of its nesting."""
DECODER = json.JSONDecoder(object_pairs_hook=unique_fields)

_OPENING = re.compile(r"[{\[]")
_STRING_OR_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])', re.DOTALL)
_AT_COMMA = re.compile(r",?\s*[}\]]")


@dataclass(frozen=True)
class Found:
    """A JSON object or list in a text."""

    value: Any
    start: int
    end: int
    """`text[start:end]` is the JSON."""


def find_json(text: str) -> list[Found]:
    """Return the JSON of a text: all of the text, or else the objects and lists in it, in order.

    Parts of an object or list are not returned, unless it is damaged.

    >>> [found.value for found in find_json('Here: {"line": 3,} Done.')]
    [{'line': 3}]
    """
    try:
        return [Found(DECODER.decode(text.strip()), 0, len(text))]
    except (ValueError, RecursionError):
        return list(_pieces(text[:MAX_LENGTH]))


def _pieces(text: str) -> Iterator[Found]:
    place, work = 0, 0
    while (opening := _OPENING.search(text, place)) is not None and work < WORK:
        start = opening.start()
        place = start + 1
        try:
            value, end = DECODER.raw_decode(text, start)
            place = end
            yield Found(value, start, end)
            continue
        except RecursionError:
            work += NESTED
            continue
        except ValueError as error:
            failed = getattr(error, "pos", len(text))  # of a repeated name, no place is known
        work += failed - start + 1 + failed // 16  # the error counts the lines before its place
        if _AT_COMMA.match(text, failed) is None:
            continue
        # As many characters as before, so that places remain the same.
        plain = _STRING_OR_COMMA.sub(_without_comma, text[start:])
        work += len(plain)
        try:
            value, length = DECODER.raw_decode(plain)
        except (ValueError, RecursionError):
            continue
        place = start + length
        yield Found(value, start, place)


def _without_comma(match: re.Match[str]) -> str:
    return " " if match.group() == "," else match.group()
