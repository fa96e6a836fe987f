"""Files as people have them, up to the fits: spreadsheets, stray votes, columns of no judge."""

import random
import re
import shlex
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fuzz.mutators import to_json_bytes
from fuzz.seeds import VALID, with_more_records
from runner import CliRunner

import judgebayes as jb
from judgebayes import cli
from judgebayes.errors import JudgeBayesError
from judgebayes.io.formats import import_votes
from judgebayes.io.options import Options, join_names
from judgebayes.workflow.asking import open_files
from judgebayes.workflow.data import Study, encoded
from judgebayes.workflow.fit_file import SavedFit, apply_notes, profile, reading_notes, save_fit
from judgebayes.workflow.methods import Choice, build
from judgebayes.workflow.options import ReadRequest
from judgebayes.workflow.scales import classes_of
from judgebayes.workflow.sources import Opened

SPREADSHEET = """Judge results, March 2026;;;;;
;;;;;
Item No.;GPT 5;Claude;Notes;Date;
Prüfung 1;yes;no;größer;01.03.2026;
Prüfung 2;no;;;02.03.2026;
Prüfung 3;yes;yes;kürzer;02.03.2026;
Prüfung 4;no;no;;03.03.2026;
;;;;;
"""
LABELS = "Labels by hand;\nItem No.;label\nPrüfung 1;yes\nPrüfung 2;no\nPrüfung 3;unsure\n"


def opened(
    path: Path,
    *,
    labels: Path | None = None,
    wide: bool = False,
    only: str | None = None,
    **how: Any,
) -> Opened:
    return open_files(ReadRequest(votes=path, labels=labels, wide=wide, only_judge=only, **how))


def read(source: Opened) -> Study:
    request = replace(source.request, drop_unknown_labels=True)
    source = replace(source, request=request)
    return encoded(source, classes_of(source))


def test_a_spreadsheet_of_judges_with_a_title_notes_and_umlauts(tmp_path: Path) -> None:
    path, gold = tmp_path / "a.csv", tmp_path / "gold.csv"
    path.write_text(SPREADSHEET, encoding="cp1252")
    gold.write_text(LABELS, encoding="cp1252")
    with pytest.raises(JudgeBayesError, match="use --set encoding=cp1252"):
        opened(path, wide=True)
    with pytest.raises(JudgeBayesError, match="Use --set ignore=Notes,Date"):
        read(opened(path, wide=True, encoding="cp1252"))
    with pytest.raises(JudgeBayesError, match=r"'Notes' of .* neither are 'Date'"):
        read(opened(path, wide=True, encoding="cp1252", classes="no,yes"))
    files = opened(
        path, labels=gold, wide=True, encoding="cp1252", ignore="Notes,Date", missing="unsure"
    )
    votes = read(files)
    words = votes.words()
    assert words[:5] == [
        "Row 1 of a.csv, 'Judge results, March 2026', is above the header and is left out.",
        "missing has no effect: no vote is 'unsure'.",
        "Row 1 of gold.csv, 'Labels by hand', is above the header and is left out.",
        "Read as missing labels: 'unsure' 1.",
        "Columns: item = 'Item No.'.",
    ]
    assert "Judges: 'GPT 5', 'Claude'." in words
    assert np.asarray(votes.votes.index)[:, :, 0].tolist() == [[1, 0], [0, -1], [1, 1], [0, 0]]
    assert files.labels is not None
    labels = votes.coding.labels(files.labels.table, item="Item No.", label="label")
    assert labels.tolist() == [1, 0, -1, -1]
    alone = read(opened(path, wide=True, only="Claude", encoding="cp1252", ignore="Notes"))
    assert list(alone.coding.judges) == ["Claude"]
    with pytest.raises(
        JudgeBayesError, match=r"no judge 'Claud'; choose one of: 'GPT 5', 'Claude'"
    ):
        opened(path, wide=True, only="Claud", encoding="cp1252", ignore="Notes,Date")


@pytest.mark.parametrize("strays", [1, 20])
@pytest.mark.parametrize("wide", [False, True])
def test_stray_votes_are_reported_and_can_be_missing(
    tmp_path: Path, strays: int, wide: bool
) -> None:
    votes = ["no", "yes"] * 40
    votes[9 : 9 + strays] = ["Partial, perhaps"] * strays
    table = pd.DataFrame({"item": range(80), ("judge" if wide else "vote"): votes})
    table.to_csv(tmp_path / "v.csv", index=False)
    message = (
        rf"{strays} of 80 votes are not one of no, yes: 'Partial, perhaps' {strays} \(the first in "
        r"row 11\); they are read as missing .* Use --set ('missing=\S.*')"
    )
    with pytest.raises(JudgeBayesError, match=message) as caught:
        read(opened(tmp_path / "v.csv", wide=wide))
    said = re.search(r"Use --set (.*)", str(caught.value))
    assert said is not None
    missing = shlex.split(said.group(1))[0].removeprefix("missing=")
    reading = read(opened(tmp_path / "v.csv", wide=wide, missing=missing.casefold()))
    assert int((np.asarray(reading.votes.index) >= 0).sum()) == 80 - strays
    assert f"Read as missing votes: 'Partial, perhaps' {strays}." in reading.words()
    classes = f"no,{missing},yes"
    with_them = read(opened(tmp_path / "v.csv", wide=wide, classes=classes))
    assert with_them.coding.classes.values == ("no", "Partial, perhaps", "yes")
    if not wide:
        with pytest.raises(JudgeBayesError, match="Put a name that contains a comma in double"):
            read(opened(tmp_path / "v.csv", classes="no,Partial, perhaps,yes"))


def test_the_columns_of_a_labels_file_are_detected_by_its_items(tmp_path: Path) -> None:
    votes = pd.DataFrame(
        {"item": [f"t{n}" for n in range(20)], "vote": ["incorrect", "correct"] * 10}
    )
    votes.to_csv(tmp_path / "v.csv", index=False)
    checked = pd.DataFrame(
        {"sample": [f"t{n}" for n in range(19)] + ["t99"], "ok?": ["no", "Yes"] * 10}
    )
    checked.to_csv(tmp_path / "by hand.csv", index=False)
    files = opened(tmp_path / "v.csv", labels=tmp_path / "by hand.csv", drop_unknown_labels=True)
    assert read(files).words()[:2] == [
        "Columns of by hand.csv: item = 'sample', label = 'ok?'; the item column is detected by its "
        "values, which are items of the votes.",
        "The labels 'Yes', 'no' of column 'ok?' are read as 'correct', 'incorrect', as in the votes.",
    ]
    assert files.labels is not None
    labels = read(files).coding.labels(
        files.labels.table, item="sample", label="ok?", unknown_items="drop"
    )
    assert labels.tolist() == [0, 1] * 9 + [0, -1]
    checked["sample"] = [f"u{n}" for n in range(20)]
    checked.to_csv(tmp_path / "by hand.csv", index=False)
    with pytest.raises(JudgeBayesError, match=r"labels 20 item\(s\) that have no votes"):
        opened(tmp_path / "v.csv", labels=tmp_path / "by hand.csv")


@pytest.mark.parametrize(
    ("vote", "label"),
    [(("Invalid", "Valid"), (0, 1)), ((0, 1), ("fail", "pass")), (("no", "yes"), (False, True))],
)
def test_labels_in_other_words_of_the_same_ends(
    tmp_path: Path, vote: tuple[object, object], label: tuple[object, object]
) -> None:
    table = pd.DataFrame({"item": range(4), "a": [*vote, *vote], "label": [None, *label, None]})
    table.to_csv(tmp_path / "v.csv", index=False)
    files = opened(tmp_path / "v.csv", wide=True)
    votes = read(files)
    assert files.labels is not None
    labels = votes.coding.labels(files.labels.table, item="item", label="label")
    assert labels.tolist() == [-1, 0, 1, -1]
    assert "of column 'label' are read as " in votes.words()[0]


def test_a_label_of_no_class_is_written_as_the_votes_are_or_no_label(tmp_path: Path) -> None:
    table = pd.DataFrame(
        {"item": range(40), "vote": ["no", "yes"] * 20, "label": ["nay", "yes"] * 20}
    )
    table.to_csv(tmp_path / "v.csv", index=False)
    with pytest.raises(JudgeBayesError, match=r"'no', 'yes'; if .* --set missing=nay"):
        read(opened(tmp_path / "v.csv"))


def test_a_fit_remembers_how_its_file_was_read(tmp_path: Path) -> None:
    table = pd.DataFrame(
        {"item": range(4), "a": [0, 1, 1, 0], "checked": [0, 1, 0, 0], "note": ["x", "y", "z", ""]}
    )
    table.to_csv(tmp_path / "v.csv", index=False)
    plain = ReadRequest(votes=tmp_path / "v.csv")
    request = replace(plain, label="checked", wide=True, ignore="note")
    notes = reading_notes(open_files(request)) | {"judges": ["a"]}
    again = open_files(*apply_notes(plain, notes))
    assert again.labels is not None
    assert again.labels.label == "checked"
    assert list(read(again).coding.judges) == ["a"]
    assert "Column 'note' is not read as a judge." in read(again).words()
    # Labels of another file, in a column that the next file of votes has too.
    table[["item", "checked"]].to_csv(tmp_path / "g.csv", index=False)
    table.drop(columns=["checked", "note"]).to_csv(tmp_path / "first.csv", index=False)
    first = ReadRequest(votes=tmp_path / "first.csv", labels=tmp_path / "g.csv", wide=True)
    notes = reading_notes(open_files(first)) | {"judges": ["a"]}
    table.drop(columns="note").to_csv(tmp_path / "v.csv", index=False)
    again = open_files(*apply_notes(plain, notes))
    assert list(read(again).coding.judges) == ["a"]
    # A column of that name that votes in the fit is a judge.
    judged = apply_notes(plain, notes | {"judges": ["a", "checked"]})
    assert list(read(open_files(*judged)).coding.judges) == ["a", "checked"]


def test_a_fit_remembers_how_its_table_stands_in_its_file(tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("Nr,über\nNr,a,Date,Note\n1,no,x,x\n2,yes,y,y\n", "cp1252")
    plain = ReadRequest(votes=tmp_path / "v.csv")
    how = {"wide": True, "encoding": "cp1252", "skip_rows": 1, "ignore": "Date,Note"}
    notes = reading_notes(open_files(replace(plain, item="Nr", **how)))
    files = open_files(*apply_notes(plain, notes))
    assert [*files.table[files.judge].unique()] == ["a"]
    assert "Columns 'Date', 'Note' are not read as judges." in files.notes
    # What the next file is said to be comes first.
    (tmp_path / "v.csv").write_text("Nr,a,Prüfer\n1,no,yes\n2,yes,no\n", "cp1250")
    new, earlier = apply_notes(replace(plain, encoding="cp1250", skip_rows=0), notes)
    assert (new.encoding, new.skip_rows) == ("cp1250", 0)
    files = open_files(new, earlier)
    assert [*files.table[files.judge].unique()] == ["a", "Prüfer"]


def test_apply_leaves_the_labels_of_its_file_out(tmp_path: Path) -> None:
    table = pd.DataFrame({"item": range(4), "a": [0, 1, 1, 0], "b": [0, 1, 0, 0]})
    table.assign(checked=[0, 1, 0, 1]).to_csv(tmp_path / "v.csv", index=False)
    given = read(open_files(ReadRequest(votes=tmp_path / "v.csv", label="checked", wide=True)))
    fitted = build(Choice("sc", "none"), given.coding.classes, given.votes).fit(
        given.votes, np.array([0, 1, 0, 1])
    )
    notes = reading_notes(given.opened) | {"judges": ["a", "b"]}
    bare = open_files(ReadRequest(votes=tmp_path / "v.csv", label="none", wide=True))
    assert reading_notes(bare)["ignore"] == []  # a judge may be called none
    classes, seen = given.coding.classes, profile(given.votes)
    save_fit(tmp_path / "fit.json", SavedFit("sc", fitted, classes, seen, notes=notes))
    said = invoke("apply", str(tmp_path / "fit.json"), str(tmp_path / "v.csv"))
    assert "Column 'checked' contains labels, not votes: it is left out." in said
    assert "8 votes of 2 judge(s) on 4 items" in said


def invoke(*words: str) -> str:
    result = CliRunner().invoke(cli.app, words)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("form", VALID)
def test_the_command_that_an_import_prints_can_be_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    name, content = VALID[form]
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if not isinstance(content, str):
        content = to_json_bytes(
            with_more_records(content, random.Random(2)), name.endswith(".jsonl")
        ).decode()
    path.write_text(content)
    monkeypatch.chdir(tmp_path)
    out = "my votes.csv"
    args = ("import", form, name, "-o", out)
    said = invoke(*args)
    if "import it again with --labels-out labels.csv" in said:
        said = invoke(*args, "--labels-out", "labels.csv")
    else:
        known = pd.read_csv(out).dropna(subset="vote").drop_duplicates("item")
        known.rename(columns={"vote": "label"})[["item", "label"]].to_csv("labels.csv", index=False)
    command = re.search(r"^Next: judgebayes (.*)$", said, re.MULTILINE)
    assert command is not None
    words = shlex.split(command.group(1))
    assert words[:2] == ["check", out]
    if form == "lm-eval":  # two items show no order of three words
        known = pd.concat([pd.read_csv(out)["vote"], pd.read_csv("labels.csv")["label"]])
        words += ["--set", f"classes={join_names(sorted(known.dropna().astype(str).unique()))}"]
    invoke(*words)
    sets = [pair for option, pair in pairwise(words) if option == "--set"]
    given = jb.check(out, "labels.csv", set=sets).data
    assert given is not None
    votes = re.search(r"records: (\d+) votes", said)
    assert votes is not None
    assert int((np.asarray(given.votes.index) >= 0).sum()) == int(votes.group(1))
    assert (given.labels >= 0).any()


@pytest.mark.parametrize("form", VALID)
def test_every_format_takes_missing(tmp_path: Path, form: str) -> None:
    name, content = VALID[form]
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        to_json_bytes(with_more_records(content, random.Random(2)), name.endswith(".jsonl"))
    )
    first = import_votes(form, path)
    vote = first.votes["vote"].dropna().iloc[0]
    try:
        imported = import_votes(form, path, Options(missing=f"nothing, {vote}"))
    except JudgeBayesError as error:
        assert f"vote {str(vote)!r}" in str(error)  # noqa: PT017
        return
    assert (imported.votes["vote"].dropna() != vote).all()
    assert (imported.missing, imported.dropped) != (first.missing, first.dropped)
