"""The record of a finished result: what was changed is not believed, and the result is made again."""

from pathlib import Path

import pytest

from judgebayes.experiments.core import Experiment, Output, Run, rows
from judgebayes.experiments.resuming import UNFINISHED, finish, finished

PAPER, NAME = "distribution-calibrated", "e"
NUMBERS = [
    {"dataset": "d", "n": n, "method": "m", "metric": "mae", "value": float(n)} for n in (1, 2)
]
RESULT = Experiment(
    PAPER, NAME, "Title", "Claim", (), True, lambda _: Output(rows(PAPER, NAME, NUMBERS))
)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    finish(RESULT, Run(), tmp_path)
    return tmp_path


def record_of(out: Path) -> Path:
    return next((out / UNFINISHED / "results").glob("*.json"))


def test_an_unchanged_result_is_not_made_again(out: Path) -> None:
    done = finished(RESULT, Run(), out)
    assert done is not None
    assert done.output.table["value"].tolist() == [1.0, 2.0]
    assert finished(RESULT, Run(seed=1), out) is None


def test_a_changed_record_is_made_again(out: Path) -> None:
    text = record_of(out).read_text()
    record_of(out).write_text(text.replace("2.0", "3.0"))
    assert finished(RESULT, Run(), out) is None
    record_of(out).write_text(text[: len(text) // 2])
    assert finished(RESULT, Run(), out) is None
