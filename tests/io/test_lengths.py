"""Cells, lines and tables that are far longer than those of votes: refused in one sentence."""

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from judgebayes.errors import JudgeBayesError
from judgebayes.io import cell_lengths, lengths, parquet, tables
from judgebayes.io.cell_lengths import check_cells
from judgebayes.io.formats import import_votes
from judgebayes.io.lengths import MAX_TEXT, check_cells_before
from judgebayes.io.options import Options
from judgebayes.io.tables import read_table
from judgebayes.votes import encode
from judgebayes.votes.columns import MAX_NAME

HEADER = "item,judge,vote\n"


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts may have 1,000 characters and lines 4,000."""
    for module in (cell_lengths, lengths, tables, parquet):
        monkeypatch.setattr(module, "MAX_TEXT", 1000)
    monkeypatch.setattr(tables, "BLOCK", 500)
    monkeypatch.setattr(lengths, "MAX_LINE", 4000)
    monkeypatch.setattr(parquet, "MAX_MEAN_TEXT", 1000)


def blocks(text: str, size: int) -> Iterator[bytes]:
    file = io.BytesIO(text.encode())
    return iter(lambda: file.read(size), b"")


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("size", [7, 64, 900])
@pytest.mark.parametrize(
    ("cell", "fits"),
    [
        ("x" * 2000, False),
        ('"' + "a, b\n" * 400 + '"', False),
        ('"' + 'a "" b, ' * 300 + '"', False),
        ("x" * 900, True),
        ('"' + "a, b\n" * 150 + '"', True),
        ('""', True),
    ],
)
def test_a_long_cell_is_found_before_it_is_read(cell: str, fits: bool, size: int) -> None:
    text = HEADER + f"a,j,1\nb,j,{cell}\n" + "c,j,0\n" * 300
    if fits:
        check_cells_before(blocks(text, size), ",", "'v.csv'")
    else:
        with pytest.raises(JudgeBayesError, match=r"'v.csv' has a cell of more than 1,000"):
            check_cells_before(blocks(text, size), ",", "'v.csv'")


@pytest.mark.usefixtures("short")
def test_a_long_cell_of_each_format_is_refused(tmp_path: Path) -> None:
    votes, said = ["1", "x" * 2000], []
    (tmp_path / "v.csv").write_text(HEADER + f"a,j,1\nb,j,{votes[1]}\n")
    lines = [json.dumps({"item": "a", "judge": "j", "vote": vote}) for vote in votes]
    (tmp_path / "v.jsonl").write_text("\n".join(lines))
    (tmp_path / "long.jsonl").write_text(lines[1].replace("xx", "xxxxxx"))
    table = pa.table({"item": ["a", "b"], "judge": ["j", "j"], "vote": votes})
    pq.write_table(table, tmp_path / "v.parquet")
    more = pa.concat_tables([table, *[table.slice(0, 1)] * 40])
    pq.write_table(more, tmp_path / "more.parquet")
    for name in ("v.csv", "v.jsonl", "long.jsonl", "v.parquet", "more.parquet"):
        with pytest.raises(JudgeBayesError) as error:
            read_table(tmp_path / name)
        said.append(str(error.value).replace(str(tmp_path), ""))
    assert "has a cell of more than 1,000 characters" in said[0]
    assert "has a text of 2,000 characters" in said[1]
    assert said[2].startswith("Line 1 of '/long.jsonl' has more than 4,000 characters")
    assert "bytes on average" in said[3]
    assert "has a text of 2,000 bytes" in said[4]


def test_cells_that_are_no_texts_have_no_length() -> None:
    check_cells(pd.DataFrame({"a": [[1], None], "b": [1, 2], "c": ["x", None]}), "'v'")
    with pytest.raises(
        JudgeBayesError, match="Row 1 of column 'c' of 'v' has a text of 10,000,001"
    ):
        check_cells(pd.DataFrame({"c": [None, "x" * (MAX_TEXT + 1)]}), "'v'")


@pytest.mark.parametrize("column", ["item", "judge", "vote"])
def test_a_long_name_is_refused_and_not_shown(column: str, tmp_path: Path) -> None:
    row = {"item": "a", "judge": "j", "vote": 1}
    table = pd.DataFrame([row, row | {column: "x" * (MAX_NAME + 1)}])
    with pytest.raises(JudgeBayesError, match="has a text of 10,001 characters") as error:
        encode(table)
    assert "x" * 41 not in str(error.value)
    logged = [{"instruction": "i", "preference": 1, "annotator": "x" * (MAX_NAME + 1)}]
    (tmp_path / "a.json").write_text(json.dumps(logged))
    with pytest.raises(JudgeBayesError, match="has 10,001 characters"):
        import_votes("alpaca-eval", tmp_path / "a.json", Options())


def test_a_table_of_too_many_columns(tmp_path: Path) -> None:
    names = [f"j{n}" for n in range(tables.MAX_COLUMNS)]
    (tmp_path / "v.csv").write_text(f"item,{','.join(names)}\n{'1,' * len(names)}1\n")
    (tmp_path / "v.jsonl").write_text(json.dumps(dict.fromkeys(["item", *names], 1)))
    pq.write_table(pa.table({name: [1] for name in ["item", *names]}), tmp_path / "v.parquet")
    for kind in ("csv", "jsonl", "parquet"):
        with pytest.raises(JudgeBayesError, match="has 10,001 columns; a table may have at most"):
            read_table(tmp_path / f"v.{kind}")
