"""Small files that stand for large tables: refused in one sentence, before memory is taken for them."""

import gzip
import tracemalloc
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import judgebayes as jb
from judgebayes.errors import JudgeBayesError
from judgebayes.io.records import read_json
from judgebayes.io.tables import read_table

MOST = 60e6


def memory_of_refusal(path: Path, match: str) -> int:
    """Read a table that must be refused; return the most bytes that this took, Python's or Arrow's."""
    pa.default_memory_pool().release_unused()
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    with pytest.raises(JudgeBayesError, match=match):
        read_table(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return max(peak, pa.total_allocated_bytes() - before)


def parquet(path: Path, cells: pa.DictionaryArray, groups: int) -> None:
    """Write a table of equal cells in several groups of rows."""
    table = pa.table({"item": cells, "judge": cells, "vote": cells})
    with pq.ParquetWriter(path, table.schema) as file:
        for _ in range(groups):
            file.write_table(table)


def test_equal_cells_of_parquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    n = 1_000_000
    parquet(path, pa.DictionaryArray.from_arrays(pa.array([0] * n, pa.int32()), ["x"]), 15)
    assert path.stat().st_size * 1000 < 15 * n * 3 * 8
    assert (
        memory_of_refusal(
            path, r"has 15,000,000 rows and needs .* its size suggests at most 0.2 GiB"
        )
        < MOST
    )
    with pytest.raises(JudgeBayesError, match="15,000,000 rows"):  # read in pieces
        jb.read(path)


def test_a_table_that_packs_well_is_read(tmp_path: Path) -> None:
    items, votes = [f"i{n // 10}" for n in range(50_000)], [n % 2 for n in range(50_000)]
    table = pd.DataFrame({"item": items, "judge": "j", "vote": votes, "note": [None] * 50_000})
    table.to_parquet(tmp_path / "a.parquet")
    read = read_table(tmp_path / "a.parquet")
    assert read["item"].tolist() == items
    assert read["note"].isna().all()


def test_an_endless_gzip(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"item,judge,vote\nx,j,1\n" + b"\n" * (70 * 2**20), 1))
    assert memory_of_refusal(path, "more than 100 times as large when unpacked") < MOST


def test_a_large_json_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judgebayes.io.records.MAX_JSON_BYTES", 300)
    (tmp_path / "a.json").write_text("[" + "[]," * 200 + "[]]")
    with pytest.raises(JudgeBayesError, match="a JSON file may have at"):
        read_json(tmp_path / "a.json")
