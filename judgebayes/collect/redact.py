"""Remove a key from texts that a server sent: whole, in part, abbreviated or encoded."""

import base64
import re
from dataclasses import dataclass, field
from urllib.parse import quote

__all__ = ["Redactor"]

PART = 6
"""This many characters of a key in a row are a part of it."""
MARK = "[key]"


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
        spans = list(re.finditer(rb"\x01+", bytes(hidden)))
        for span in reversed(spans):
            text = text[: span.start()] + MARK + text[span.end() :]
        if len(self.key) < PART:
            return text
        # "Incorrect API key provided: sk-ab***yz", and the same where a part was replaced already.
        head, tail = re.escape(self.key[:4]), re.escape(self.key[-4:])
        stars = r"[*.…•]+"
        for pattern in (
            rf"(?:{head}|{re.escape(MARK)})[\w\-]*{stars}(?:{re.escape(MARK)}|[\w\-])+",
            rf"{head}[\w\-]*{stars}",
            rf"{stars}[\w\-]*{tail}",
        ):
            text = re.sub(pattern, MARK, text)
        return text


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
