"""Files in a folder that later processes reuse.

A file is written under a temporary name and renamed, so that it is complete or absent. Several processes
may use one folder, unless one of them holds its lock.
"""

import contextlib
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from judgebayes.compiled.stopping import wrote
from judgebayes.errors import JudgeBayesError

HALF = ".half-written"


@contextlib.contextmanager
def atomically(path: Path, *, new_folder: bool = False) -> Iterator[Path]:
    """Yield a temporary path in the same folder, and rename it to `path` at the end.

    A path that is not a regular file, such as a terminal, is written to directly. `new_folder` creates
    the folder. A file keeps its mode, and a new one has that of the user's umask.

    Raises
    ------
    JudgeBayesError
        If it cannot be written; the previous file remains, and no half-written file is left.
    """
    temporary = None
    try:
        path = path.resolve()  # a link remains a link
        if path.exists() and not path.is_file():
            yield path
            return
        if new_folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        kept = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
        name = path.with_name(f".{path.name}.{secrets.token_hex(8)}{HALF}")
        mode = 0o666 if kept is None else 0o600  # less what the umask takes
        os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
        temporary = name
        yield temporary
        if kept is not None:
            temporary.chmod(kept)
        temporary.replace(path)
        wrote(path)
    except OSError as error:
        raise JudgeBayesError(
            f"{str(path)!r} cannot be written: {error.strerror or error}. Finished parts are not lost: "
            "free some space, or choose another folder, and run the same command again."
        ) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


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
