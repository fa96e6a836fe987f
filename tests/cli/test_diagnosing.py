import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from report.test_report import check
from runner import CliRunner

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
    result = CliRunner().invoke(
        app, ["diagnose", str(tmp_path / "votes.csv"), "--set", "wide=true", *args]
    )
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def test_judges_are_listed_and_faults_named(tmp_path: Path, wide: pd.DataFrame) -> None:
    out, page = tmp_path / "judges.csv", tmp_path / "judges.html"
    said = run(tmp_path, wide, "--label", "gold", "--out", str(out), "--html", str(page))
    assert "4 of 4 judges, in % with 90 % intervals" in said
    assert "x broken: wrong on all of 120 labelled items" in said
    assert (
        "1 judge(s) gave fewer than 90 % of the requested votes in a readable form: c (75 %)"
        in said
    )
    table = pd.read_csv(out).set_index("judge")
    assert table.loc["broken", "accuracy"] == 0
    assert table.loc["c", "missing"] == 0.25
    assert len(check(page.read_text()).of("svg")) == 1


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
