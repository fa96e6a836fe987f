"""Short names of items that several parts identify: a name contains only the parts that vary."""

from collections.abc import Sequence


def short_names(parts: Sequence[tuple[str, ...]], keep: int) -> list[str]:
    """Return a name for each tuple of parts: part `keep`, and the parts that vary, in order.

    >>> short_names([("gpt", "7", "1"), ("claude", "7", "1")], keep=1)
    ['gpt|7', 'claude|7']
    """
    varies = [
        place
        for place in range(len(parts[0]) if parts else 0)
        if place == keep or len({part[place] for part in parts}) > 1
    ]
    return ["|".join(part[place] for place in varies) for part in parts]
