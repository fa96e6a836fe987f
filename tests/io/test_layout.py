"""The layout of tables in files: titles, empty rows, encodings, decimal commas and row numbers."""

import gzip
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from rows import opened, rows_of, votes_of_table

import judgebayes as jb
from judgebayes.errors import AmbiguousStudy, JudgeBayesError
from judgebayes.io.cells import with_points
from judgebayes.io.options import Layout
from judgebayes.io.tables import notes_of, read_table
from judgebayes.votes.classes import usual_classes
from judgebayes.workflow.asking import decided
from judgebayes.workflow.options import ReadRequest

EXCEL = (
    "Judge results, March 2026;;;\r\n\r\n;;;\r\nItem No.;Judge A;Judge B;\r\n"
    "p1;yes;no;\r\n\r\n;;;\r\np2;no;;\r\n;;;\r\n"
)


def test_a_title_and_empty_rows_are_left_out_and_rows_keep_their_number(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(EXCEL, newline="")
    table = read_table(path)
    assert list(table.columns) == ["Item No.", "Judge A", "Judge B"]
    assert table.index.tolist() == [5, 8]
    assert notes_of(table) == [
        "Row 1 of a.csv, 'Judge results, March 2026', is above the header and is left out."
    ]
    assert notes_of(table) == notes_of(read_table(path, Layout(skip_rows=3)))
    read = opened(path, wide=True)
    assert rows_of(read)["vote"].tolist() == ["yes", "no", "no", None]
    assert any("is above the header" in line for line in read.notes)


@pytest.mark.parametrize(
    ("text", "columns", "rows"),
    [
        ('"Two\nlines";;\nA second title\nitem;a;b\nx;1;0\n', ["item", "a", "b"], [4]),
        ("\n\nitem,vote\n\nx,1\ny,0\n", ["item", "vote"], [5, 6]),
        ("item\nx\n\ny\n", ["item"], [2, 4]),  # a table of one column has no title
        (",a,b\nx,1,0\n", ["Unnamed: 0", "a", "b"], [2]),  # as pandas writes an index
        ("item,vote\nx,1\nitem,vote\ny,0\n", ["item", "vote"], [2, 4]),  # two files joined
        ('item,text\nx,"two\n\nlines"\ny,b\n', ["item", "text"], [2, 3]),
    ],
)
def test_rows_are_those_of_a_spreadsheet(
    tmp_path: Path, text: str, columns: list[str], rows: list[int]
) -> None:
    (tmp_path / "a.csv").write_text(text)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text.encode()))
    for name in ("a.csv", "a.csv.gz"):
        table = read_table(tmp_path / name)
        assert (list(table.columns), table.index.tolist()) == (columns, rows)


def test_the_first_record_of_jsonl_and_parquet_is_row_1(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n\n{"a": 2}\n')
    assert read_table(tmp_path / "a.jsonl").index.tolist() == [1, 3]
    read_table(tmp_path / "a.jsonl").to_parquet(tmp_path / "a.parquet", index=False)
    assert read_table(tmp_path / "a.parquet").index.tolist() == [1, 2]


def test_a_header_further_down_needs_skip_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("Exported,today\nitem,a,b\nx,1,0\n")
    with pytest.raises(
        JudgeBayesError, match=r"header \(row 1\) has columns\. .* --set skip_rows=N"
    ):
        read_table(path)
    assert list(votes_of_table(path, wide=True, skip_rows=1).values()) == [1, 0]
    path.write_text("id,today,,\nitem,a,b,c\nx,1,0,1\n")
    with pytest.raises(JudgeBayesError, match=r"2 column\(s\) without a name .* --set skip_rows=N"):
        jb.read(path, wide=True)


@pytest.mark.parametrize("name", ["a.csv", "a.txt", "a.tsv"])
@pytest.mark.parametrize("coding", ["utf-8-sig", "utf-16", "utf-32", "cp1252", "utf-16-le"])
def test_encodings_are_detected_by_their_mark_or_named(
    tmp_path: Path, name: str, coding: str
) -> None:
    path = tmp_path / name
    text = "item\tvote\r\nPrüfung\t1\r\n007\t2\r\n7\t3\r\n"
    path.write_bytes(text.encode(coding))
    if coding == "cp1252":
        with pytest.raises(
            JudgeBayesError, match=r"not UTF-8 text \(byte 13\).* --set encoding=cp1252"
        ):
            read_table(path)
    # The named encoding is ignored if the file has a byte-order mark or is UTF-8.
    table = read_table(path, Layout(encoding="utf-16-le" if coding == "utf-16-le" else "cp1252"))
    assert table["item"].tolist() == ["Prüfung", "007", "7"]


def test_an_unknown_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("item,vote\nx,1\n")
    for name in ("klingon", "hex"):
        with pytest.raises(JudgeBayesError, match=f"encoding='{name}' is unknown; use cp1252"):
            read_table(tmp_path / "a.csv", Layout(encoding=name))


@pytest.mark.parametrize(
    ("cells", "read"),
    [
        (["0,8", "1", None, "N/A", " 0,25"], [0.8, 1, None, None, 0.25]),
        (["1,234", "12,500"], ["1,234", "12,500"]),  # thousands, perhaps
        (["0,8", "good, bad"], ["0,8", "good, bad"]),
        (["0.8", "1"], [0.8, 1]),
    ],
)
def test_decimal_commas_are_read_if_a_column_has_only_numbers(
    tmp_path: Path, cells: list[str | None], read: list[object]
) -> None:
    table = pd.DataFrame({"item": [f"1,{n}" for n in range(len(cells))], "vote": cells})
    table.to_csv(tmp_path / "a.csv", sep=";", index=False)
    given = decided(ReadRequest(votes=tmp_path / "a.csv")).open_votes()
    rows = rows_of(given)
    assert rows["vote"].tolist() == read
    assert rows["item"].tolist() == table["item"].tolist()  # names stay as they are
    note = "Column 'vote': decimal commas, '0,8' is read as 0.8."
    assert (note in given.notes) is (cells[0] == "0,8" and read[0] == 0.8)


def test_numeric_columns_have_no_decimal_commas() -> None:
    table = pd.DataFrame({"vote": [0.5, 1.0]})
    assert with_points(table, ["vote"])[0] is table


WIDE = """item,GPT 5,Claude,Notes,Date,Tokens
p1,yes,no,fine,2026-03-01,120
p2,no,,too long,2026-03-02,88
p3,yes,yes,,2026-03-03,93
p4,no,no,fine,2026-03-03,412
"""


def test_columns_of_no_judge_are_named_with_the_option_to_ignore_them(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(WIDE)
    with pytest.raises(JudgeBayesError, match="--set ignore=Notes,Date,Tokens") as caught:
        jb.read(path, wide=True)
    assert "Column 'Notes' of" in str(caught.value)
    assert (
        "not one of the votes no, yes, so it is not read as a judge; neither are 'Date', 'Tokens'"
        in str(caught.value)
    )
    data = jb.read(path, wide=True, ignore="Notes, Date,Tokens")
    assert set(data.coding.judges) == {"GPT 5", "Claude"}
    with pytest.raises(
        JudgeBayesError, match=r"no column 'Nots' to ignore in .* it has 'item', 'G"
    ):
        jb.read(path, wide=True, ignore="Nots")


@pytest.mark.parametrize(
    "text",
    [
        "item,a,b,c\nx,1,5,3\ny,1,4,3\nz,0,2,5\n",  # scores, and one judge who gave 0 and 1
        "item,a,b\nx,good,fair\ny,good,poor\nz,good,fair\n",  # a constant judge shows no scale
        "item,a,b\nx,0,2\ny,1,1\nz,0,0\n",
        "item,a,b,c\nx,no,yes,unsure\ny,yes,no,no\nz,yes,yes,yes\n",  # one stray vote
        "item,a,b,c\nx,so,so,top\ny,so,so,top\nz,poor,poor,poor\n",  # who votes top for most items
    ],
)
def test_a_judge_on_a_wider_scale_is_a_judge(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    draft = decided(ReadRequest(votes=tmp_path / "a.csv", wide=True))
    header, *rows = text.splitlines()
    assert len(draft.open_votes().table) == len(rows) * header.count(",")


def test_utf_16_without_a_mark_is_read_as_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("item,vote\nx,1\n".encode("utf-16-le"))  # also valid UTF-8
    table = read_table(tmp_path / "a.csv", Layout(encoding="utf-16-le"))
    assert table["item"].tolist() == ["x"]


def test_words_of_most_votes_are_classes() -> None:
    assert usual_classes(Counter({"no": 2, "yes": 2, "maybe": 6})) == (None, Counter())
    classes, odd = usual_classes(Counter({"no": 4, "yes": 4, "maybe": 2}))
    assert classes is not None
    assert odd == {"maybe": 2}


GERMAN = """Nr,Prompt,Datum,Jürgen,Ana,GPT,Leer,Bemerkung
1,"Thema 0, kurz",01.10.,ungültig,gültig,Ungültig,,prüfen
2,Thema 1,01.10.,,gültig,ungültig,,
3,Thema 2,02.10.,gültig,gültig,gültig,,
"""


@pytest.mark.parametrize("classes", [None, (0, 1), ("ungültig", "gültig")])
def test_columns_of_no_judge_are_detected_for_words_of_no_known_scale(
    tmp_path: Path, classes: tuple[object, ...] | None
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(GERMAN)
    how = {} if classes is None else {"classes": ",".join(map(str, classes))}
    if classes == (0, 1):  # no column has these classes: the classes are wrong, not the columns
        with pytest.raises(JudgeBayesError, match="not one of the classes 0, 1"):
            jb.read(path, wide=True, item="Nr", **how)
        return
    with pytest.raises(AmbiguousStudy, match="--set ignore=Prompt,Datum,Leer,Bemerkung") as raised:
        jb.read(path, wide=True, item="Nr", **how)
    assert raised.value.candidates[0].options["ignore"] == "Prompt,Datum,Leer,Bemerkung"


def test_an_empty_column_named_by_a_space_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_text("item,j, \na,1,\nb,0,\n")
    assert list(read_table(path).columns) == ["item", "j"]
