"""Read a server's reply as a chat completion.

Nothing in a reply is believed: its encoding, its nesting and the types of its fields.

Remove a key from texts that a server sent: whole, in part, abbreviated or encoded.
"""

import base64
import json
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from judgebayes.io.records import unique_fields

PART = 6
"""This many characters of a key in a row are a part of it."""
MARK = "[key]"
STARS = "*.…•"
STARRED = re.compile(r"[\w\-*.…•]+")
"""A word, and what may stand for its middle: stars or dots."""


def without_key(text: str, key: str | None) -> str:
    """Return a text with `[key]` in place of a key, and of every part of at least six characters.

    Also replaced: the key with its middle left out (`sk-ab***yz`), its percent encoding, its Base64 and
    its hexadecimal digits, and all of these backwards.
    A key with fewer than six characters is only replaced as a whole.
    """
    if not key:
        return text
    text = text.replace(key, MARK)
    if len(key) >= PART:
        text = STARRED.sub(lambda word: _without_stars(word[0], key), text)
    hidden = bytearray(len(text))
    for part in _parts(key):
        start = text.find(part)
        while start >= 0:
            hidden[start : start + len(part)] = b"\1" * len(part)
            start = text.find(part, start + 1)
    pieces, end = [], 0
    for span in re.finditer(rb"\x01+", bytes(hidden)):
        pieces += [text[end : span.start()], MARK]
        end = span.end()
    return "".join([*pieces, text[end:]])


def _without_stars(word: str, key: str) -> str:
    """Return `[key]` for a key with its middle left out, "sk-ab***yz", else the word."""
    core = word.rstrip(STARS)
    beginning = key[:4] in word and any(star in word for star in STARS)
    return (
        MARK if beginning or (core.endswith(key[-4:]) and any(s in core for s in STARS)) else word
    )


def _parts(key: str) -> set[str]:
    """Return the shortest texts that are a part of the key in one of its spellings."""
    encoded = {base64.b64encode(text.encode()).decode() for text in (key, f"Bearer {key}")}
    digits = key.encode().hex()
    spellings = {key, quote(key, safe=""), *encoded}
    size = min(PART, len(key))
    parts = {s[i : i + size] for s in spellings for i in range(len(s) - size + 1)}
    # The Base64 of "Bearer " is no secret.
    parts -= {"QmVhcmV", "QmVhcm", "mVhcmV", "VhcmVy"}
    for hexadecimal in (digits, digits.upper()):
        parts |= {hexadecimal[i : i + 2 * size] for i in range(0, len(digits) - 2 * size + 1, 2)}
    return parts | {part[::-1] for part in parts}


MAX_TEXT = 2**20
"""Characters of an answer; none is longer."""
MAX_NAME = 200
"""Characters of a model's name, and of the reason for an answer's end; longer ones are not kept."""
MAX_TOKENS = 10**9
"""A larger number of tokens is not believed."""
MAX_EXCERPT = 200
READ_FOR_EXCERPT = 20_000


class UnreadableError(Exception):
    """A reply that cannot be read."""


@dataclass(frozen=True)
class Answer:
    """A judge's answer."""

    text: str
    finish: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    answered_by: str | None
    """The model that answered, according to the server."""

    @property
    def tokens(self) -> int | None:
        """The number of tokens, None if the server did not count them."""
        if self.prompt_tokens is None or self.completion_tokens is None:
            return None
        return self.prompt_tokens + self.completion_tokens


def answer_of(content: bytes, key: str | None) -> Answer:
    """Return the answer in a chat completion, without the key in any field.

    Raises
    ------
    UnreadableError
        If it is not a chat completion. Some proxies send error pages with status 200.
    """
    try:
        reply: Any = json.loads(content, object_pairs_hook=unique_fields)
        choice = reply["choices"][0]
        message_text = choice["message"].get("content")
        usage = reply.get("usage")
        finish, model = choice.get("finish_reason"), reply.get("model")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        what = f"an answer that is not a chat completion{excerpt(content, key)}"
        raise UnreadableError(what) from None
    if isinstance(message_text, list):
        parts = [part.get("text") for part in message_text if isinstance(part, dict)]
        message_text = "".join(part for part in parts if isinstance(part, str))
    if not isinstance(message_text, str):
        message_text = ""
    if len(message_text) > MAX_TEXT:
        raise UnreadableError(f"an answer of more than {MAX_TEXT:,} characters")
    counts = usage if isinstance(usage, dict) else {}
    return Answer(
        without_key(message_text, key),
        _name(finish, key),
        _count(counts.get("prompt_tokens")),
        _count(counts.get("completion_tokens")),
        _name(model, key),
    )


def excerpt(content: bytes, key: str | None) -> str:
    """Return the beginning of a server's message, in brackets, without key and control characters."""
    # Cut generously first: a key at the edge of the excerpt must still be whole when it is searched.
    text = content[:READ_FOR_EXCERPT].decode("utf-8", "replace")
    match = re.search(r'"message"\s*:\s*"((?:[^"\\]|\\.)+)"', text)
    words = _unescaped(match.group(1)) if match else _unescaped(text)
    shown = "".join(c if c.isprintable() else " " for c in without_key(words, key))
    shown = " ".join(shown.split())
    cut = shown if len(shown) <= MAX_EXCERPT else shown[: MAX_EXCERPT - 3] + "..."
    return f" ({cut})" if cut else ""


def _unescaped(text: str) -> str:
    r"""Return a text with its JSON escapes read: a key may be written as \u0073k-..."""
    text = re.sub(r"\\u([0-9a-fA-F]{4})", lambda match: chr(int(match.group(1), 16)), text)
    # Half of a pair of surrogates cannot be printed.
    return re.sub(r"\\(.)", r"\1", text).encode("utf-8", "replace").decode()


def _name(value: object, key: str | None) -> str | None:
    short = isinstance(value, str) and len(value) <= MAX_NAME
    return without_key(str(value), key) if short else None


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value <= MAX_TOKENS else None
