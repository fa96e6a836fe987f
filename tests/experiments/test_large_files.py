"""The measurement of commands on large files: what is counted, and where it ends."""

import sys
from pathlib import Path

import pandas as pd

from judgebayes.experiments.speed.large_files import commands, measured, table_of, write_votes

HOLD = "x = bytearray({} * 2**20); import time; time.sleep({})"


def test_memory_and_errors_are_measured(tmp_path: Path) -> None:
    small = measured([sys.executable, "-c", HOLD.format(1, 0.1)], tmp_path, 500)
    large = measured([sys.executable, "-c", HOLD.format(100, 0.1)], tmp_path, 500)
    assert 90 < large.peak_mb - small.peak_mb < 110
    assert large.said == ""
    ended = measured([sys.executable, "-c", HOLD.format(300, 60)], tmp_path, 100)
    assert ended.said == "ended by this program, above 100 MB"
    assert ended.seconds < 30
    failed = measured([sys.executable, "-c", "raise SystemExit('no')"], tmp_path, 100)
    assert failed.said == "no"
    assert table_of({"a": failed}).splitlines()[-1].endswith("| no |")


def test_the_files_have_ten_votes_an_item(tmp_path: Path) -> None:
    write_votes(tmp_path, 100)
    votes = pd.read_csv(tmp_path / "votes.csv")
    assert (votes.groupby("item").size() == 10).all()
    assert len(pd.read_csv(tmp_path / "labels.csv")) == 100
    systems = pd.read_csv(tmp_path / "systems.csv")
    assert systems.drop(columns="system").equals(votes)
    assert {words[0] for words in commands(tmp_path).values()} >= {"check", "apply", "report"}
