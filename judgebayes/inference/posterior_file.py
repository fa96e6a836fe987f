"""Checks of a netCDF file before and after it is read: a posterior may come from anywhere."""

import mmap
import struct
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from judgebayes.errors import JudgeBayesError

__all__ = ["check_draws", "check_heaps", "check_size"]

SMALL_BYTES = 128 * 2**20
"""A posterior of at most this size in memory is read, however small its file is."""
MOST_RATIO = 100
"""The largest ratio of the size in memory to that of the file: draws cannot be packed well."""
NUMBERS = "fiub"
HEAP = b"GCOL\x01\0\0\0"
"""How a global heap begins; its size in bytes follows, and then its objects."""


def check_heaps(path: Path) -> None:
    """Refuse a file with a damaged global heap, which the HDF5 library may read without end.

    A heap of n bytes has a header of 16 bytes and objects, each with a header of 16 bytes that has the
    object's number and size. Object 0 is the free space, and its size includes its header. The library
    goes from one object to the next; a free space of size 0 keeps it where it is, in C code that no
    signal ends (HDF5 File Format Specification 3.0, III.E).

    Raises
    ------
    JudgeBayesError
        If the objects do not follow one another up to the end of their heap.
    """
    with path.open("rb") as file:
        if not path.stat().st_size:
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            start = data.find(HEAP)
            while start >= 0:
                if not _whole(data, start):
                    raise JudgeBayesError(
                        f"{str(path)!r} is damaged at byte {start:,}: copy it again, or use another "
                        "file that `judgebayes posterior` wrote."
                    )
                start = data.find(HEAP, start + 1)


def _whole(data: mmap.mmap, start: int) -> bool:
    """Return whether the objects of a heap fill it."""
    head = 16
    if start + head > len(data):
        return False
    (size,) = struct.unpack_from("<Q", data, start + len(HEAP))
    at, end = start + head, start + size
    if not at <= end <= len(data):
        return False
    while at + head <= end:  # what is shorter than a header is free
        number, length = struct.unpack_from("<H6xQ", data, at)
        step = head + -(-length // 8) * 8 if number else length
        if step < head:
            return False
        at += step
    return at <= end


def check_size(path: Path) -> None:
    """Refuse a file that is not self-contained, or whose arrays need far more memory than it has bytes.

    Nothing but the file's structure is read. An array that has several names counts once for each of
    them, because it is read as often.

    Raises
    ------
    JudgeBayesError
        If the file refers to other files, has links instead of arrays, or is too large in memory.
    OSError
        If it is not an HDF5 file.
    """
    size = 0

    def add(name: str, link: Any) -> str | None:
        """Add an array's size, or end the visit with the name of one that is not in the file."""
        nonlocal size
        node = file[name] if isinstance(link, h5py.HardLink) else None
        if isinstance(node, h5py.Dataset):
            shapes = (node.shape or (), node.chunks or ())  # a chunk may be larger than its array
            size += max(int(np.prod(x, dtype=object)) for x in shapes) * node.dtype.itemsize
            return name if node.external or node.is_virtual else None
        return name if node is None else None

    with h5py.File(path, "r") as file:
        elsewhere = file.visititems_links(add)
    if elsewhere is not None:
        raise JudgeBayesError(
            f"{elsewhere!r} in {str(path)!r} is stored elsewhere; a posterior has all of its numbers in "
            "its own file. Use a file that `judgebayes posterior` wrote."
        )
    most = max(SMALL_BYTES, MOST_RATIO * path.stat().st_size)
    if size > most:
        raise JudgeBayesError(
            f"{str(path)!r} would need {size / 2**20:,.0f} MiB of memory, and its size allows "
            f"{most / 2**20:,.0f} MiB: this is no posterior that `judgebayes posterior` wrote."
        )


def check_draws(posterior: Any, path: Path) -> None:
    """Check that every variable of a posterior has a finite number for each chain and draw.

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
        wrong = int((~np.isfinite(values.to_numpy())).sum())
        if wrong:
            raise JudgeBayesError(
                f"Variable {name!r} of {str(path)!r} has {wrong:,} of {values.size:,} values that are "
                "not finite; sample the posterior again."
            )
    if not posterior.data_vars:
        raise JudgeBayesError(f"{str(path)!r} has no draws.")
