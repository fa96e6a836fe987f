"""Files that the HDF5 library would read wrongly, or not survive: each ends in a sentence."""

import signal
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import h5py
import numpy as np
import pytest

from judgebayes.errors import JudgeBayesError
from judgebayes.inference import posterior_file, posterior_probe
from judgebayes.inference.posterior_file import check_file
from judgebayes.inference.posterior_probe import SMALL_BYTES, Refused, check

SHAPE = (4, 100)
BYTES = 8 * 4 * 100


def written(path: Path, chunk: bytes | None = None, **options: object) -> Path:
    """Write a file with one array, whose only chunk is given in bytes or has random numbers."""
    with h5py.File(path, "w") as file:
        array = file.create_dataset("posterior/a", SHAPE, "f8", chunks=SHAPE, **options)
        if chunk is None:
            array[...] = np.random.default_rng(0).integers(0, 5, size=SHAPE)
        else:
            array.id.write_direct_chunk((0, 0), chunk)
    return path


def of_type(path: Path, kind: h5py.h5t.TypeID, attribute: bool = False) -> Path:
    """Write a file with an array or an attribute of a low-level type."""
    with h5py.File(path, "w") as file:
        if attribute:
            h5py.h5a.create(file.id, b"a", kind, h5py.h5s.create(h5py.h5s.SCALAR))
        else:
            h5py.h5d.create(file.id, b"a", kind, h5py.h5s.create_simple((3,)))
    return path


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"compression": "gzip"},
        {"compression": "gzip", "shuffle": True},
        {"compression": "gzip", "shuffle": True, "fletcher32": True},
        {"fletcher32": True},
        {"compression": "gzip", "maxshape": (None, 200)},
    ],
)
def test_whole_chunks_are_accepted(tmp_path: Path, options: dict[str, object]) -> None:
    check(written(tmp_path / "p.nc", **options))


@pytest.mark.parametrize("version", ["earliest", "latest"])
def test_every_kind_of_array_that_netcdf_has_is_accepted(tmp_path: Path, version: str) -> None:
    path = tmp_path / "p.nc"
    rng = np.random.default_rng(0)
    with h5py.File(path, "w", libver=version) as file:
        for name in ("i1", "u2", ">i4", "i8", "f2", ">f4", "f8", "g", "S5", "?"):
            values = rng.integers(0, 2, size=(5, 7)).astype(name)
            file.create_dataset(f"whole {name}", data=values)
            for shuffle in (False, True):
                file.create_dataset(
                    f"in chunks {name} {shuffle}",
                    data=values,
                    chunks=(4, 3),
                    shuffle=shuffle,
                    compression="gzip",
                )
        names = np.array(["ann", "a much longer name"] * 9, dtype=object)
        file.create_dataset("names", data=names, dtype=h5py.string_dtype(), chunks=(4,))
        file.create_dataset("empty", (0, 3), "f8", chunks=(1, 3), maxshape=(None, 3))
        file["number"] = 1.0
        file["by another name"] = file["number"]
        axis = file.create_dataset("axis", data=np.arange(7))
        axis.make_scale("axis")
        file["whole f8"].dims[1].attach_scale(axis)
        length = file.create_dataset("length", (5,), ">f4")
        length.make_scale("This is a netCDF dimension but not a netCDF variable.         5")
        file["whole f8"].dims[0].attach_scale(length)
        file.attrs["words"] = ["several", "words"]
        file.attrs["numbers"] = np.arange(3.0)
    check_file(path)


@pytest.mark.parametrize("length", [1, 8, BYTES - 8, BYTES + 8])
@pytest.mark.parametrize("packed", [False, True])
def test_a_chunk_of_another_length_is_refused(tmp_path: Path, length: int, packed: bool) -> None:
    """The library fills a short chunk from elsewhere in memory (CVE-2025-44904)."""
    chunk = bytes(length)
    path = written(
        tmp_path / "p.nc",
        zlib.compress(chunk) if packed else chunk,
        compression="gzip" if packed else None,
    )
    with pytest.raises(JudgeBayesError, match=r"posterior/a' in .* damaged|cannot read it"):
        check_file(path)


@pytest.mark.parametrize("filters", [{"scaleoffset": 3}, {"compression": "lzf"}])
def test_other_filters_are_refused(tmp_path: Path, filters: dict[str, object]) -> None:
    with pytest.raises(Refused, match="not stored as"):
        check(written(tmp_path / "p.nc", **filters))


def test_a_shuffle_of_other_bytes_is_refused(tmp_path: Path) -> None:
    """The length of a number is a parameter of the filter: here it is patched."""
    path = written(tmp_path / "p.nc", shuffle=True)
    data = bytearray(path.read_bytes())
    place = data.find(b"shuffle\0") + len(b"shuffle\0")
    assert data[place] == 8
    data[place] = 4
    path.write_bytes(data)
    with pytest.raises(Refused, match="damaged"):
        check(path)


def test_numbers_that_were_never_written_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.nc"
    for chunks in (None, (2, 100)):
        with h5py.File(path, "w") as file:
            array = file.create_dataset("a", SHAPE, "f8", chunks=chunks)
            if chunks:
                array[:2] = 1.0
        with pytest.raises(Refused, match="damaged"):
            check(path)


def test_an_array_that_is_smaller_than_its_axes_is_refused(tmp_path: Path) -> None:
    """It would be filled with zeros."""
    path = tmp_path / "p.nc"
    with h5py.File(path, "w") as file:
        axis = file.create_dataset("draw", data=np.arange(50))
        axis.make_scale("draw")
        file.create_dataset("a", data=np.ones(5)).dims[0].attach_scale(axis)
    with pytest.raises(Refused, match=r"shape of 'a' in .* is not that of its axes"):
        check(path)


def wide_boolean() -> h5py.h5t.TypeID:
    kind = h5py.h5t.enum_create(h5py.h5t.STD_I64LE)
    kind.enum_insert(b"FALSE", 0)
    kind.enum_insert(b"TRUE", 1)
    return kind


def wide_integer() -> h5py.h5t.TypeID:
    kind = h5py.h5t.STD_I64LE.copy()
    kind.set_size(512)
    kind.set_precision(4096)
    return kind


def record() -> h5py.h5t.TypeID:
    kind = h5py.h5t.create(h5py.h5t.COMPOUND, 1000)
    kind.insert(b"r", 0, h5py.h5t.IEEE_F64LE)
    kind.insert(b"i", 992, h5py.h5t.IEEE_F64LE)
    return kind


TYPES = {
    "a boolean of eight bytes": wide_boolean,
    "an integer of 512 bytes": wide_integer,
    "a record": record,
    "a sequence": lambda: h5py.h5t.vlen_create(h5py.h5t.IEEE_F64LE),
    "texts in an array": lambda: h5py.h5t.array_create(
        h5py.h5t.py_create(h5py.string_dtype(), logical=True), (4,)
    ),
    "a reference to a region": lambda: h5py.h5t.STD_REF_DSETREG.copy(),
}


@pytest.mark.parametrize("what", TYPES)
@pytest.mark.parametrize("attribute", [False, True])
def test_types_that_no_posterior_has_are_refused(
    tmp_path: Path, what: str, attribute: bool
) -> None:
    path = of_type(tmp_path / "p.nc", TYPES[what](), attribute)
    with pytest.raises(Refused, match="number"):
        check(path)


def test_a_type_with_a_name_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.nc"
    with h5py.File(path, "w") as file:
        file["kind"] = np.dtype("f8")
    with pytest.raises(Refused, match="neither numbers nor texts"):
        check(path)


def test_the_memory_of_a_chunk_counts_where_it_is_larger_than_its_array(tmp_path: Path) -> None:
    path = tmp_path / "p.nc"
    with h5py.File(path, "w") as file:
        huge = (SMALL_BYTES // 8 + 1,)
        file.create_dataset("a", (1,), "f8", chunks=huge, maxshape=(None,), compression="gzip")
    with pytest.raises(Refused, match="MiB of memory"):
        check(path)


@pytest.mark.parametrize(("head", "child"), [(b"TREE\0", 32), (b"TREE\1", 24 + 8 + 24)])
def test_a_tree_that_contains_itself_ends_another_process(
    tmp_path: Path, head: bytes, child: int
) -> None:
    """The library follows it until its stack is full."""
    path = tmp_path / "p.nc"
    with h5py.File(path, "w", libver=("earliest", "v108")) as file:
        file.create_dataset("posterior/a", data=np.ones(SHAPE), chunks=(4, 50))
    data = bytearray(path.read_bytes())
    tree = data.find(head)
    data[tree + 5] = 1
    struct.pack_into("<Q", data, tree + child, tree)
    path.write_bytes(data)
    with pytest.raises(JudgeBayesError, match="the HDF5 library cannot read it"):
        check_file(path)


def test_texts_that_fill_the_memory_end_another_process(tmp_path: Path) -> None:
    """Two thousand names of a million letters, which are one text in the file."""
    path, count = tmp_path / "p.nc", 2000
    with h5py.File(path, "w") as file:
        names = file.create_dataset("names", (count,), dtype=h5py.string_dtype())
        names[0] = "M" * 10**6
        place = names.id.get_offset()
    data = bytearray(path.read_bytes())
    data[place : place + 16 * count] = data[place : place + 16] * count
    path.write_bytes(data)
    with pytest.raises(JudgeBayesError, match="the HDF5 library cannot read it"):
        check_file(path)


def endless(path: Path) -> Path:
    """Write a file with a heap whose free space has no length: the library reads it without end."""
    with h5py.File(path, "w") as file:
        file.create_dataset("names", data=["a", "b"], dtype=h5py.string_dtype())
    data = bytearray(path.read_bytes())
    at = data.find(b"GCOL") + 16
    while int.from_bytes(data[at : at + 2], "little"):
        at += 16 + -(-int.from_bytes(data[at + 8 : at + 16], "little") // 8) * 8
    data[at + 8 : at + 16] = bytes(8)
    path.write_bytes(data)
    return path


def test_a_file_that_is_read_without_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the heap had not been noticed before."""
    monkeypatch.setattr(posterior_file, "SECONDS", 2)
    monkeypatch.setattr(posterior_file, "check_heaps", lambda path: None)
    with pytest.raises(JudgeBayesError, match="was not read in 2 s"):
        check_file(endless(tmp_path / "p.nc"))


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
def test_the_other_process_ends_by_itself_where_its_parent_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-P", posterior_probe.__file__, endless(tmp_path / "p.nc"), "1"]
    assert subprocess.run(command, check=False, timeout=30).returncode == -signal.SIGALRM
