"""Regression tests of faults that the fuzzer revealed, one each."""

import copy
import gzip
import json
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from rows import rows_of

from judgebayes.errors import JudgeBayesError
from judgebayes.io.formats import import_votes
from judgebayes.io.repair import Shown, repair_verdicts
from judgebayes.io.tables import read_table, write_table
from judgebayes.io.verdict import parse_verdict
from judgebayes.sentence import LONGEST, sentence
from judgebayes.votes import encode
from judgebayes.votes.classes import Classes, canonical
from judgebayes.workflow.asking import open_files
from judgebayes.workflow.data import encoded
from judgebayes.workflow.fit_file import digest_of, load_fit
from judgebayes.workflow.options import ReadRequest
from judgebayes.workflow.scales import classes_of

NUMBERS_THAT_ARE_NAMES = [
    ("1_0", "10"),
    ("0e12", "0e34"),
    ("007", "7"),
    ("2.1", "2.10"),
    ("9007199254740993", "9007199254740992"),
    ("12345678901234567890123", "12345678901234567890124"),
    ("+7", "7"),
]


@pytest.mark.parametrize("names", NUMBERS_THAT_ARE_NAMES, ids=str)
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".csv.gz"])
def test_distinct_names_stay_distinct(names: tuple[str, str], suffix: str, tmp_path: Path) -> None:
    """Distinct names, equal as numbers: 007 and 7, 2.1 and 2.10, 0e12 and 0e34, ids above 2^53."""
    path = tmp_path / f"votes{suffix}"
    separator = "\t" if suffix == ".tsv" else ","
    rows = [(item, "j", vote) for item, vote in zip(names, "01", strict=True)]
    if suffix == ".jsonl":
        heads = ("item", "judge", "vote")
        text = "\n".join(json.dumps(dict(zip(heads, row, strict=True))) for row in rows)
    else:
        text = "\n".join(separator.join(row) for row in [("item", "judge", "vote"), *rows])
    path.write_bytes(gzip.compress(text.encode()) if suffix.endswith(".gz") else text.encode())
    opened = open_files(ReadRequest(votes=path))
    assert sorted(rows_of(opened)["item"]) == sorted(names)
    votes, coding = encode(opened.table)
    assert [str(item) for item in coding.items] == list(names)
    assert np.asarray(votes.index).ravel().tolist() == [0, 1]
    assert len(classes_of(opened)) == 2


def test_true_is_not_the_item_1() -> None:
    table = pd.DataFrame({"item": [1, True], "judge": "j", "vote": [0, 1]}, dtype=object)
    _, coding = encode(table)
    assert list(coding.items) == ["1", "True"]


def test_votes_are_numbers_only_in_common_notation() -> None:
    assert [canonical(text) for text in ("1.0", " +1", "1e0", ".5", "-1")] == [1, 1, 1, 0.5, -1]
    assert [canonical(text) for text in ("1_0", "١", "0x1", "infinity")] == [
        "1_0",
        "١",
        "0x1",
        "infinity",
    ]
    assert canonical(2**53 + 1) == 2**53 + 1


def test_a_small_file_that_unpacks_to_a_huge_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judgebayes.io.records.MAX_UNPACKED_BYTES", 2**20)
    for name, content in (("v.csv.gz", b"item,vote\n"), ("v.jsonl.gz", b'{"item": "')):
        path = tmp_path / name
        path.write_bytes(gzip.compress(content + b"1" * 2**22))
        assert path.stat().st_size < 2**14
        with pytest.raises(JudgeBayesError, match="GiB when unpacked"):
            read_table(path)
        path.write_bytes(path.read_bytes()[:-2000])
        with pytest.raises(JudgeBayesError, match=r"unpacked"):
            read_table(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_archive_with_two_members_of_one_name_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as file:
        for name in ("header.json", "samples/1_epoch_1.json", "samples/1_epoch_1.json"):
            file.writestr(name, '{"eval": {}}')
    with pytest.raises(JudgeBayesError, match="two members named"):
        import_votes("inspect", path)


def test_a_damaged_parquet_file_is_reported_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its reader may raise KeyError, TypeError or others for damaged metadata."""

    def raise_key_error(path: Path) -> None:
        raise KeyError("name")

    path = tmp_path / "votes.parquet"
    pd.DataFrame({"item": [1], "vote": [1]}).to_parquet(path)
    content = path.read_bytes()
    for damaged in (content[:-9], content[:4] + content[9:]):
        path.write_bytes(damaged)
        with pytest.raises(JudgeBayesError, match="cannot be read as parquet"):
            read_table(path)
    monkeypatch.setattr(pq, "read_table", raise_key_error)
    with pytest.raises(JudgeBayesError, match="cannot be read as parquet: 'name'"):
        read_table(path)


def test_deep_nesting_is_reported_and_gives_no_verdict(tmp_path: Path) -> None:
    for depth in (200, 900, 100_000):
        text = "[" * depth + "]" * depth
        path = tmp_path / "annotations.json"
        path.write_text(f'[{{"instruction": {text}, "preference": 1}}]')
        with pytest.raises(JudgeBayesError, match="nested too deeply"):
            import_votes("alpaca-eval", path)
        answer = f'[{{"line": {text}, "text": "t", "label": "valid"}}]'
        assert repair_verdicts(answer, [Shown("1", "t")]).votes == [-1]
        assert parse_verdict(text).value is None
        (tmp_path / "fit.json").write_text(text)
        with pytest.raises(JudgeBayesError, match="is not a saved fit"):
            load_fit(tmp_path / "fit.json")


def test_a_cell_with_a_list_is_its_only_value_or_no_vote(tmp_path: Path) -> None:
    path = tmp_path / "votes.jsonl"
    votes = ("1", "[1]", "[0]", "[0, 1]", "[]")
    lines = [
        f'{{"item": [{i}], "judge": [{{"a": 2.10}}, 1], "vote": {v}}}' for i, v in enumerate(votes)
    ]
    path.write_text("\n".join(lines))
    opened = open_files(ReadRequest(votes=path))
    read = encoded(opened, Classes((0, 1), pairwise=False))
    assert list(read.coding.items) == ["[0]", "[1]", "[2]", "[3]", "[4]"]
    assert list(read.coding.judges) == ['[{"a": 2.10}, 1]']
    assert np.asarray(read.votes.index)[:, 0, 0].tolist() == [1, 1, 0, -1, -1]
    assert "2 vote(s) of 'vote' are lists of several or none: read as missing." in read.opened.notes
    table = pd.DataFrame({"item": [1, 2], "judge": "j", "vote": [0, 1], "sample": [(1,), 2]})
    with pytest.raises(JudgeBayesError, match=r"column 'sample' contains a tuple"):
        encode(table, sample="sample")
    mixed = table.assign(sample=pd.Series([pd.Timestamp("2020-01-01"), 2], dtype=object))
    assert encode(mixed, sample="sample")[0].n_items == 2


def test_written_tables_round_trip_row_by_row(tmp_path: Path) -> None:
    """Names with carriage returns, titles like formulas, and numbers beyond 64 bits."""
    names = ["a\rb", "c\nd", 'e"f', "g,h", "=1", "\n=1", "＝1", "@x"]
    table = pd.DataFrame({"item": names, "=title": 10**20})
    for suffix in (".csv", ".tsv", ".jsonl", ".parquet"):
        path = tmp_path / f"t{suffix}"
        write_table(table.assign(**{"=title": 1}), path)
        reread = read_table(path)
        assert len(reread) == len(names)
        assert [name.lstrip("'") for name in reread["item"]] == names
        plain = suffix in (".jsonl", ".parquet")
        assert list(reread.columns)[1] == ("=title" if plain else "'=title")
    (tmp_path / "annotations.json").write_text(
        json.dumps([{"instruction": "i", "preference": 1, "annotator": 10**25}])
    )
    imported = import_votes("alpaca-eval", tmp_path / "annotations.json")
    write_table(imported.votes, tmp_path / "t.jsonl")


def test_a_table_that_cannot_be_written_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pd.DataFrame({"item": ["a", "b"], "vote": [0, 1]})
    for name in ("t.csv", "t.csv.gz", "t.jsonl.gz", "t.parquet"):
        write_table(table, tmp_path / name)
        pd.testing.assert_frame_equal(read_table(tmp_path / name).reset_index(drop=True), table)
    (tmp_path / "link.csv").symlink_to("t.csv")

    def full(self: pd.DataFrame, path: Path, **options: object) -> None:
        path.write_text("half")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(pd.DataFrame, "to_csv", full)
        with pytest.raises(JudgeBayesError, match="No space left on device"):
            write_table(table.head(1), tmp_path / "t.csv")
    assert len(read_table(tmp_path / "t.csv")) == 2
    write_table(table.head(1), tmp_path / "link.csv")
    assert (tmp_path / "link.csv").is_symlink()
    assert len(read_table(tmp_path / "t.csv")) == 1
    assert len(list(tmp_path.iterdir())) == 5


FIT = {
    "format": "judgebayes fit",
    "version": 4,
    "method": "sc",
    "classes": {"values": [-1, 0, 1], "pairwise": True, "undecided": [], "ordered": True},
    "tasks": [],
    "judges": ["a"],
    "profile": {
        "items": 3,
        "mean_share": [0.2, 0.3, 0.5],
        "covariance": np.eye(3).tolist(),
        "votes_per_item": 2.0,
    },
    "fitted": {
        "type": "Fit",
        "method": {"type": "BaseRate"},
        "draws": {"log_rates": {"array": np.log([[0.1, 0.2, 0.7]]).tolist(), "dtype": "float64"}},
        "status": {"array": 0, "dtype": "int32"},
        "details": {},
        "parts": {},
    },
    "notes": {},
}


def test_a_dtype_that_is_not_numeric_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fit.json"
    path.write_text(json.dumps(FIT | {"digest": digest_of(FIT)}))
    assert load_fit(path).method == "sc"  # only what is changed below is refused
    for kind in ("object", "007", "U9", [], "float64,int32"):
        content = copy.deepcopy(FIT)
        content["fitted"]["draws"]["log_rates"]["dtype"] = kind
        path.write_text(json.dumps(content | {"digest": digest_of(content)}))
        with pytest.raises(JudgeBayesError, match=r"is damaged: .* (array of|unhashable|dtype)"):
            load_fit(path)


def test_sentences_are_one_printable_line_that_keeps_its_end() -> None:
    hostile = "\x1b[2J\u202e\u2067a\nb\x00" * 100_000
    for text in (
        str(JudgeBayesError(f"There is no column {hostile}; choose one of: 'x'.")),
        sentence(hostile),
    ):
        assert text.isprintable()
        assert len(text) <= LONGEST
    assert str(JudgeBayesError(f"{hostile} choose one of: 'x'.")).endswith("choose one of: 'x'.")
