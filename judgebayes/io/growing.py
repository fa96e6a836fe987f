"""A file that grows by lines, each complete or removed.

A line is complete, or it is the last line, cut off when the process ended; a cut line is removed before
the next one is written. Lines reach the operating system immediately (they survive kill -9) and the
disk within a second (they survive a power cut).
"""

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from judgebayes.errors import JudgeBayesError

SYNC_SECONDS = 1.0
TAIL = 65_536


class GrowingFile:
    """A file open for appending lines. Only one process may have it open.

    `contents` is what its lines are, for errors: `answers`.

    Raises
    ------
    JudgeBayesError
        If it cannot be written, or another process has it open.
    """

    def __init__(self, path: Path, contents: str) -> None:
        self.path = path
        self.contents = contents
        self.torn = 0
        """Number of bytes removed with a cut last line."""
        try:
            # Without a buffer: what a full disk refused must not be written again on closing.
            self._file = path.open("ab", buffering=0)
        except OSError as error:
            raise self._not_written(error) from error
        try:
            _lock(self._file.fileno(), path)
            self.torn = _remove_torn_line(path)
        except OSError as error:
            self._file.close()
            raise self._not_written(error) from error
        except BaseException:
            self._file.close()
            raise
        self._synced = time.monotonic()
        self._failed = False

    def append(self, line: str) -> None:
        """Write a line of ASCII text.

        Raises
        ------
        JudgeBayesError
            If it cannot be written (for example on a full disk), or an earlier line could not.
        """
        if self._failed:
            raise JudgeBayesError(f"{str(self.path)!r} cannot be written any more.")
        content = (line + "\n").encode("ascii")
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

    def close(self, *, quietly: bool = False) -> None:
        """Write everything to the disk, and release the file.

        Parameters
        ----------
        quietly
            Whether a failure to write is not an error: after an error, which says what happened.

        Raises
        ------
        JudgeBayesError
            If not everything can be written.
        """
        try:
            self._sync()
        except OSError as error:
            if not quietly:
                raise self._not_written(error) from error
        finally:
            self._file.close()

    def _sync(self) -> None:
        os.fsync(self._file.fileno())
        self._synced = time.monotonic()

    def _not_written(self, error: OSError) -> JudgeBayesError:
        return JudgeBayesError(
            f"{str(self.path)!r} cannot be written: {error.strerror}. Earlier {self.contents} are kept."
        )


def lines_of(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file that are not empty."""
    with path.open("rb") as file:
        yield from (line for line in file if line.strip())


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
        except (ValueError, RecursionError):  # a cut number, or brackets nested too deep
            complete = False
        if complete:
            file.seek(size)
            file.write(b"\n")
            return 0
        file.truncate(size - len(rest))
        return len(rest)
