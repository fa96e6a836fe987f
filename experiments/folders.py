"""Folders of results: one run writes to a folder at a time, and what killed runs left is removed."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from judgebayes.compiled.store import HALF
from judgebayes.errors import JudgeBayesError


def make_folder(folder: Path) -> None:
    """Create a folder, and those above it.

    Raises
    ------
    JudgeBayesError
        If it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise JudgeBayesError(f"{str(folder)!r} cannot be written: {error.strerror}.") from error


def clear_half_written(folder: Path) -> None:
    """Remove half-written files of killed processes; only where no other process can be writing."""
    for path in folder.rglob(f".*{HALF}"):
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def locked(folder: Path, what: str) -> Iterator[None]:
    """Lock a folder for this process: another process that tries to lock it gets an error.

    The lock ends with the process, however the process ends.

    Raises
    ------
    JudgeBayesError
        If another process holds the lock, or the folder cannot be written to.
    """
    path = folder / "lock"
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise JudgeBayesError(
                f"{str(folder)!r} cannot be written: {error.strerror or error}."
            ) from error
        try:
            _lock(handle)
        except OSError as error:
            os.close(handle)
            raise JudgeBayesError(
                f"Another run is writing to {what}; wait until it ends, or choose another folder."
            ) from error
        if path.exists() and os.path.samestat(os.fstat(handle), path.stat()):
            break
        os.close(handle)  # the previous holder has just removed the lock file
    try:
        yield
    finally:
        os.close(handle)


def _lock(handle: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
