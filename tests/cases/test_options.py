"""An option that is not used is refused, or the command says so."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cases.asking import FILES, run

from judgebayes.io.tables import read_table, write_table


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Votes of three judges on 60 items, of which 40 are labelled."""
    path = tmp_path_factory.mktemp("options")
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 60)
    rows = [
        (item, judge, int(y if rng.random() < right else 1 - y), f"g{item % 3}")
        for judge, right in (("a", 0.85), ("b", 0.75), ("c", 0.65))
        for item, y in enumerate(truth)
    ]
    table = pd.DataFrame(rows, columns=["item", "judge", "vote", "gen"])
    table.to_csv(path / "v.csv", index=False)
    pd.DataFrame({"item": range(40), "label": truth[:40]}).to_csv(path / "l.csv", index=False)
    return path


FEW = ("--method", "sc", "--splits", 3)
REFUSED = [
    ("calibrate", ("--method", "sc:ml"), "sc is fitted in one way only"),
    ("calibrate", (*FEW, "--conformal-by", "gen"), "add --conformal 0.9"),
    ("calibrate", (*FEW, "--set", "annotator=gen"), "is used with --set labels_merge"),
    ("calibrate", (*FEW, "--ties", "excluded"), "is for votes that compare two responses"),
    ("calibrate", (*FEW, "--set", "undecided=zz"), "no vote is 'zz'"),
    ("calibrate", (*FEW, "--set", "votes_as=shown"), "name it with --set order"),
    ("precision", ("--set", "generator=gen", "--between", "g0,g1"), "add --next 50"),
    ("precision", ("--set", "task=gen"), "task is not a key of this command"),
    ("diagnose", ("--set", "task=gen"), "task is not a key of this command"),
    ("diagnose", ("--task", "gen"), "Unknown option"),
    ("diagnose", ("--missing=n/a",), "--missing is a key of the study: --set missing=VALUE."),
    ("calibrate", ("--no-pairwise",), "--set pairwise=VALUE."),
    ("calibrate", ("--set", "skip_rows=-1"), "skip_rows is -1, but must be 0 or more"),
    ("posterior", ("--model", "dawid-skene", "--set", "generator=gen"), "has no generators"),
]


@pytest.mark.parametrize(("command", "options", "why"), REFUSED)
def test_an_option_without_use_is_refused(
    command: str,
    options: tuple[object, ...],
    why: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folder)
    assert why in run(command, "v.csv", "--labels", "l.csv", *options, code=2)
    assert not (folder / "n.csv").exists()


@pytest.mark.parametrize(
    "command",
    [
        ("calibrate", *FEW),
        ("diagnose",),
        ("precision", "--set", "generator=gen", "--method", "strata"),
    ],
)
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--set", "missing=zz"), "missing has no effect: no vote is 'zz'."),
        (("--set", "encoding=utf-16"), "encoding=utf-16: v.csv is UTF-8 and is read as such."),
        (("--set", "match_ids=loosely"), "items of the labels match as they are written."),
    ],
)
def test_an_option_without_effect_is_said(
    command: tuple[object, ...], options: tuple[str, str], said: str, folder: Path
) -> None:
    name, *more = command
    out = run(name, folder / "v.csv", "--labels", folder / "l.csv", *more, *options)
    assert said in out


def test_diagnose_says_that_it_has_no_use_for_pairwise(folder: Path) -> None:
    said = run("diagnose", folder / "v.csv", "--labels", folder / "l.csv", "--set", "pairwise=true")
    assert "pairwise has no effect" in said


def test_a_check_says_that_no_value_is_missing(folder: Path) -> None:
    said = run("check", folder / "v.csv", "--set", "missing=zz")
    assert "missing has no effect: no vote is 'zz'." in said


def test_votes_as_asks_for_the_order(tmp_path: Path) -> None:
    votes = FILES / "votes_as.csv"
    assert "Use --set order=shown_first" in run(
        "diagnose", votes, "--set", "votes_as=shown", code=2
    )
    assert "--set order=shown_first" in run("check", votes, "--set", "votes_as=shown")
    assert "choose one of: shown, original" in run(
        "check", votes, "--set", "votes_as=swapped", code=2
    )
    said = run("check", votes, "--set", "votes_as=shown", "--set", "order=shown_first")
    assert "2 of 4 votes were given with the responses swapped; 2 were reversed." in said


def test_a_formula_behind_a_semicolon_is_quoted(tmp_path: Path) -> None:
    out = tmp_path / "o.csv"
    write_table(read_table(FILES / "formula_semicolon.csv"), out)
    assert out.read_text().splitlines()[1:] == ['"x;=1+1","a",1', '"y;=cmd|\' /C calc\'!A0","a",0']
    again = pd.read_csv(out)
    assert list(again["item"]) == ["x;=1+1", "y;=cmd|' /C calc'!A0"]
