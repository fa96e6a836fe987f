"""Workbooks are read as their sheet would be, saved as CSV."""

import zipfile
from pathlib import Path

import pytest

import judgebayes as jb
from judgebayes.errors import JudgeBayesError
from judgebayes.io.tables import notes_of, read_table

from .workbooks import write_workbook

VOTES = [
    ["Study 5"],
    [],
    ["item", "judge", "vote"],
    ["007", "a", 1],
    ["2.10", "a", 0],
    [7, "a", 1],
    [2.5, "a", None],
]
LABELS = [["item", "label"], ["007", 1], [7, 0]]
JOINED = ["item", "gpt / correct", "gpt / fluent", "human"]


def test_the_first_sheet_with_a_table_is_read_and_names_are_text(tmp_path: Path) -> None:
    sheets = {"cover": [["Our votes"], ["May"]], "votes": VOTES, "gold": LABELS}
    path = write_workbook(tmp_path / "v.xlsx", sheets)
    labels = write_workbook(tmp_path / "l.xlsx", {"gold": LABELS})
    table = read_table(path)
    assert table["item"].tolist() == ["007", "2.10", "7", "2.5"]
    assert table.index.tolist() == [4, 5, 6, 7]
    assert any("Sheet 'votes' of v.xlsx is read; 'gold' is not" in note for note in notes_of(table))
    data = jb.read(path, labels)
    assert list(data.coding.items) == ["007", "2.10", "7", "2.5"]
    assert (data.numbers["votes"], data.numbers["labels"]) == (3, 2)


@pytest.mark.parametrize(
    "rows",
    [
        [["item", "gpt", None, "human"], [None, "correct", "fluent", None]],
        [["item", "gpt", "gpt", "human"], ["item", "correct", "fluent", "human"]],
        [[None, "gpt", "gpt", "human"], [None, "correct", "fluent", None], ["item"]],
    ],
)
def test_header_rows_are_joined(rows: list[list[object]], tmp_path: Path) -> None:
    path = write_workbook(tmp_path / "v.xlsx", {"v": [*rows, ["x", 1, 0, 1], ["y", 0, 0, 1]]})
    table = read_table(path)
    assert table.columns.tolist() == JOINED
    assert table.loc[len(rows) + 1].tolist() == ["x", 1, 0, 1]
    assert "header rows of v.xlsx are joined" in notes_of(table)[0]
    lines = [",".join("" if cell is None else str(cell) for cell in row) for row in rows]
    (tmp_path / "v.csv").write_text("\n".join([*lines, "x,1,0,1", "y,0,0,1"]))
    assert read_table(tmp_path / "v.csv").equals(table)


def test_a_workbook_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "v.xlsx"
    path.write_bytes(b"PK\3\4")
    with pytest.raises(JudgeBayesError, match="cannot be read as a workbook"):
        jb.read(path)
    with pytest.raises(JudgeBayesError, match="has no sheet with a table"):
        jb.read(write_workbook(path, {"a": [["x"]]}))


def test_a_workbook_of_two_distant_cells(tmp_path: Path) -> None:
    path = write_workbook(tmp_path / "v.xlsx", {"a": [["x", "y"], [1, 2]]})
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/1.xml"
    parts[sheet] = parts[sheet].replace(b'"B2"', b'"XFD1048576"')
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    with pytest.raises(JudgeBayesError, match="17,179,869,184 cells up to the last ones"):
        jb.read(path)
