"""Chunks of a posterior whose length is not that of their array: refused, and never read."""

import zlib
from pathlib import Path

import h5py
import numpy as np
import pytest

from judgebayes.errors import JudgeBayesError
from judgebayes.inference.posterior_chunks import check_chunks
from judgebayes.inference.posterior_file import SMALL_BYTES, check_size

SHAPE = (4, 100)
BYTES = 8 * 4 * 100


def written(path: Path, chunk: bytes | None = None, **options: object) -> Path:
    """Write a file with one array, whose only chunk is given in bytes or has random numbers."""
    with h5py.File(path, "w") as file:
        array = file.create_dataset("posterior/a", SHAPE, "f8", chunks=SHAPE, **options)
        if chunk is None:
            array[...] = np.random.default_rng(0).normal(size=SHAPE)
        else:
            array.id.write_direct_chunk((0, 0), chunk)
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
    check_chunks(written(tmp_path / "p.nc", **options))


def test_chunks_beyond_the_edge_of_their_array_and_texts_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "p.nc"
    with h5py.File(path, "w") as file:
        file.create_dataset("a", data=np.zeros((5, 7)), chunks=(4, 4), compression="gzip")
        names = np.array(["ann", "a much longer name"] * 9, dtype=object)
        file.create_dataset("names", data=names, dtype=h5py.string_dtype(), chunks=(4,))
        file.create_dataset("empty", (0, 3), "f8", chunks=(1, 3), maxshape=(None, 3))
        file["number"] = 1.0
    check_chunks(path)


@pytest.mark.parametrize("length", [1, 8, BYTES - 8, BYTES + 8])
@pytest.mark.parametrize("packed", [False, True])
def test_a_chunk_of_another_length_is_refused(tmp_path: Path, length: int, packed: bool) -> None:
    chunk = bytes(length)
    path = written(
        tmp_path / "p.nc",
        zlib.compress(chunk) if packed else chunk,
        compression="gzip" if packed else None,
    )
    with pytest.raises(JudgeBayesError, match=r"'posterior/a' in .* not stored as"):
        check_chunks(path)


@pytest.mark.parametrize("filters", [{"scaleoffset": 3}, {"compression": "lzf"}])
def test_other_filters_are_refused(tmp_path: Path, filters: dict[str, object]) -> None:
    with pytest.raises(JudgeBayesError, match="not stored as"):
        check_chunks(written(tmp_path / "p.nc", **filters))


def test_a_chunk_that_is_no_zlib_stream_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JudgeBayesError, match="not stored as"):
        check_chunks(written(tmp_path / "p.nc", bytes(50), compression="gzip"))


def test_the_memory_of_a_chunk_counts_where_it_is_larger_than_its_array(tmp_path: Path) -> None:
    path = tmp_path / "p.nc"
    with h5py.File(path, "w") as file:
        huge = (SMALL_BYTES // 8 + 1,)
        file.create_dataset("a", (1,), "f8", chunks=huge, maxshape=(None,), compression="gzip")
    with pytest.raises(JudgeBayesError, match="MiB of memory"):
        check_size(path)
