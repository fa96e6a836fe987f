"""No line of a file is lost: unpaired quotation marks that merge rows, and text with line breaks."""

from pathlib import Path

import pandas as pd
import pytest
from runner import CliRunner

import judgebayes as jb
from judgebayes.cli import app
from judgebayes.errors import JudgeBayesError
from judgebayes.io.options import Layout
from judgebayes.io.tables import read_table
from judgebayes.votes import encode

HEAD = "item,judge,vote,comment"


def rows(n: int) -> list[str]:
    return [f"q{i:05d},judge-{i % 5},{i % 2},fine" for i in range(n)]


def write(path: Path, lines: list[str], end: str = "\n") -> Path:
    path.write_bytes((end.join([HEAD, *lines]) + end).encode())
    return path


def stray(lines: list[str], first: int, last: int, cell: int) -> list[str]:
    """Put a quotation mark before a cell of one row, and after the same cell of a later one."""
    changed = list(lines)
    cells = changed[first].split(",")
    changed[first] = ",".join([*cells[:cell], '"' + cells[cell], *cells[cell + 1 :]])
    cells = changed[last].split(",")
    changed[last] = ",".join([*cells[:cell], cells[cell] + '"', *cells[cell + 1 :]])
    return changed


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_rows_merged_by_stray_marks_are_an_error(tmp_path: Path, end: str) -> None:
    broken = write(tmp_path / "v.csv", stray(rows(10_000), 1500, 8200, 0), end)
    sentence = r"Row 1502 of 'v.csv' has a cell of column 'item' with 6,6"
    with pytest.raises(JudgeBayesError, match=sentence):
        read_table(broken)
    result = CliRunner().invoke(app, ["calibrate", str(broken), "--labels", str(broken)])
    assert isinstance(result.exception, JudgeBayesError)
    assert "Row 1502 of 'v.csv'" in str(result.exception)
    with pytest.raises(JudgeBayesError, match=sentence):
        jb.read(broken)


@pytest.mark.parametrize("cell", [1, 2])
def test_judges_and_votes_have_one_line(tmp_path: Path, cell: int) -> None:
    broken = write(tmp_path / "v.csv", stray(rows(50), 10, 11, cell))
    name = HEAD.split(",")[cell]
    broken.write_text(broken.read_text().replace("q00011", "q0,0011"))  # no longer a row
    with pytest.raises(JudgeBayesError, match=f"Row 12 of column '{name}' contains a line"):
        encode(read_table(broken))


def test_rows_in_a_cell_of_text_are_an_error(tmp_path: Path) -> None:
    broken = write(tmp_path / "v.csv", stray(rows(50), 10, 20, 3))
    with pytest.raises(JudgeBayesError, match=r"Row 12 .*'comment' with 10 lines that look"):
        read_table(broken)
    table = read_table(broken, Layout(ignore=("comment",)))
    assert len(table) == 40


def test_text_may_have_lines(tmp_path: Path) -> None:
    lines = rows(20)
    lines[3] = 'q00003,judge-3,1,"First, a line;\n\nthen, with, commas\n1,2,3,4"'
    lines[9] += "\n   \n"
    table = read_table(write(tmp_path / "v.csv", lines))
    assert table.index.tolist() == [*range(2, 12), *range(14, 24)]
    encode(table)


def test_other_encodings_and_packed_files_are_reconciled(tmp_path: Path) -> None:
    text = "\n".join([HEAD, *stray(rows(50), 10, 20, 3)]) + "\n"
    (tmp_path / "v.csv").write_bytes(b"\xff\xfe" + text.encode("utf-16-le"))
    pd.Series([1]).to_csv(tmp_path / "g.csv.gz")
    import gzip

    (tmp_path / "g.csv.gz").write_bytes(gzip.compress(text.encode()))
    for name in ("v.csv", "g.csv.gz"):
        with pytest.raises(JudgeBayesError, match="look like separate rows"):
            read_table(tmp_path / name)


def test_ids_of_tables_in_memory_have_one_line() -> None:
    table = pd.DataFrame({"item": ["a", "b\nc"], "judge": ["j", "j"], "vote": [0, 1]})
    with pytest.raises(JudgeBayesError, match="Row 1 of column 'item' contains a line break"):
        encode(table)


def test_a_wide_table_has_ids_of_one_line(tmp_path: Path) -> None:
    path = tmp_path / "w.csv"
    path.write_text('item,j1,j2\n"a\nb",0,1\nc,1,1\n')
    with pytest.raises(JudgeBayesError, match="Row 2 of column 'item' contains a line break"):
        jb.read(path, wide=True)
