"""Study files: what `check` saves is what it read, and nothing is typed twice."""

from pathlib import Path

import numpy as np
import pytest
from cases.asking import FILES, run
from cases.test_reading import EVERY, LABELS

import judgebayes as jb
from judgebayes.errors import JudgeBayesError
from judgebayes.workflow.study import read_study, write_study


@pytest.mark.parametrize("name", EVERY)
def test_a_saved_study_reads_what_check_read(name: str, tmp_path: Path) -> None:
    study, labels = tmp_path / "study.toml", FILES / LABELS[name] if name in LABELS else None
    checked = jb.check(FILES / name, labels, save=study)
    assert study.exists() == (checked.data is not None)
    if checked.data is None:
        return
    again = jb.read(study)
    assert str(again.coding.items.tolist()) == str(checked.data.coding.items.tolist())
    assert again.numbers == checked.data.numbers
    assert again.coding.classes == checked.data.coding.classes
    np.testing.assert_array_equal(again.votes.index, checked.data.votes.index)
    np.testing.assert_array_equal(again.labels, checked.data.labels)
    if checked.command is not None:
        assert checked.command.split()[2] == str(study)


def test_what_is_given_beside_a_study_comes_first(tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("item,a,b,c\n1,x,y,x\n2,y,x,x\n3,x,x,y\n")
    study = tmp_path / "study.toml"
    write_study(study, {"votes": tmp_path / "v.csv"}, {"wide": True, "ignore": "c"})
    assert study.read_text().splitlines()[1:] == ['votes = "v.csv"', "wide = true", 'ignore = "c"']
    assert list(jb.read(study).coding.judges) == ["a", "b"]
    assert list(jb.read(study, ignore="b").coding.judges) == ["a", "c"]
    said = run("diagnose", study, "--set", "ignore=a", "--set", "item=item", code=0)
    assert "2 judge(s)" in said


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('labels = "l.csv"', "does not say where the votes are"),
        ('votes = "v.csv"\nmising = "x"', "Did you mean 'missing'?"),
        ('votes = "v.csv"\nwide = "yes"', "wide is 'yes', but must be true or false"),
        ('votes = "v.csv"\nskip_rows = 1.5', "must be a whole number"),
        ('votes = "v.csv"\nmissing = {a = 1}', "must be a text"),
        ("votes = ", "cannot be read: "),
    ],
)
def test_a_wrong_study_file_is_one_sentence(text: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(text)
    with pytest.raises(JudgeBayesError, match=sentence.replace("?", r"\?")):
        jb.read(tmp_path / "study.toml")


def test_lists_of_a_study_are_lists_of_an_option(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text('votes = "v.csv"\nmissing = ["n/a", "so, so", 9]')
    assert read_study(tmp_path / "s.toml")["missing"] == 'n/a,"so, so",9'
