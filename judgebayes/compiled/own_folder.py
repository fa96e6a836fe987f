"""The user's own folder of compiled programs.

Programs that are read from it are run, so nobody else may write there. A folder that several users share
is used only where the environment names it.
"""

import os
import stat
from pathlib import Path

from judgebayes.errors import JudgeBayesError

__all__ = ["own_folder"]

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def own_folder(path: Path) -> Path:
    """Return the folder, made for this user alone (mode 0700) if it does not exist.

    Raises
    ------
    OSError
        If it cannot be made.
    JudgeBayesError
        If it belongs to another user, others may write to it, or it is a link.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise JudgeBayesError(f"{str(path)!r} is no folder.")
    if hasattr(os, "getuid"):
        if status.st_uid != os.getuid():
            raise JudgeBayesError(f"{str(path)!r} belongs to another user.")
        if status.st_mode & OTHERS_WRITE:
            raise JudgeBayesError(f"Other users may write to {str(path)!r}.")
    return path
