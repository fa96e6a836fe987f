"""The record of a finished result: what was changed is not believed, and the result is made again."""

import hashlib
import json
from pathlib import Path
from typing import Any

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


@pytest.mark.parametrize(
    "change",
    [
        *({name: None} for name in ("files", "columns", "rows", "notes", "undefined", "pictures")),
        *({"rows": rows} for rows in ([1], [[1, 2]], {"a": 1})),
        *({"files": files} for files in ([], {"e.csv": 1}, {"none.csv": "0"})),
        {"columns": [1]},
        {"more": 1},
    ],
)
def test_a_record_with_the_right_digest_and_other_fields(out: Path, change: dict[str, Any]) -> None:
    record = json.loads(record_of(out).read_text().partition("\n")[2]) | change
    text = json.dumps(record)
    digest = hashlib.sha256(text.encode()).hexdigest()
    record_of(out).write_text(f"{digest}\n{text}")
    assert finished(RESULT, Run(), out) is None
