"""Checkpoints of a sweep: each finished part is stored in a folder, so that a killed run can resume.

A part is the result of a method on some splits. The name of its file is a digest of all inputs
(`digest_of`): the method and its settings, the votes, labels, splits and random keys, this package's
source and the versions of the numerical libraries. Files are plain arrays (`.npz`, nothing is
executed). Several processes may use one folder, because they write the same bytes.
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
    """Return the arrays of a part: from its file, or else from `make`, whose result is then stored.

    Raises
    ------
    JudgeBayesError
        If the folder cannot be written to, or the disk is full; parts stored before remain.
    """
    path = folder / f"{name}{PART}"
    arrays = read_or_none(path, _arrays)
    if arrays is None:
        arrays = make()
        with atomically(path, new_folder=True) as temporary, temporary.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
    return arrays


def _arrays(file: BinaryIO) -> Arrays:
    with np.load(file, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}
