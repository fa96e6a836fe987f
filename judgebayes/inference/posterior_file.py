"""Checks of a netCDF file before and after it is read: a posterior may come from anywhere."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np

from judgebayes.errors import JudgeBayesError

__all__ = ["check_draws", "check_size"]

SMALL_BYTES = 128 * 2**20
"""A posterior of at most this size in memory is read, however small its file is."""
MOST_RATIO = 100
"""The largest ratio of the size in memory to that of the file: draws cannot be packed well."""
NUMBERS = "fiub"


def check_size(path: Path) -> None:
    """Refuse a file whose arrays would need far more memory than it has bytes, before they are read.

    Raises
    ------
    JudgeBayesError
        If the file is too large in memory.
    OSError
        If it is not an HDF5 file.
    """
    size = 0

    def add(_: str, node: Any) -> None:
        nonlocal size
        if isinstance(node, h5py.Dataset):
            size += int(np.prod(node.shape or (), dtype=object)) * node.dtype.itemsize

    with h5py.File(path, "r") as file:
        file.visititems(add)
    most = max(SMALL_BYTES, MOST_RATIO * path.stat().st_size)
    if size > most:
        raise JudgeBayesError(
            f"{str(path)!r} would need {size / 2**20:,.0f} MiB of memory, and its size allows "
            f"{most / 2**20:,.0f} MiB: this is no posterior that `judgebayes posterior` wrote."
        )


def check_draws(posterior: Any, path: Path) -> None:
    """Check that every variable of a posterior has a number for each chain and draw.

    Raises
    ------
    JudgeBayesError
        If there is none, or for the first variable that has not.
    """
    for name, values in posterior.data_vars.items():
        right = tuple(values.dims[:2]) == ("chain", "draw") and values.size
        if not right or values.dtype.kind not in NUMBERS:
            raise JudgeBayesError(
                f"Variable {name!r} of {str(path)!r} has the axes {', '.join(map(str, values.dims))} "
                f"and the type {values.dtype}; it must have a number for each chain and draw."
            )
    if not posterior.data_vars:
        raise JudgeBayesError(f"{str(path)!r} has no draws.")
