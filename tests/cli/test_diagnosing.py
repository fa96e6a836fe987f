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
    found = CliRunner().invoke(app, ["diagnose", str(tmp_path / "votes.csv"), "--wide", *args])
    assert found.exit_code == 0, (found.output, found.exception)
    return found.output


def test_judges_are_listed_and_faults_named(tmp_path: Path, wide: pd.DataFrame) -> None:
    out, plot = tmp_path / "judges.csv", tmp_path / "judges.png"
    said = run(tmp_path, wide, "--label", "gold", "--out", str(out), "--plot", str(plot))
    assert "4 of 4 judges, in % with 90 % intervals" in said
    assert "x broken: wrong on all of 120" in said
    assert "1 judge(s) gave a readable vote less often than 90%: c (75%)" in said
    table = pd.read_csv(out).set_index("judge")
    assert table.loc["broken", "accuracy"] == 0
    assert table.loc["c", "missing"] == 0.25
    assert plot.stat().st_size > 3000


def test_constant_labels_are_a_finding_not_an_error(tmp_path: Path, wide: pd.DataFrame) -> None:
    table = wide.drop(columns="broken")
    right = table[list("abc")].eq(table["gold"], axis=0).astype(float)
    right = right.where(table[list("abc")].notna())
    said = run(tmp_path, right.assign(id=table["id"], gold=1), "--label", "gold")
    assert "A calibrator learns that constant and looks perfect" in said


def test_without_labels_the_votes_alone_are_looked_at(tmp_path: Path, wide: pd.DataFrame) -> None:
    said = run(tmp_path, wide.drop(columns=["gold", "broken"]), "--judges", "2")
    assert "2 of 3 judges" in said
    assert "No item has a label" in said
    assert "c (75%)" in said


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
    assert said[start + 5].startswith("Too wide to show here: votes (--out FILE)")
