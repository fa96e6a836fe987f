import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from judgebayes.cli import app


@pytest.fixture
def wide(tmp_path: Path) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 2, 120)
    right = rng.random((120, 3)) < (0.9, 0.8, 0.7)
    table = pd.DataFrame(
        np.where(right, gold[:, None], 1 - gold[:, None]).astype(float), columns=list("abc")
    )
    table.loc[::4, "c"] = np.nan
    return table.assign(broken=1.0 - gold, gold=gold, id=np.arange(120))


def run(tmp_path: Path, table: pd.DataFrame, *args: str) -> str:
    table.to_csv(tmp_path / "votes.csv", index=False)
    result = CliRunner().invoke(app, ["diagnose", str(tmp_path / "votes.csv"), "--wide", *args])
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def test_judges_are_listed_and_faults_named(tmp_path: Path, wide: pd.DataFrame) -> None:
    out, plot = tmp_path / "judges.csv", tmp_path / "judges.png"
    said = run(tmp_path, wide, "--label", "gold", "--out", str(out), "--plot", str(plot))
    assert "4 of 4 judges, in % with 90 % intervals" in said
    assert "x broken: wrong on all of 120 labelled items" in said
    assert (
        "1 judge(s) gave fewer than 90 % of the requested votes in a readable form: c (75 %)"
        in said
    )
    table = pd.read_csv(out).set_index("judge")
    assert table.loc["broken", "accuracy"] == 0
    assert table.loc["c", "missing"] == 0.25
    assert plot.stat().st_size > 3000


def test_constant_labels_are_a_finding_not_an_error(tmp_path: Path, wide: pd.DataFrame) -> None:
    table = wide.drop(columns="broken")
    right = table[list("abc")].eq(table["gold"], axis=0).astype(float)
    right = right.where(table[list("abc")].notna())
    said = run(tmp_path, right.assign(id=table["id"], gold=1), "--label", "gold")
    assert "All 120 labels are class 1. A calibrator learns that constant and looks perfect" in said
    words = right.replace({1.0: "yes", 0.0: "no"}).assign(id=table["id"], gold="yes")
    plot = tmp_path / "judges.png"
    named = run(tmp_path, words, "--label", "gold", "--plot", str(plot))
    assert "All 120 labels are class yes." in named
    assert plot.stat().st_size > 3000


def test_without_labels_the_votes_alone_are_looked_at(tmp_path: Path, wide: pd.DataFrame) -> None:
    said = run(tmp_path, wide.drop(columns=["gold", "broken"]), "--judges", "2")
    assert "2 of 3 judges" in said
    assert "No item has a label" in said
    assert "c (75 %)" in said
    assert "no problem prevents calibration" not in said
    heads = next(line for line in said.splitlines() if line.startswith("judge"))
    shares = ["share", "0", "share", "1"]
    assert heads.split() == ["judge", "votes", "missing", "agreement", *shares]
    assert "judges are compared with one another" in said
    votes, plot = str(tmp_path / "votes.csv"), str(tmp_path / "judges.png")
    refused = CliRunner().invoke(app, ["diagnose", votes, "--wide", "--plot", plot])
    assert "it needs labels of some items" in str(refused.exception)


def test_of_many_judges_both_ends_are_shown_and_said(tmp_path: Path, wide: pd.DataFrame) -> None:
    said = run(tmp_path, wide, "--label", "gold", "--judges", "3")
    assert "2 most and 1 least accurate of 4 judges" in said


def test_a_line_per_judge_on_a_narrow_console(
    tmp_path: Path, wide: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    names = {"a": "maker/a-model-with-a-long-name-1", "b": "maker/a-model-with-a-long-name-2"}
    said = run(tmp_path, wide.rename(columns=names), "--label", "gold").splitlines()
    start = next(i for i, line in enumerate(said) if line.startswith("judge "))
    rows = said[start + 1 : start + 5]
    assert all(len(line) <= 80 for line in said[start : start + 5])
    assert [row.split()[0][-2:] for row in rows[:2]] == ["-1", "-2"]
    assert "…" in rows[0]
    assert said[start + 5].startswith("Not shown, because the terminal is too narrow: votes")


def test_similar_names_get_more_width(
    tmp_path: Path, wide: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    names = {n: f"maker/model-of-{n}-judges-with-the-same-long-end-of-name" for n in "abc"}
    said = run(tmp_path, wide.rename(columns=names), "--label", "gold").splitlines()
    start = next(i for i, line in enumerate(said) if line.startswith("judge "))
    shown = [row.split()[0] for row in said[start + 1 : start + 5]]
    assert all("…" in name for name in shown if name != "broken")
    assert len(set(shown)) == 4
    assert all(len(line) <= 80 for line in said[start : start + 5])


def test_in_a_terminal_findings_break_between_words_and_names_stay_whole(
    tmp_path: Path, wide: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("FORCE_COLOR", "1")
    name = "a-maker/of-a-judge-whose-name-is-far-longer-than-a-line-of-this-terminal"
    said = run(tmp_path, wide.rename(columns={"broken": name}), "--label", "gold")
    lines = re.sub("\x1b\\[[0-9;]*m", "", said).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("x "))
    finding = []
    for line in lines[start:]:
        if finding and not line.startswith("  "):
            break
        finding.append(line[2:].rstrip())
    assert all(len(line) <= 58 for line in finding)
    assert f"{name}:" in "".join(finding[:2])
    assert "wrong on all of 120 labelled items. This is implausible" in " ".join(finding[1:])


def test_what_groups_change_is_said(tmp_path: Path, wide: pd.DataFrame) -> None:
    table = wide.drop(columns="broken").assign(program=lambda t: t["id"] // 6)
    outs = tmp_path / "with.csv", tmp_path / "without.csv"
    plain = run(tmp_path, table.drop(columns="program"), "--label", "gold", "--out", str(outs[1]))
    ask = ("--label", "gold", "--group", "program", "--out", str(outs[0]))
    said = run(tmp_path, table, *ask)
    assert "--group" not in plain
    assert (
        "120 items in 20 groups of column 'program', and 120 labelled items in 20 of them" in said
    )
    grouped, alone = (pd.read_csv(out) for out in outs)
    np.testing.assert_allclose(grouped["accuracy"], alone["accuracy"])
    wide_each, narrow = (t["accuracy_high"] - t["accuracy_low"] for t in (grouped, alone))
    ratio = wide_each / narrow
    assert ratio.max() > 1.01
    assert f"{ratio.median():.2f} times as wide as without groups (median; " in said
    assert f"{ratio.min():.2f} to {ratio.max():.2f})" in said


def test_titles_are_whole_above_narrow_tables(tmp_path: Path, wide: pd.DataFrame) -> None:
    one = wide[["id", "a", "gold"]]
    assert "\nThe judge, in % with 90 % intervals:\n" in run(tmp_path, one, "--label", "gold")
