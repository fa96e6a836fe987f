"""What a run that a signal stops has kept: the files that were written, and a command's own sentence.

The command line reads this when it ends (`judgebayes.cli.stopping`); elsewhere it has no effect.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

__all__ = ["begin", "keeping", "kept", "saving", "saving_now", "wrote"]

NAMED = 3
"""At most this many files are named."""

_written: dict[Path, None] = {}
_sentences: list[str] = []
_saving: list[str] = []


def begin() -> None:
    """Forget everything, at the start of a command."""
    for each in (_written, _sentences, _saving):
        each.clear()


def wrote(path: Path) -> None:
    """Note a file that is complete."""
    _written[path] = None


@contextlib.contextmanager
def keeping(sentence: str) -> Iterator[None]:
    """State what is kept if the block is stopped, in a sentence that replaces the list of files."""
    _sentences.append(sentence)
    yield  # it stays after an error, because it is printed later
    _sentences.remove(sentence)


def saving(sentence: str) -> None:
    """State that results are being saved after a first Ctrl-C, which therefore does not end the program.

    The sentence is printed at once; a second Ctrl-C ends the program.
    """
    _saving.append(sentence)


def saving_now() -> str | None:
    """Return the sentence of `saving`; None if nothing is being saved."""
    return _saving[-1] if _saving else None


def kept() -> str:
    """Return what is kept, in a sentence."""
    if _sentences:
        return _sentences[-1]
    files = list(_written)
    if not files:
        return "No file was written; those of earlier runs are as they were."
    named = ", ".join(repr(str(path)) for path in files[:NAMED])
    more = f" and {len(files) - NAMED} more" if len(files) > NAMED else ""
    return f"Complete: {named}{more}; no other file was changed."
