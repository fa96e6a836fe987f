"""Checks of a netCDF file before and after it is read: a posterior may come from anywhere."""

import mmap
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from judgebayes.errors import JudgeBayesError
from judgebayes.inference import posterior_probe

__all__ = ["check_draws", "check_file", "check_heaps"]

NUMBERS = "fiub"
SECONDS, BYTES_PER_SECOND = 10, 10e6
"""How long the library may read a file: so many seconds, and more for a large file."""
HEAP = b"GCOL\x01\0\0\0"
"""How a global heap begins; its size in bytes follows, and then its objects."""


def check_file(path: Path) -> None:
    """Refuse a file that the HDF5 library cannot read safely: it is read in another process first.

    Raises
    ------
    JudgeBayesError
        If that process refuses the file (`judgebayes.inference.posterior_probe`), ends otherwise than
        it should, or does not end.
    """
    check_heaps(path)
    seconds = SECONDS + path.stat().st_size / BYTES_PER_SECOND
    # It also ends by itself, a second later, in case that this process is killed.
    words = [posterior_probe.__file__, str(path.absolute()), str(seconds + 1)]
    command = [sys.executable, "-P", *words]
    try:
        run = subprocess.run(
            command, capture_output=True, timeout=seconds, check=False, encoding="utf-8"
        )
    except subprocess.TimeoutExpired:
        raise JudgeBayesError(
            f"{str(path)!r} was not read in {seconds:.0f} s: it is damaged, or too complicated for a "
            "posterior. Copy it again, or use another file that `judgebayes posterior` wrote."
        ) from None
    if run.returncode == posterior_probe.REFUSED:
        raise JudgeBayesError(run.stdout.strip())
    if run.returncode:
        raise JudgeBayesError(
            f"{str(path)!r} is damaged or needs too much memory, and the HDF5 library cannot read it: "
            "copy it again, or use another file that `judgebayes posterior` wrote."
        )


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
                (size,) = struct.unpack_from("<Q", data, start + len(HEAP))
                start = data.find(HEAP, start + size)


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
