"""What a run that a signal stops has kept: the files that were written, and a command's own sentence.

The command line reads this when it ends (`judgebayes.cli.machine`); elsewhere it has no effect.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

NAMED = 3
"""At most this many files are named."""

_written: dict[Path, None] = {}
_sentences: list[str] = []


def begin() -> None:
    """Forget everything, at the start of a command."""
    _written.clear()
    _sentences.clear()


def wrote(path: Path) -> None:
    """Note a file that is complete."""
    _written[path] = None


@contextlib.contextmanager
def keeping(sentence: str) -> Iterator[None]:
    """State what is kept if the block is stopped, in a sentence that replaces the list of files."""
    _sentences.append(sentence)
    yield  # it stays after an error, because it is printed later
    _sentences.remove(sentence)


def kept() -> str:
    """Return what is kept, in a sentence."""
    if _sentences:
        return _sentences[-1]
    if not _written:
        return "No file was written; those of earlier runs are as they were."
    named = ", ".join(repr(str(path)) for path in [*_written][:NAMED])
    more = f" and {len(_written) - NAMED} more" if len(_written) > NAMED else ""
    return f"Complete: {named}{more}; no other file was changed."
