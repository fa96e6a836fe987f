import gzip
from pathlib import Path

import pandas as pd
import pytest

from judgebayes.errors import JudgeBayesError
from judgebayes.io.tables import check_writable, notes_of, read_table, write_table

TABLE = pd.DataFrame({"item": ["x", "y"], "vote": [1, -1]})


@pytest.mark.parametrize(
    "suffix", ["csv", "tsv", "jsonl", "ndjson", "parquet", "csv.gz", "jsonl.gz"]
)
def test_tables_round_trip(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t.{suffix}"
    write_table(TABLE, path)
    pd.testing.assert_frame_equal(read_table(path).reset_index(drop=True), TABLE, check_dtype=False)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "item;vote\nx;1\ny;-1\n"),
        ("a.csv", "\ufeffitem,vote\r\nx,1\r\ny,-1\r\n"),
        ("a.csv", "item\tvote\nx\t1\ny\t-1\n"),
        ("a.csv", " item , vote \nx,1\n\ny,-1\n"),
        ("a.jsonl", '{"item": "x", "vote": 1}\n\n{"item": "y", "vote": -1}\n'),
        ("A.CSV", "item,vote\nx,1\ny,-1\n"),
    ],
)
def test_dialects_of_spreadsheets_are_read(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    table = read_table(tmp_path / name)
    assert table["item"].tolist() == ["x", "y"]
    assert table["vote"].tolist() == [1, -1]


def test_words_that_look_like_missing_are_kept_as_text(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("item,vote\nNA,1\nnull,\n")
    table = read_table(tmp_path / "a.csv")
    assert table["item"].tolist() == ["NA", "null"]
    assert table["vote"].isna().tolist() == [False, True]


def test_a_list_of_objects_is_a_table(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"item": "007", "vote": 2.10}, {"item": 7, "vote": 1}]')
    assert read_table(tmp_path / "a.json").to_numpy().tolist() == [["007", "2.10"], [7, 1]]


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.csv", b"", "is empty; the first line"),
        ("a.csv", b"item,vote\n", "has no rows"),
        ("a.csv", b"item,vote\n\xff\xfe,1\n", "not UTF-8"),
        ("a.csv", b"item,vote\nx,1,2,3\ny,1\n", "more cells than the header"),
        ("a.jsonl", b'{"item": 1}\n{"item": \n', "Line 2 of .* is not JSON"),
        ("a.jsonl", b"[1, 2]\n", "Line 1 of .* is not an object but list"),
        ("a.parquet", b"PAR1 not really", "cannot be read as parquet"),
        ("a.doc", b"x", "no known suffix; choose one of: .csv"),
        ("a", b"x", "no known suffix"),
        ("a.zip", b"x", "is an archive: unpack it"),
        ("a.json", b'{"a": [1]}', "is no list of objects, and no known tool writes it"),
        ("a.csv", b"item, item\n1,2\n", "two columns named 'item'"),
        ("b.csv", b"item;vote;vote\n1;0;1\n", "two columns named 'vote'"),
    ],
)
def test_bad_files_are_reported_in_one_sentence(
    tmp_path: Path, name: str, content: bytes, sentence: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(JudgeBayesError, match=sentence) as caught:
        read_table(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(JudgeBayesError, match="There is no file"):
        read_table(tmp_path / "none.csv")


def test_unwritable_paths_are_reported_beforehand(tmp_path: Path) -> None:
    check_writable(None)
    check_writable(tmp_path / "a.csv")
    check_writable(tmp_path / "a.json", table=False)
    with pytest.raises(JudgeBayesError, match="no known suffix"):
        check_writable(tmp_path / "a.doc")
    with pytest.raises(JudgeBayesError, match=r"There is no folder '.*/none' to write 'a.csv' to"):
        check_writable(tmp_path / "none" / "a.csv")
    with pytest.raises(JudgeBayesError, match="is a folder; name a file in it"):
        check_writable(tmp_path, table=False)
    with pytest.raises(JudgeBayesError, match="is a folder; name a file in it"):
        read_table(tmp_path)


def test_formulas_are_escaped(tmp_path: Path) -> None:
    hostile = pd.DataFrame({"item": ["=1+1", "+x", "@a", "-5", "<b>"], "p": [0.5] * 5})
    write_table(hostile, tmp_path / "a.csv")
    text = (tmp_path / "a.csv").read_text()
    assert "'=1+1" in text
    assert "'@a" in text
    assert "\n-5," in text  # a number stays a number


def test_gz_files_are_gzip(tmp_path: Path) -> None:
    write_table(TABLE, tmp_path / "a.csv.gz")
    with gzip.open(tmp_path / "a.csv.gz") as file:
        assert file.read().startswith(b"item")


@pytest.mark.parametrize(
    ("last", "kept"), [("mean,0,1", True), ("Total,17,9", False), ("Total,,", True)]
)
def test_a_last_row_is_left_out_if_it_sums_the_others(
    last: str, kept: bool, tmp_path: Path
) -> None:
    """An item may be called mean: its cells are votes as above it."""
    path = tmp_path / "v.csv"
    path.write_text(f"item,a,b\nx,1,0\ny,0,1\nz,1,1\n{last}\n")
    table = read_table(path)
    assert (len(table) == 4) == kept
    assert any("is no item" in note for note in notes_of(table)) == (not kept)
