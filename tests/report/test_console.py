"""Escape sequences of files do not reach the terminal."""

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.table import Table
from runner import CliRunner

from judgebayes.cli import app
from judgebayes.finding import Finding
from judgebayes.show.console import Console, say_findings, show_rows

EVIL = "\x1b[2J\x1b]0;title\x07\x9b31m\rname"


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    rng = np.random.default_rng(0)
    label = rng.choice([-1, 0, 1], 40)
    right = rng.random((40, 3)) < 0.8
    vote = np.where(right, label[:, None], rng.choice([-1, 0, 1], (40, 3)))
    items = [f"{EVIL}{i}" for i in range(40)]
    judges = [f"{EVIL}j{j}" for j in range(3)]
    pd.DataFrame({"item": np.repeat(items, 3), "judge": judges * 40, "vote": vote.ravel()}).to_csv(
        tmp_path / "votes.csv", index=False
    )
    pd.DataFrame({"item": items, "label": label}).to_csv(tmp_path / "labels.csv", index=False)
    return [str(tmp_path / "votes.csv"), "--labels", str(tmp_path / "labels.csv")]


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("diagnose", []),
        ("check", []),
        ("calibrate", ["--method", "davidson", "--splits", "3"]),
        ("calibrate", ["--set", f"only_judge={EVIL}x"]),
    ],
)
def test_names_with_escape_sequences_are_shown(
    files: list[str], command: str, options: list[str]
) -> None:
    result = CliRunner().invoke(app, [command, *files, *options])
    said = result.output + str(result.exception or "")
    assert [c for c in said if not c.isprintable() and c != "\n"] == []


def test_colours_remain_and_columns_keep_their_width() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, color_system="standard", width=60)
    table = Table("judge", "votes")
    table.add_row(EVIL, "12")
    console.print("[bold red]Error:[/] ", end="")
    console.print(table, markup=False)
    said = console.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b[1;31mError:" in said
    assert r"\x1b[2J" in said
    assert "\x1b[2J" not in said
    assert "\x07" not in said


def test_a_guess_that_an_option_settles_is_a_question(capsys: pytest.CaptureFixture[str]) -> None:
    say_findings([Finding("bad", "Which?", option="--set wide=true"), Finding("bad", "Wrong.")])
    said = capsys.readouterr().out
    assert [line.split()[0] for line in said.splitlines()] == ["?", "x"]


def test_least_needed_columns_are_left_out_and_named_on_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [["gpt", "0.91", "0.88 to 0.94"]]
    said = {}
    for width in ("25", "80"):
        monkeypatch.setenv("COLUMNS", width)
        show_rows("Judges", ["judge", "rate", "interval"], rows, least_needed=["interval"])
        said[width] = capsys.readouterr().out
    assert "0.94" in said["80"]
    assert "Not shown" not in said["80"]
    assert "0.91" in said["25"]
    assert "0.94" not in said["25"]
    assert "too narrow: interval" in " ".join(said["25"].split())
