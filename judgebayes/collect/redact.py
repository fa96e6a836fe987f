"""Remove a key from texts that a server sent: whole, in part, abbreviated or encoded."""

import base64
import re
from dataclasses import dataclass, field
from urllib.parse import quote

PART = 6
"""This many characters of a key in a row are a part of it."""
MARK = "[key]"
STARS = "*.…•"
WORD = re.compile(r"[\w\-]")
TOKEN = re.compile(r"\[key\]|[\w\-]+|[*.…•]+|(?:(?!\[key\])[^\w\-*.…•])+")


@dataclass(frozen=True)
class Redactor:
    """Replaces a key, and every part of at least six characters, by `[key]`.

    Also replaced: the key with its middle left out (`sk-ab***yz`), its percent encoding, its Base64 and
    its hexadecimal digits, and all of these backwards.
    A key with fewer than six characters is only replaced as a whole.
    """

    key: str | None = field(repr=False)

    def clean(self, text: str) -> str:
        """Return a text without the key."""
        if not self.key:
            return text
        hidden = bytearray(len(text))
        for part in _parts(self.key):
            start = text.find(part)
            while start >= 0:
                hidden[start : start + len(part)] = b"\1" * len(part)
                start = text.find(part, start + 1)
        pieces, end = [], 0
        for span in re.finditer(rb"\x01+", bytes(hidden)):
            pieces += [text[end : span.start()], MARK]
            end = span.end()
        text = "".join([*pieces, text[end:]])
        return text if len(self.key) < PART else _without_stars(text, self.key[:4], self.key[-4:])


def _without_stars(text: str, head: str, tail: str) -> str:
    """Replace a key with its middle left out, "sk-ab***yz", also where a part was replaced before.

    The text is read once, as words, stars and others, so that no text takes more time than its length.
    """
    if not any(part in text for part in (head, tail, MARK)):
        return text
    tokens = TOKEN.findall(text)
    out: list[str] = []
    place = 0
    while place < len(tokens):
        token = tokens[place]
        place += 1
        if token[0] not in STARS:
            out.append(token)
            continue
        after: list[str] = []
        while place < len(tokens) and _is_word(tokens[place]):
            after.append(tokens[place])
            place += 1
        following = "".join(after)
        before = _beginning(out, head, cut=bool(after))
        end = following.rfind(tail)
        if before is not None:
            out += [before, MARK]
        elif end >= 0:
            out += [MARK, following[end + len(tail) :]]
        else:
            out += [token, *after]
    return "".join(out)


def _beginning(out: list[str], head: str, *, cut: bool) -> str | None:
    """Remove the last word of a list from the key's beginning on; return what stands before it, if any.

    With `cut`, what was replaced before may be the beginning of a key, which goes on after the stars.
    """
    last = out[-2:] if out and _is_word(out[-1]) else []
    if last and head in last[-1]:
        return out.pop().partition(head)[0]
    if cut and MARK in last:
        del out[len(out) - len(last) + last.index(MARK) :]
        return ""
    return None


def _is_word(token: str) -> bool:
    return token == MARK or bool(WORD.match(token))


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
