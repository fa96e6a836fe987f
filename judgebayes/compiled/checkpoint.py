"""Checkpoints of a sweep: each finished part is stored in a folder, so that a killed run can resume.

A part is the result of a method on some splits. The name of its file is a digest of all inputs
(`digest_of`): the method and its settings, the votes, labels, splits and random keys, this package's
source and the versions of the numerical libraries. The first line of a file is the digest of the rest,
which are plain arrays (`.npz`; nothing is executed). Several processes may use one folder, because they
write the same bytes.

A file is not believed: a part with another digest, with arrays of other names, shapes or kinds, or with
an array that has fewer bytes than it says is made again.
"""

import hashlib
import io
import zipfile
from collections.abc import Callable, Mapping
from functools import partial
from math import prod
from pathlib import Path
from typing import BinaryIO

import numpy as np

from judgebayes.compiled.store import atomically, read_or_none
from judgebayes.errors import JudgeBayesError

__all__ = ["Shapes", "kept_part"]

PART = ".part"
NUMBERS = "fiub"
"""Kinds of arrays: floats, whole numbers, booleans."""

Arrays = dict[str, np.ndarray]
Shapes = Mapping[str, tuple[int, ...]]


def kept_part(
    folder: Path, name: str, make: Callable[[], Arrays], shapes: Shapes | None = None
) -> Arrays:
    """Return the arrays of a part: from its file, or else from `make`, whose result is then stored.

    Parameters
    ----------
    folder, name
        The folder of the files, and the name of the part in it.
    make
        The function that makes the arrays.
    shapes
        The shape of each array, where they are known before.

    Raises
    ------
    JudgeBayesError
        If the folder cannot be written to, something else has the name of the part, or the disk is full;
        parts stored before remain.
    """
    path = folder / f"{name}{PART}"
    arrays = read_or_none(path, partial(_arrays, shapes=shapes))
    if arrays is None:
        if path.exists() and not path.is_file():  # writing into a pipe would wait for its reader
            raise JudgeBayesError(f"{str(path)!r} is a folder, pipe or device; remove it.")
        arrays = make()
        content = io.BytesIO()
        np.savez(content, allow_pickle=False, **arrays)
        with atomically(path, new_folder=True) as temporary:
            temporary.write_bytes(_digest(content.getvalue()) + b"\n" + content.getvalue())
    return arrays


def _arrays(file: BinaryIO, shapes: Shapes | None) -> Arrays:
    """Return the arrays in a file.

    Raises
    ------
    ValueError
        If the file was changed, or its arrays are others.
    """
    digest, content = file.readline().strip(), file.read()
    if digest != _digest(content):
        raise ValueError("the file was changed")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        own = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
        if shapes is not None and own.keys() != shapes.keys():
            raise ValueError("the arrays have other names")
        for name, member in own.items():
            shape = _stored_shape(archive, member)
            if shapes is not None and shape != shapes[name]:
                raise ValueError("an array has another shape")
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in own}


def _stored_shape(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> tuple[int, ...]:
    """Return the shape of an array, checked before memory is allocated for it.

    Raises
    ------
    ValueError
        If the array has no numbers, or fewer bytes than its shape needs.
    """
    with archive.open(member) as file:
        if np.lib.format.read_magic(file) != (1, 0):
            raise ValueError("the array has another version")
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        header = file.tell()
    packed = member.compress_type != zipfile.ZIP_STORED
    if (
        packed
        or dtype.kind not in NUMBERS
        or header + prod(shape) * dtype.itemsize != member.file_size
    ):
        raise ValueError("the array is not as it was stored")
    return shape


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()
