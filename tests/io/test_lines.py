"""No line of a file is lost: unpaired quotation marks that merge rows, and text with line breaks."""

from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from judgebayes.cli import app
from judgebayes.errors import JudgeBayesError
from judgebayes.io import notes_of, read_table
from judgebayes.io.lines import count_lines
from judgebayes.io.options import Options
from judgebayes.io.tables import Layout
from judgebayes.io.tidy import read_tidy
from judgebayes.io.wide import read_wide
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
    sentence = r"Lines 1502 to 8202 of 'v.csv' were read as one cell of column 'item', and 6,6"
    with pytest.raises(JudgeBayesError, match=sentence):
        read_table(broken)
    result = CliRunner().invoke(app, ["calibrate", str(broken), "--labels", str(broken)])
    assert isinstance(result.exception, JudgeBayesError)
    assert "Lines 1502 to 8202" in str(result.exception)
    with pytest.raises(JudgeBayesError, match=sentence):
        read_tidy(broken, Options())


@pytest.mark.parametrize("cell", [1, 2])
def test_judges_and_votes_have_one_line(tmp_path: Path, cell: int) -> None:
    broken = write(tmp_path / "v.csv", stray(rows(50), 10, 11, cell))
    name = HEAD.split(",")[cell]
    broken.write_text(broken.read_text().replace("q00011", "q0,0011"))  # no longer a row
    with pytest.raises(JudgeBayesError, match=f"Row 12 of column '{name}'.*lines 12 to 13"):
        encode(read_table(broken))


def test_rows_in_a_cell_of_text_are_an_error(tmp_path: Path) -> None:
    broken = write(tmp_path / "v.csv", stray(rows(50), 10, 20, 3))
    with pytest.raises(JudgeBayesError, match=r"Lines 12 to 22.*'comment', and 10 of them look"):
        read_table(broken)
    table = read_table(broken, Layout(ignore=("comment",)))
    assert len(table) == 40
    assert "40 rows on 50 lines of v.csv: 10 line breaks" in notes_of(table)[0]


def test_line_breaks_in_text_are_counted(tmp_path: Path) -> None:
    lines = rows(20)
    lines[3] = 'q00003,judge-3,1,"First, a line;\n\nthen, with, commas\n1,2,3,4"'
    lines[9] += "\n   \n"
    table = read_table(write(tmp_path / "v.csv", lines))
    assert len(table) == 20
    assert notes_of(table) == [
        "20 rows on 23 lines of v.csv: 3 line breaks are inside cells of 'comment'."
    ]
    assert table.attrs["spans"].of(table.index[3]) == " (lines 5 to 8 of the file)"
    assert table.attrs["spans"].of(table.index[4]) == ""
    encode(table)


def test_titles_and_headers_may_have_line_breaks(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_text('"A title\nof two lines",,,\nitem,judge,vote,"a\nnote"\na,j,1,"x\ny"\nb,j,0,\n')
    table = read_table(path)
    assert table["item"].tolist() == ["a", "b"]
    assert "2 rows on 3 lines" in notes_of(table)[-1]
    assert table.attrs["spans"].of(3) == " (lines 5 to 6 of the file)"


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
    with pytest.raises(JudgeBayesError, match=r"Row 2 of column 'item'.*lines 2 to 3"):
        read_wide(path, Options())


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", 0),
        (b"a", 1),
        (b"a\n", 1),
        (b"a\r\nb\r", 2),
        (b"\n\n\n", 3),
        (b"x" * 2**20 + b"\r\n", 1),
    ],
)
def test_lines_are_counted_like_a_text_reader(tmp_path: Path, content: bytes, lines: int) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    assert count_lines(path) == lines
    path.write_bytes(b"y" * (2**20 - 1) + b"\r\n")
    assert count_lines(path) == 1
