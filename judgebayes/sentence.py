"""What every sentence and table is written with: printable lines, shares, numbers and intervals."""

import math
from collections.abc import Iterable
from difflib import get_close_matches
from typing import SupportsFloat

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


def of_votes(number: object) -> str:
    """Return a number of votes in words.

    >>> of_votes(1), of_votes("2 to 5")
    ('1 vote', '2 to 5 votes')
    """
    return "1 vote" if str(number) == "1" else f"{number} votes"


def rounded(value: SupportsFloat, form: str = "z.3f") -> str:
    """Return a number as tables write it, a hyphen if it is not finite.

    >>> rounded(-0.0001), rounded(0.123, ".0%"), rounded(float("nan"))
    ('0.000', '12%', '-')
    """
    return f"{float(value):{form}}" if math.isfinite(float(value)) else "-"


def with_interval(
    ends: Iterable[SupportsFloat], form: str = "z.3f", *, unit: str | None = None
) -> str:
    """Return an estimate, low and high as text, a hyphen if the estimate is unknown.

    With a `unit`, " %" or "" where a heading names it, they are shares in per cent.

    >>> with_interval((0.3, 0.2, 0.4)), with_interval((0.3, 0.2, 0.4), ".0f", unit=" %")
    ('0.300 [0.200, 0.400]', '30 % [20 %, 40 %]')
    >>> with_interval((0.3, float("nan"), float("nan")))
    '0.300'
    """
    shown = [rounded(float(each) * (1 if unit is None else 100), form) for each in ends]
    mean, low, high = (each if each == "-" else f"{each}{unit or ''}" for each in shown)
    return mean if "-" in shown else f"{mean} [{low}, {high}]"


def did_you_mean(name: str, names: Iterable[object]) -> str:
    """Return a question that names the most similar of some names, with a space in front; else "".

    >>> did_you_mean("Jugde", ["item", "judge"])
    " Did you mean 'judge'?"
    """
    folded = {str(other).casefold(): str(other) for other in names}
    near = get_close_matches(name.casefold(), folded, 1, 0.6)
    return f" Did you mean {folded[near[0]]!r}?" if near else ""


def sentences(lines: Iterable[str]) -> list[str]:
    """Return texts as lines that a terminal can show, each as `sentence` does."""
    return [sentence(line) for line in lines]
