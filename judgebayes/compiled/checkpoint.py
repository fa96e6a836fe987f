"""Parts of a sweep kept in a folder as they are done, so that a run that was killed goes on.

A part is what a method answered on some splits. Its file is found again by all that its numbers come
from (`digest_of`): the method and its settings, the votes, labels, splits and random keys, this
package's source and the versions of what computes. Files are plain arrays (`.npz`, nothing is
executed). Several processes may use one folder: they would write the same bytes.
"""

from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import numpy as np

from judgebayes.compiled.store import atomically, read_or_none

__all__ = ["kept_part"]

PART = ".npz"

Arrays = dict[str, np.ndarray]


def kept_part(folder: Path, name: str, make: Callable[[], Arrays]) -> Arrays:
    """Return the arrays of a part: those kept under its name, else what `make` returns, now kept.

    Raises
    ------
    JudgeBayesError
        If the folder cannot be written to, or the disk is full; parts kept before stay.
    """
    path = folder / f"{name}{PART}"
    found = read_or_none(path, _arrays)
    if found is None:
        found = make()
        with atomically(path, new_folder=True) as beside, beside.open("wb") as file:
            np.savez(file, allow_pickle=False, **found)
    return found


def _arrays(file: BinaryIO) -> Arrays:
    with np.load(file, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}
