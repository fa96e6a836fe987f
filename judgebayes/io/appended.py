"""A JSONL file of answers that grows by a line at a time, with the settings of all beside it.

A line is complete, or it is the last line, cut off when the process ended; a cut line is removed before
the next one is written. Lines reach the operating system immediately (they survive kill -9) and the
disk within a second (they survive a power cut).
"""

import contextlib
import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from judgebayes.compiled.store import atomically
from judgebayes.errors import JudgeBayesError
from judgebayes.io.records import read_json, read_lines

SYNC_SECONDS = 1.0
OTHER = "choose another file with -o"


class Appended:
    """The file, open for appending. Only one process may have it open.

    Parameters
    ----------
    path
        The JSONL file; it is created if it does not exist.
    settings
        Values by name that must not change between two runs into the same file, without secrets; None
        for a file that has none.

    Raises
    ------
    JudgeBayesError
        If it cannot be written, another process has it open, a line is not a JSON object, or the file
        was written with other settings.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any] | None) -> None:
        self.path = path
        self.torn = 0
        """Number of bytes removed with a cut last line."""
        self.records: list[tuple[int, dict[str, Any]]] = []
        """The lines so far, each with its number."""
        try:
            with contextlib.ExitStack() as opened:
                # Without a buffer: what a full disk refused must not be written again on closing.
                self._file = opened.enter_context(path.open("ab", buffering=0))
                _lock(self._file.fileno(), path)
                self.torn = _remove_torn_line(path)
                try:
                    self.records = list(read_lines(path))
                except JudgeBayesError as error:
                    raise JudgeBayesError(f"{error} Restore the file, or {OTHER}.") from error
                if settings is not None:
                    self._check_settings(settings)
                opened.pop_all()
        except OSError as error:
            raise self._not_written(error) from error
        self._synced = time.monotonic()
        self._failed = False

    def __enter__(self) -> "Appended":
        """Return the file."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Write everything to the disk, and release the file.

        Raises
        ------
        JudgeBayesError
            If not everything can be written, unless an error already says what happened.
        """
        try:
            self._sync()
        except OSError as unwritten:
            if error is None:
                raise self._not_written(unwritten) from unwritten
        finally:
            self._file.close()

    def append(self, record: Mapping[str, Any]) -> None:
        """Write a line.

        Raises
        ------
        JudgeBayesError
            If it cannot be written (for example on a full disk), or an earlier line could not.
        """
        if self._failed:
            raise JudgeBayesError(f"{str(self.path)!r} cannot be written any more.")
        # Lone surrogates, which some models produce, are not valid UTF-8; ASCII escapes them.
        content = (json.dumps(dict(record)) + "\n").encode("ascii")
        before = os.fstat(self._file.fileno()).st_size
        try:
            while content:
                content = content[self._file.write(content) or 0 :]
            if time.monotonic() - self._synced >= SYNC_SECONDS:
                self._sync()
        except OSError as error:
            self._failed = True
            with contextlib.suppress(OSError):
                os.ftruncate(self._file.fileno(), before)
            raise self._not_written(error) from error

    def _sync(self) -> None:
        os.fsync(self._file.fileno())
        self._synced = time.monotonic()

    def _not_written(self, error: OSError) -> JudgeBayesError:
        return JudgeBayesError(
            f"{str(self.path)!r} cannot be written: {error.strerror}. Earlier answers are kept."
        )

    def _check_settings(self, settings: Mapping[str, Any]) -> None:
        """Check that the settings equal those of the file, or write them beside a new file."""
        path = self.path
        settings_file = settings_path(path)
        if not self.records:
            _write(settings_file, settings)
            return
        if not settings_file.is_file():
            raise JudgeBayesError(
                f"{str(path)!r} contains answers, but their settings file "
                f"{str(settings_file)!r} is missing; {OTHER}."
            )
        before = read_json(settings_file)
        if not isinstance(before, dict):
            raise JudgeBayesError(
                f"{str(settings_file)!r} has no settings by name; restore the file, or {OTHER}."
            )
        for name, now in settings.items():
            was = before.get(name, now)  # a new judge has no earlier settings
            if _plain(was) != _plain(now):
                raise JudgeBayesError(
                    f"{str(path)!r} was started with another {name}: {excerpt(was)}, now "
                    f"{excerpt(now)}. All votes in a file must have the same settings. Use the earlier "
                    f"{name}, or {OTHER}."
                )
        if settings.keys() - before.keys():
            _write(settings_file, before | dict(settings))


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
        content = file.read()
        rest = content.rpartition(b"\n")[2]
        if not rest:
            return 0
        try:
            complete = isinstance(json.loads(rest), dict)
        except (ValueError, RecursionError):  # a cut number, or brackets nested too deep
            complete = False
        if complete:
            file.write(b"\n")
            return 0
        file.truncate(len(content) - len(rest))
        return len(rest)


def settings_path(path: Path) -> Path:
    """Return the path of the settings of a file."""
    return path.with_name(path.name + ".settings.json")


def _plain(value: object) -> str:
    """Return a setting as text: true, 1 and 1.0 are equal as values, but not the same setting."""
    return json.dumps(value, sort_keys=True)


def excerpt(value: object) -> str:
    """Return a value of a file for a sentence, cut if it is long."""
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:40]}... of {len(text)} characters"


def _write(path: Path, settings: Mapping[str, Any]) -> None:
    with atomically(path) as part:
        part.write_text(json.dumps(dict(settings), indent=1) + "\n", encoding="utf-8")
