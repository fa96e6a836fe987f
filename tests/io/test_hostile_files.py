"""Files that lie about themselves: refused in one sentence, and without their content in memory."""

import io
import json
import math
import struct
import tracemalloc
import zipfile
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pytest
from rows import opened

import judgebayes as jb
from judgebayes.errors import JudgeBayesError
from judgebayes.io.formats import import_votes
from judgebayes.io.options import Layout
from judgebayes.io.records import read_json, read_lines
from judgebayes.io.tables import read_table
from judgebayes.votes import encode
from judgebayes.votes.classes import Classes, canonical

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
        import_votes("inspect", path)
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


def test_decimals_of_parquet_are_as_written(tmp_path: Path) -> None:
    votes = [Decimal("1.00"), None, Decimal("0.00")]
    pd.DataFrame({"item": [1, 2, 3], "vote": votes}).to_parquet(tmp_path / "a.parquet")
    read = read_table(tmp_path / "a.parquet")
    assert read["vote"].fillna("none").tolist() == ["1.00", "none", "0.00"]
    votes, _ = encode(read.assign(judge="j"))
    assert votes.index[:, 0, 0].tolist() == [1, -1, 0]


def test_utf_16_without_a_mark(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("item,judge,vote\na,j,1\n".encode("utf-16-le"))
    with pytest.raises(
        JudgeBayesError, match=r"NUL characters, as UTF-16 .* --set encoding=utf-16-le"
    ):
        read_table(tmp_path / "a.csv")
    read = read_table(tmp_path / "a.csv", Layout(encoding="utf-16-le"))
    assert read["vote"].tolist() == [1]


def test_a_header_longer_than_a_cell_may_be_is_read(tmp_path: Path) -> None:
    names = [f"judge-{n:020}" for n in range(6000)]
    (tmp_path / "a.csv").write_text(f"item,{','.join(names)}\nx,{','.join('01' * 3000)}\n")
    read = read_table(tmp_path / "a.csv")
    assert list(read.columns) == ["item", *names]
    assert read.iloc[0, 1:].tolist() == [0, 1] * 3000


@pytest.mark.parametrize("digits", [301, 400, 5000])
def test_whole_numbers_beyond_floats_are_infinite(tmp_path: Path, digits: int) -> None:
    (tmp_path / "a.csv").write_text(f"item,judge,vote\na,j,0\nb,j,{'1' * digits}\nc,j,1\n")
    (tmp_path / "a.jsonl").write_text(
        f'{{"item": "a", "vote": 0}}\n{{"item": "b", "vote": {"1" * digits}}}\n'
    )
    for name in ("a.csv", "a.jsonl"):
        with pytest.raises(JudgeBayesError) as error:
            jb.read(tmp_path / name)
        assert len(str(error.value)) < 2500
    assert canonical(-(10**400)) == -math.inf


def test_thirty_thousand_classes(tmp_path: Path) -> None:
    votes = [f"c{n}" for n in range(30_000)]
    path = tmp_path / "a.csv"
    pd.DataFrame({"item": range(30_000), "judge": "j", "vote": votes}).to_csv(path, index=False)
    with pytest.raises(JudgeBayesError, match=r"and 29992 more in a\.csv are neither binary"):
        jb.read(path)
    with pytest.raises(JudgeBayesError, match=r"30,000 classes are named; at most 1,000 are"):
        jb.read(path, classes=",".join(votes))
    classes = Classes(tuple(votes), pairwise=False)
    assert classes.indices([*votes, " C7 ", "none", "x"]) == [*range(30_000), 7, -1, None]


def test_blank_lines_of_jsonl_are_counted(tmp_path: Path) -> None:
    line = '{"item": "a", "judge": "j", "vote": 1}\n'
    (tmp_path / "a.jsonl").write_text(line + "\n  \n" + line.replace('"a"', '"b"') + "\n")
    read = opened(tmp_path / "a.jsonl")
    assert "2 blank line(s) of a.jsonl are left out." in read.notes
    (tmp_path / "a.jsonl").write_text(line + line[:20])
    with pytest.raises(JudgeBayesError, match=r"Line 2 of .* is not JSON"):
        jb.read(tmp_path / "a.jsonl")


def test_parts_of_records_that_are_no_votes_are_left_out(tmp_path: Path) -> None:
    part = {"pass": True, "assertion": {"type": "equals"}}
    results = [{"testIdx": 0, "gradingResult": {"componentResults": [part, 1, None]}}]
    (tmp_path / "a.json").write_text(json.dumps({"results": results}))
    imported = import_votes("promptfoo", tmp_path / "a.json")
    assert imported.votes["vote"].tolist() == ["pass"]


def test_a_log_that_counts_more_samples_than_it_has(tmp_path: Path) -> None:
    samples = [{"id": n, "epoch": 1, "scores": {"s": {"value": "C"}}} for n in range(3)]
    log = {"eval": {"model": "m"}, "results": {"completed_samples": 5}, "samples": samples}
    (tmp_path / "a.json").write_text(json.dumps(log))
    imported = import_votes("inspect", tmp_path / "a.json")
    assert "a.json counts 5 samples, but contains 3." in imported.notes


@pytest.mark.parametrize("kind", ["xls", "ods"])
def test_an_old_workbook_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"v.{kind}"
    path.write_bytes(b"PK\3\4")
    with pytest.raises(
        JudgeBayesError, match=r"is a workbook; \.xlsx is read, and none is written"
    ):
        jb.read(path)


@pytest.mark.parametrize("name", ["v.csv", "v.jsonl"])
@pytest.mark.parametrize("number", ["1e400", "-1e400"])
def test_an_infinite_number_is_no_class(name: str, number: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if path.suffix == ".csv":
        path.write_text(f"item,judge,vote\na,j,1\nb,j,{number}\n")
    else:
        path.write_text(f'{{"item":"a","vote":1}}\n{{"item":"b","vote":{number}}}\n')
    with pytest.raises(JudgeBayesError, match="There is an infinite number in"):
        jb.read(path)
    with pytest.raises(JudgeBayesError, match="infinite number in classes"):
        jb.read(path, classes=f"1,{number}")


def test_advice_can_be_followed(tmp_path: Path) -> None:
    """Escapes of characters that cannot be printed are none for a shell."""
    path = tmp_path / "v.jsonl"
    votes = [0, 1] * 20 + ["1\0"]
    lines = [{"item": n, "judge": "j", "vote": vote} for n, vote in enumerate(votes)]
    path.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(JudgeBayesError) as error:
        jb.read(path)
    assert "--set missing" not in str(error.value)
    assert "missing= in Python" in str(error.value)
    assert jb.read(path, missing="1\0").numbers["votes"] == 40
