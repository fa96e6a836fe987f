"""Files in a folder that later processes reuse.

A file is written under a temporary name and renamed, so that it is complete or absent.
"""

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

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
    except OSError as error:
        raise JudgeBayesError(
            f"{str(path)!r} cannot be written: {error.strerror or error}. Finished parts are not lost: "
            "free some space, or choose another folder, and run the same command again."
        ) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
