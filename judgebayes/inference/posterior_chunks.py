"""The check that every chunk of a netCDF file has the bytes that its array needs."""

import zlib
from pathlib import Path

import h5py
import numpy as np

from judgebayes.errors import JudgeBayesError

__all__ = ["check_chunks"]

DEFLATE, SHUFFLE, CHECKSUM = (
    h5py.h5z.FILTER_DEFLATE,
    h5py.h5z.FILTER_SHUFFLE,
    h5py.h5z.FILTER_FLETCHER32,
)
CHECKSUM_BYTES = 4
TEXT_BYTES = 16
"""What a text of any length needs in a chunk: its length, and where it is in the file."""


def check_chunks(path: Path) -> None:
    """Refuse a file with a chunk that is shorter or longer than its array says.

    Up to version 2.0, the HDF5 library copies a whole chunk also from a shorter one. The numbers then
    are what lies behind it in memory (CVE-2025-44904). Filters other than compression by zlib, shuffling
    and checksums are refused as well: no posterior needs them, and their code had similar faults.

    Raises
    ------
    JudgeBayesError
        For the first array with such a chunk or filter.
    """
    bytes_of_file = path.stat().st_size

    def damaged(name: str, node: h5py.Group | h5py.Dataset) -> str | None:
        whole = not isinstance(node, h5py.Dataset) or _whole(node, bytes_of_file)
        return None if whole else name

    with h5py.File(path, "r") as file:
        name = file.visititems(damaged)
    if name is not None:
        raise JudgeBayesError(
            f"The numbers of {name!r} in {str(path)!r} are not stored as `judgebayes posterior` stores "
            "them: copy the file again, or use another."
        )


def _whole(array: h5py.Dataset, bytes_of_file: int) -> bool:
    """Return whether all chunks of an array have the right length."""
    if array.chunks is None:
        return True
    properties = array.id.get_create_plist()
    filters = [properties.get_filter(i)[0] for i in range(properties.get_nfilters())]
    if not {*filters} <= {DEFLATE, SHUFFLE, CHECKSUM}:
        return False
    each = TEXT_BYTES if array.dtype.kind == "O" else array.dtype.itemsize
    size = int(np.prod(array.chunks, dtype=object)) * each
    for i in range(array.id.get_num_chunks()):
        chunk = array.id.get_chunk_info(i)
        if chunk.byte_offset is None or chunk.byte_offset + chunk.size > bytes_of_file:
            return False
        applied = [kind for j, kind in enumerate(filters) if not chunk.filter_mask >> j & 1]
        if not applied:  # not read, because the library returns as many bytes as it expects
            length: int | None = chunk.size
        else:
            length = _length(array.id.read_direct_chunk(chunk.chunk_offset)[1], applied, size)
        if length != size:
            return False
    return True


def _length(stored: bytes, filters: list[int], size: int) -> int | None:
    """Return the length of a chunk without its filters, None if they cannot be undone.

    What is longer than expected is not unpacked to its end.
    """
    for kind in reversed(filters):
        if kind == CHECKSUM:
            stored = stored[:-CHECKSUM_BYTES]
        elif kind == DEFLATE:
            try:
                stored = zlib.decompressobj().decompress(stored, size + CHECKSUM_BYTES + 1)
            except zlib.error:
                return None
    return len(stored)
