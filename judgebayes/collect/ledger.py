"""The growing file of votes: a line per answer, so that no answer is paid for twice.

A line is complete, or it is the last line, cut off when the process ended; a cut line is removed before
the next one is written. Lines reach the operating system immediately (they survive kill -9) and the
disk within a second (they survive a power cut).
"""

import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from judgebayes.errors import JudgeBayesError
from judgebayes.io.records import read_json, read_lines

__all__ = ["Ledger", "Line", "Question", "settings_path"]

SYNC_SECONDS = 1.0
TAIL = 65_536


class Question(NamedTuple):
    """One request: a judge, an item, the number of the sample, and the order."""

    judge: str
    item: str
    sample: int
    order: str


@dataclass(frozen=True)
class Line:
    """One answer. Other commands read only `item` to `order`."""

    item: str
    judge: str
    vote: str | None
    """The vote with responses in the labels' order: votes in swapped order are already mapped back."""
    sample: int
    order: str | None
    """AB, or BA if the responses were shown swapped; None (no column) for a single response."""
    missing: str | None
    """The reason for a missing vote."""
    level: str | None
    """The level of the verdict parser that matched."""
    text: str
    """The raw answer."""
    finish: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    answered_by: str | None
    content: str
    """A digest of the item's fields."""

    @property
    def question(self) -> Question:
        """The request that this line answers."""
        return Question(self.judge, self.item, self.sample, self.order or "AB")

    @property
    def tokens(self) -> int | None:
        """The number of tokens, None if the server did not count them."""
        if self.prompt_tokens is None or self.completion_tokens is None:
            return None
        return self.prompt_tokens + self.completion_tokens


def settings_path(path: Path) -> Path:
    """Return the path of the settings of a file of votes."""
    return path.with_name(path.name + ".settings.json")


class Ledger:
    """A file of answers, open for appending. Only one process may have it open.

    Parameters
    ----------
    path
        The JSONL file; it is created if it does not exist.
    settings
        Values by name that must not change between two runs into the same file, without secrets.

    Raises
    ------
    JudgeBayesError
        If another process has the file open, it is not a file of answers, or it was written with other
        settings.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self.path = path
        self.torn = 0
        """Number of bytes removed with a cut last line."""
        try:
            self._file = path.open("ab")
        except OSError as error:
            raise JudgeBayesError(f"{str(path)!r} cannot be written: {error.strerror}.") from error
        try:
            _lock(self._file.fileno(), path)
            self.torn = _remove_torn_line(path)
            self.lines = [_line(number, record, path) for number, record in read_lines(path)]
            _check_settings(path, settings, bool(self.lines))
        except BaseException:
            self._file.close()
            raise
        self._synced = time.monotonic()

    def append(self, line: Line) -> None:
        """Write an answer.

        Raises
        ------
        JudgeBayesError
            If the line cannot be written (for example on a full disk), so that no answers are paid for
            and lost.
        """
        # Lone surrogates, which some models produce, are not valid UTF-8; ASCII escapes them.
        fields = {k: v for k, v in asdict(line).items() if k != "order" or v is not None}
        content = (json.dumps(fields) + "\n").encode("ascii")
        try:
            self._file.write(content)
            self._file.flush()
            if time.monotonic() - self._synced >= SYNC_SECONDS:
                self._sync()
        except OSError as error:
            raise JudgeBayesError(
                f"{str(self.path)!r} cannot be written: {error.strerror}. Earlier answers are kept."
            ) from error
        self.lines.append(line)

    def _sync(self) -> None:
        os.fsync(self._file.fileno())
        self._synced = time.monotonic()

    def __enter__(self) -> "Ledger":
        """Return the ledger."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Write everything to the disk, and release the file."""
        try:
            self._sync()
        finally:
            self._file.close()


def _lock(descriptor: int, path: Path) -> None:
    if sys.platform == "win32":  # pragma: no cover
        return  # Simultaneous runs are not detected there.
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise JudgeBayesError(
            f"Another run is writing to {str(path)!r}; wait until it ends, or choose another file."
        ) from error


def _remove_torn_line(path: Path) -> int:
    """Remove an incomplete last line; return the number of bytes removed."""
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        start, tail = size, b""
        while start > 0 and b"\n" not in tail:
            step = min(TAIL, start)
            start -= step
            file.seek(start)
            tail = file.read(step) + tail
        rest = tail.rpartition(b"\n")[2]
        if not rest:
            return 0
        try:
            complete = isinstance(json.loads(rest), dict)
        except ValueError:
            complete = False
        if complete:
            file.seek(size)
            file.write(b"\n")
            return 0
        file.truncate(size - len(rest))
        return len(rest)


def _line(number: int, record: dict[str, Any], path: Path) -> Line:
    record = {"order": None} | record
    names = Line.__dataclass_fields__.keys()
    if names - record.keys():
        raise JudgeBayesError(
            f"Line {number} of {str(path)!r} is not an answer of judgebayes collect: it has no "
            f"{min(names - record.keys())!r}. Choose another file with -o."
        )
    return Line(**{name: record[name] for name in names})


def _check_settings(path: Path, settings: Mapping[str, Any], used: bool) -> None:
    """Check that the settings equal those of the file, or write them beside a new file."""
    settings_file = settings_path(path)
    if not used:
        _write_atomically(settings_file, json.dumps(dict(settings), indent=1))
        return
    if not settings_file.is_file():
        raise JudgeBayesError(
            f"{str(path)!r} contains answers, but their settings file {str(settings_file)!r} is "
            "missing; choose another file with -o."
        )
    before = read_json(settings_file)
    before = before if isinstance(before, dict) else {}
    for name, now in settings.items():
        was = before.get(name, now)  # a new judge has no earlier settings
        if was != now:
            raise JudgeBayesError(
                f"{str(path)!r} was started with another {name}: {_excerpt(was)}, now "
                f"{_excerpt(now)}. All votes in a file must have the same settings. Use the "
                f"earlier {name}, or choose another file with -o."
            )
    if settings.keys() - before.keys():
        _write_atomically(settings_file, json.dumps(before | dict(settings), indent=1))


def _excerpt(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:40]}... of {len(text)} characters"


def _write_atomically(path: Path, text: str) -> None:
    """Write a file atomically."""
    part = path.with_name(path.name + ".part")
    try:
        with part.open("w", encoding="utf-8") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        raise JudgeBayesError(f"{str(path)!r} cannot be written: {error.strerror}.") from error
