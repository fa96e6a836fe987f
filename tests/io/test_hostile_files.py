"""Files that lie about themselves: refused in one sentence, and without their content in memory."""

import csv
import io
import json
import struct
import tracemalloc
import zipfile
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pytest

from judgebayes.errors import JudgeBayesError
from judgebayes.io.inspect_log import read_inspect
from judgebayes.io.options import Options
from judgebayes.io.records import read_json, read_lines
from judgebayes.io.tables import read_table

REAL, STATED = 60 * 2**20, 200


def lying_archive() -> bytes:
    """Return an archive whose member unpacks to far more bytes than it states."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", b" " * REAL)
    content = buffer.getvalue()
    return content.replace(struct.pack("<I", REAL), struct.pack("<I", STATED))


def test_an_archive_that_lies_about_its_size(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    path.write_bytes(lying_archive())
    assert len(path.read_bytes()) < REAL / 500
    tracemalloc.start()
    with pytest.raises(JudgeBayesError, match="damaged archive"):
        read_inspect(path, Options())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < REAL / 4


def test_two_fields_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"item": 1, "vote": 1}\n{"item": 2, "vote": 1, "vote": 0}\n')
    with pytest.raises(JudgeBayesError, match=r"Line 2 of .* two fields named 'vote'"):
        list(read_lines(tmp_path / "a.jsonl", None))
    (tmp_path / "a.json").write_text('{"a": {"b": 1, "b": 1}}')
    with pytest.raises(JudgeBayesError, match="two fields named 'b'"):
        read_json(tmp_path / "a.json")
    (tmp_path / "a.json").write_text(json.dumps({"a": {"b": 1}, "b": 1}))
    assert read_json(tmp_path / "a.json") == {"a": {"b": 1}, "b": 1}


def test_a_header_with_an_endless_cell(tmp_path: Path) -> None:
    before = csv.field_size_limit(131_072)
    (tmp_path / "a.csv").write_text("item,vote," + "x" * 200_000 + "\n1,1,1\n")
    with pytest.raises(JudgeBayesError, match="more than 131,072 characters"):
        read_table(tmp_path / "a.csv")
    csv.field_size_limit(before)


def test_decimals_of_parquet_are_numbers(tmp_path: Path) -> None:
    votes = [Decimal("1.00"), None, Decimal("0.00")]
    pd.DataFrame({"item": [1, 2, 3], "vote": votes}).to_parquet(tmp_path / "a.parquet")
    read = read_table(tmp_path / "a.parquet")
    assert read["vote"].dtype == float
    assert read["vote"].fillna(-1).tolist() == [1.0, -1.0, 0.0]
