"""Read a whole netCDF file in a process of its own: `python posterior_probe.py FILE SECONDS`.

The HDF5 library has faults with files that are damaged or made to harm: it crashes, does not end, fills
the memory, or takes numbers from elsewhere in memory (SECURITY.md). Such a file does so here first, with
limited memory and time, and not in the user's process. What the library reads is compared with the bytes
of the file, so that a file which passes has the numbers that it is read with.

The process ends with status 0 for a whole file, and with `REFUSED` and a sentence for another. It does
not import judgebayes, to start in a third of a second.
"""

import contextlib
import signal
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np

REFUSED = 3
SMALL_BYTES = 128 * 2**20
"""A posterior of at most this size in memory is read, however small its file is."""
MOST_RATIO = 100
"""The largest ratio of the size in memory to that of the file: draws cannot be packed well."""
ATTRIBUTE_BYTES = 2**20
MOST_CHUNKS = 10**6
SPARE_BYTES, COPIES = 2**29, 4
"""The memory that the process may use: copies of the numbers, and what the library needs besides."""
DIMENSION = b"This is a netCDF dimension but not a netCDF variable"
"""How netCDF names a dimension that has a length and no numbers."""
INTEGERS = tuple(
    getattr(h5py.h5t, f"STD_{sign}{8 * size}{order}")
    for sign in "IU"
    for size in (1, 2, 4, 8)
    for order in ("LE", "BE")
)
FLOATS = tuple(
    getattr(h5py.h5t, f"IEEE_F{bits}{order}") for bits in (16, 32, 64) for order in ("LE", "BE")
)


class Refused(Exception):  # noqa: N818  (a sentence, and no error of the program)
    """A sentence on why a file is refused."""


def check(path: Path, limited: bool = False) -> None:
    """Read all of a file, with limited memory if this is a process of its own.

    Raises
    ------
    Refused
        If it is no such file or is not self-contained, needs far more memory than it has bytes, has a
        type that no posterior has, an array whose shape is not that of its axes, or numbers that are not
        in the file.
    """
    if not h5py.is_hdf5(path):
        raise Refused(
            f"{str(path)!r} is no netCDF file of version 4; use a file that `judgebayes posterior` "
            "wrote."
        )
    with h5py.File(path, "r") as file, path.open("rb") as raw:
        arrays, size = _arrays(file, path)
        if limited:
            limit_memory(COPIES * size + SPARE_BYTES)
        for name, array in arrays:
            if not _shaped(array):
                raise Refused(
                    f"The shape of {name!r} in {str(path)!r} is not that of its axes. Sample the "
                    "posterior again."
                )
            if not _same(array, raw, path.stat().st_size):
                raise Refused(
                    f"The numbers of {name!r} in {str(path)!r} are damaged, or are not stored as "
                    "`judgebayes posterior` stores them: copy the file again, or use another."
                )


def _arrays(file: h5py.File, path: Path) -> tuple[list[tuple[str, h5py.Dataset]], int]:
    """Return the arrays of a file with their names, and their size in memory.

    Nothing but the file's structure is read. An array that has several names counts once for each of
    them, because it is read as often.
    """
    arrays, size = [], 0
    most = max(SMALL_BYTES, MOST_RATIO * path.stat().st_size)
    _check_types("/", file, path)
    for name, node in _nodes(file, path):
        _check_types(name, node, path)
        if isinstance(node, h5py.Dataset):
            arrays.append((name, node))
            shapes = (node.shape or (), node.chunks or ())  # a chunk may be larger than its array
            size += max(int(np.prod(x, dtype=object)) for x in shapes) * node.dtype.itemsize
        if size > most:
            raise Refused(
                f"{str(path)!r} would need more than {most / 2**20:,.0f} MiB of memory, which is the "
                "most for a file of its size: this is no posterior that `judgebayes posterior` wrote."
            )
    return arrays, size


def _nodes(file: h5py.File, path: Path) -> Iterator[tuple[str, h5py.Group | h5py.Dataset]]:
    """Yield the groups and arrays of a file with every name that they have."""
    links: list[tuple[str, Any]] = []
    file.visititems_links(lambda name, link: links.append((name, link)))
    for name, link in links:
        hard = isinstance(link, h5py.HardLink)
        opened = h5py.h5o.open(file.id, name.encode()) if hard else None
        if isinstance(opened, h5py.h5t.TypeID) or (
            isinstance(opened, h5py.h5d.DatasetID) and not _known(opened.get_type())
        ):  # asked before h5py translates the type
            raise Refused(
                f"{name!r} in {str(path)!r} has neither numbers nor texts: this is no posterior that "
                "`judgebayes posterior` wrote."
            )
        node = file[name] if hard else None
        if node is None or (isinstance(node, h5py.Dataset) and (node.external or node.is_virtual)):
            raise Refused(
                f"{name!r} in {str(path)!r} is stored elsewhere; a posterior has all of its numbers in "
                "its own file. Use a file that `judgebayes posterior` wrote."
            )
        yield name, node


def _check_types(name: str, node: h5py.Group | h5py.Dataset, path: Path) -> None:
    """Refuse attributes of types that no posterior has, and large ones."""
    for i in range(h5py.h5a.get_num_attrs(node.id)):
        attribute = h5py.h5a.open(node.id, index=i)
        kind, space = attribute.get_type(), attribute.get_space()
        bytes_of_it = kind.get_size() * space.get_simple_extent_npoints()
        if not (_known(kind) or _refers(kind)) or bytes_of_it > ATTRIBUTE_BYTES:
            raise Refused(
                f"The attribute {attribute.name.decode(errors='replace')!r} of {name!r} in "
                f"{str(path)!r} is neither a number nor a short text: this is no posterior that "
                "`judgebayes posterior` wrote."
            )


def _known(kind: Any) -> bool:
    """Return whether a type is a number, a boolean in one byte, or a text."""
    match kind.get_class():
        case h5py.h5t.INTEGER:
            return any(kind.equal(each) for each in INTEGERS)
        case h5py.h5t.FLOAT:
            return any(kind.equal(each) for each in (*FLOATS, h5py.h5t.NATIVE_LDOUBLE))
        case h5py.h5t.STRING:
            return bool(kind.is_variable_str()) or kind.get_size() <= ATTRIBUTE_BYTES
        case h5py.h5t.ENUM:
            return kind.get_size() == 1 and kind.get_nmembers() == 2
    return False


def _refers(kind: Any) -> bool:
    """Return whether a type is that of netCDF's lists of axes: references to arrays."""
    match kind.get_class():
        case h5py.h5t.VLEN:
            return bool(kind.get_super().equal(h5py.h5t.STD_REF_OBJ))
        case h5py.h5t.COMPOUND:
            parts = [kind.get_member_type(i) for i in range(min(kind.get_nmembers(), 3))]
            return (
                len(parts) == 2 and parts[0].equal(h5py.h5t.STD_REF_OBJ) and bool(_known(parts[1]))
            )
    return False


def _shaped(array: h5py.Dataset) -> bool:
    """Return whether an array has the lengths of its axes: it would be padded or cut."""
    for length, axis in zip(array.shape or (), array.dims, strict=True):
        if len(axis) and axis[0].shape != (length,):
            return False
    return True


def _same(array: h5py.Dataset, raw: Any, bytes_of_file: int) -> bool:
    """Return whether the library reads from an array what its bytes in the file say."""
    if array.attrs.get("NAME", b"")[: len(DIMENSION)] == DIMENSION or not array.size:
        return True
    numbers = array[()]
    if array.dtype.kind == "O" or array.id.get_create_plist().get_layout() == h5py.h5d.COMPACT:
        return True  # texts are elsewhere in the file; what is compact is part of the header
    stored = _stored(array, raw, bytes_of_file)
    return stored is not None and np.array_equal(_bytes(stored), _bytes(np.asarray(numbers)))


def _bytes(numbers: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(numbers).reshape(-1).view("u1")


def _stored(array: h5py.Dataset, raw: Any, bytes_of_file: int) -> np.ndarray | None:
    """Return the numbers of an array from the bytes of its file, None if they are not all there."""

    def read(start: int | None, length: int) -> bytes | None:
        if start is None or not 0 <= start <= start + length <= bytes_of_file:
            return None
        raw.seek(start)
        content = raw.read(length)
        return content if len(content) == length else None

    if array.chunks is None:
        content = read(array.id.get_offset(), array.size * array.dtype.itemsize)
        return None if content is None else np.frombuffer(content, array.dtype)
    grid = [-(-length // step) for length, step in zip(array.shape, array.chunks, strict=True)]
    count = int(np.prod(grid, dtype=object))
    if count > MOST_CHUNKS or array.id.get_num_chunks() != count:
        return None
    chunks: list[Any] = []
    array.id.chunk_iter(chunks.append)
    if len({chunk.chunk_offset for chunk in chunks}) != count:
        return None
    properties = array.id.get_create_plist()
    filters = [properties.get_filter(i)[0] for i in range(properties.get_nfilters())]
    whole = np.empty(array.shape, array.dtype)
    for chunk in chunks:
        applied = [kind for i, kind in enumerate(filters) if not chunk.filter_mask >> i & 1]
        content = read(chunk.byte_offset, chunk.size)
        part = None if content is None else unpacked(content, applied, array.chunks, array.dtype)
        if part is None:
            return None
        places = tuple(
            slice(start, min(start + step, length))
            for start, step, length in zip(
                chunk.chunk_offset, array.chunks, array.shape, strict=True
            )
        )
        whole[places] = part[tuple(slice(place.stop - place.start) for place in places)]
    return whole


def unpacked(
    stored: bytes, filters: list[int], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> np.ndarray | None:
    """Return a chunk without its filters; None for an unknown filter or a wrong length.

    What is longer than expected is not unpacked to its end.
    """
    size, checksum = int(np.prod(shape, dtype=object)) * dtype.itemsize, 4
    for kind in reversed(filters):
        if kind == h5py.h5z.FILTER_FLETCHER32:
            stored = stored[:-checksum]
        elif kind == h5py.h5z.FILTER_DEFLATE:
            try:
                stored = zlib.decompressobj().decompress(stored, size + checksum + 1)
            except zlib.error:
                return None
        elif kind == h5py.h5z.FILTER_SHUFFLE and len(stored) % dtype.itemsize == 0:
            stored = np.frombuffer(stored, "u1").reshape(dtype.itemsize, -1).T.tobytes()
        else:
            return None
    return np.frombuffer(stored, dtype).reshape(shape) if len(stored) == size else None


def limit_time(seconds: float) -> None:
    """End this process after these seconds, also within C code and if its parent is gone.

    The system ends it by SIGALRM; Windows has no such signal.
    """
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


def limit_memory(further: int) -> None:
    """Limit the memory that this process may add, where the system can."""
    with contextlib.suppress(ImportError, OSError, ValueError, AttributeError):
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + further
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        limit = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


if __name__ == "__main__":
    file_name, longest = sys.argv[1:]
    limit_time(float(longest))
    limit_memory(SPARE_BYTES)
    try:
        check(Path(file_name), limited=True)
    except Refused as refusal:
        sys.stdout.buffer.write(str(refusal).encode(errors="replace"))
        sys.exit(REFUSED)
