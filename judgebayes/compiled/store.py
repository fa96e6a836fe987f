"""Files that a program keeps in a folder for later processes.

A file is written beside its place and moved into it, so that it is whole or not there. One that cannot
be read is as one that is not there. Files are data: none is a pickle. Several processes may use one
folder, unless one of them holds its lock.
"""

import contextlib
import math
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, TypeVar

from judgebayes.errors import JudgeBayesError

__all__ = ["HALF", "atomically", "clear_half_written", "locked", "prune", "read_or_none"]

HALF = ".half-written"

T = TypeVar("T")


@contextlib.contextmanager
def atomically(path: Path, *, new_folder: bool = False) -> Iterator[Path]:
    """Yield a path beside another, and move what was written there into its place.

    What is no file, a terminal say, is written to directly. `new_folder` makes the folder.

    Raises
    ------
    JudgeBayesError
        If it cannot be written; what stood there before stays, and nothing half written is left.
    """
    temporary = None
    try:
        path = path.resolve()  # a link stays one
        if path.exists() and not path.is_file():
            yield path
            return
        if new_folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=HALF)
        os.close(handle)
        temporary = Path(name)
        yield temporary
        temporary.chmod(0o644)
        temporary.replace(path)
    except OSError as error:
        raise JudgeBayesError(
            f"{str(path)!r} cannot be written: {error.strerror or error}. Nothing that was finished is "
            "lost: make room, or name another place, and run the same command again."
        ) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def read_or_none(path: Path, read: Callable[[BinaryIO], T]) -> T | None:
    """Return what `read` makes of a file; None where there is none that can be read."""
    try:
        with path.open("rb") as file:
            found = read(file)
    except Exception:  # whatever is wrong with the file, it is made anew
        return None
    with contextlib.suppress(OSError):  # a folder that is only read
        os.utime(path)  # the time of its last use, which file systems do not note reliably
    return found


def clear_half_written(folder: Path, before: float = math.inf) -> None:
    """Remove what writers that were killed have left; only where no other can be writing.

    Where others may be, `before` says until when what was written has no writer any more.
    """
    for left in folder.rglob(f".*{HALF}"):
        with contextlib.suppress(FileNotFoundError):
            if left.lstat().st_mtime < before:
                left.unlink()


def prune(folder: Path, suffix: str, own: str, *, files: int, size: int) -> None:
    """Remove files until at most so many are left, of at most so many bytes together.

    Those without `own` in their names go first, then those read or written longest ago. Other
    processes may prune, read and write meanwhile: all put the files in the same order, a file already
    removed is no error, one that is open stays readable, and one that is gone is made anew.
    """
    found = []
    for entry in os.scandir(folder):
        with contextlib.suppress(FileNotFoundError):
            about = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(about.st_mode) and entry.name.endswith(suffix):
                found.append((own in entry.name, about.st_mtime_ns, entry.name, about.st_size))
    for place, (_, _, name, taken) in enumerate(sorted(found, reverse=True)):
        size -= taken
        if place >= files or size < 0:
            (folder / name).unlink(missing_ok=True)


@contextlib.contextmanager
def locked(folder: Path, what: str) -> Iterator[None]:
    """Hold a folder for this process: another that asks for it meanwhile is refused.

    The lock ends with the process, however that ends.

    Raises
    ------
    JudgeBayesError
        If another process holds the folder, or it cannot be written to.
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
                f"Another run is writing to {what}; wait for it, or name another folder."
            ) from error
        if path.exists() and os.path.samestat(os.fstat(handle), path.stat()):
            break
        os.close(handle)  # the run that held it has just removed it
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
