"""Study files: what `check` saves is what it read, and nothing is typed twice."""

from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from cases.asking import FILES, run
from cases.test_reading import EVERY, LABELS

import judgebayes as jb
from judgebayes.cli import COMMANDS
from judgebayes.cli.requests import ImportRequest
from judgebayes.errors import JudgeBayesError
from judgebayes.io.options import as_pair
from judgebayes.workflow.leaves import leaves
from judgebayes.workflow.options import (
    ApplyRequest,
    CheckRequest,
    DiagnoseRequest,
    EnsembleRequest,
    PrecisionRequest,
)
from judgebayes.workflow.posterior_options import PosteriorRequest
from judgebayes.workflow.records import make_record
from judgebayes.workflow.study import keys, read_study, write_study

READING = [name for name, each in COMMANDS.items() if "set" in each.leaves]
RECORDS = (
    *(ApplyRequest, CheckRequest, DiagnoseRequest, EnsembleRequest, PrecisionRequest),
    *(ImportRequest, PosteriorRequest),
)


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


@pytest.mark.parametrize("name", READING)
def test_a_command_has_few_options_that_describe_a_file(name: str) -> None:
    own, typed = COMMANDS[name].keys, {*COMMANDS[name].signature().parameters}
    assert len(typed & {*keys(), "votes", "set"}) <= 10
    assert own
    assert not own.keys() & typed
    assert own.keys() <= keys().keys()


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_every_key_can_be_set(record: type) -> None:
    examples = {str: " a, b=c ", bool: True, int: 3, float: 0.5}
    for leaf in leaves(record, {}):
        if leaf.option.key:
            fitting = (
                example
                for kind, example in examples.items()
                if kind in (get_args(leaf.type) or (leaf.type,))
            )
            value = leaf.option.values[0] if leaf.option.values else next(fitting)
            read = make_record(record, {}, {"set": [as_pair(leaf.name, value)]})
            assert getattr(read, leaf.name) == value, leaf.name
