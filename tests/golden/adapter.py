"""The adapter from an answer to flat names and numbers: where the JSON changes, only this changes."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

PROSE = {"sentences", "next_steps", "command", "options", "schema", "sentence", "why", "finding"}
"""Words, which the three transcripts hold."""
ROWS = 12
"""Of a longer table, this many rows are kept, evenly spaced, and the mean of each column."""
WORD = 60


def numbers_of(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers and words of an answer by flat names."""
    return dict(_flat("", result))


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key not in PROSE:
                yield from _flat(key if key == "tables" or not name else f"{name}.{key}", inner)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        if value and isinstance(value[0], Mapping):
            yield from _table(name.removeprefix("tables."), value)
        elif len(value) <= ROWS:
            for i, inner in enumerate(value):
                yield from _flat(f"{name}.{i}", inner)
    elif value is not None and not (isinstance(value, str) and (len(value) > WORD or "/" in value)):
        yield name.removeprefix("tables.").replace(" ", "_"), value


def _table(name: str, rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Any]]:
    """A table's cells by the words that name the row, and the column."""
    yield f"{name}.rows".replace(" ", "_"), len(rows)
    if len(rows) > ROWS:
        for column in rows[0]:
            cells = [row.get(column) for row in rows]
            if all(isinstance(c, int | float) and not isinstance(c, bool) for c in cells):
                yield f"{name}.mean.{column}".replace(" ", "_"), float(np.mean(cells))
    names = _names(rows)
    step = max(1, len(rows) // ROWS)
    for key, row in list(zip(names, rows, strict=True))[::step]:
        yield from _flat(f"{name}.{key}".replace(" ", "_"), row)


def _names(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The rows' first words and counts, as few as tell them apart; else their places."""
    said = [[_word(v) for v in row.values() if isinstance(v, str | int)] for row in rows]
    for n in range(1, 5):
        names = ["|".join(words[:n]) for words in said]
        if len(set(names)) == len(rows):
            return names
    return [str(i) for i in range(len(rows))]


def _word(value: str | int) -> str:
    """A word of a name: of an absolute path only the file's name, without its suffix."""
    return Path(str(value)).stem if str(value).startswith("/") else str(value)[:WORD]
