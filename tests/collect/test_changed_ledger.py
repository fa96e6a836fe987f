"""Ledgers that were changed: each line, booking and setting is checked before anything is counted."""

import json
from pathlib import Path
from typing import Any

import pytest

from judgebayes.collect.ledger import Ledger, Line, bookings_path
from judgebayes.errors import JudgeBayesError
from judgebayes.io.appended import settings_path

ANSWER = Line("q", "j", "A", 1, "AB", None, "exact", "A", "stop", 7, 1, "m", "c")
SETTINGS = {"temperature": 1, "prompt": "x"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Ledger(tmp_path / "v.jsonl", SETTINGS) as ledger:
        ledger.book(1, "j on q")
        ledger.append(ANSWER)
    return tmp_path / "v.jsonl"


def opened(path: Path, settings: dict[str, Any] = SETTINGS) -> Ledger:
    with Ledger(path, settings) as ledger:
        return ledger


def test_an_unchanged_ledger_is_read(path: Path) -> None:
    ledger = opened(path)
    assert ledger.lines == [ANSWER]
    assert ledger.calls == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("sample", value) for value in (True, 1.0, -1, "1", None, 10**400, [1])),
        *(("item", value) for value in (1, None, ["q"])),
        *(("prompt_tokens", value) for value in (-5, 1e300, False, "7")),
        *(("order", value) for value in ("ba", "", 1)),
        *(("vote", value) for value in (1, {"a": 1})),
        ("content", None),
        ("text", float("nan")),
    ],
)
def test_a_changed_field_is_named(path: Path, name: str, value: Any) -> None:
    record = json.loads(path.read_text()) | {name: value}
    path.write_text(path.read_text() + json.dumps(record) + "\n")
    with pytest.raises(JudgeBayesError, match=rf"Line 2 of .* its {name} is"):
        opened(path)


@pytest.mark.parametrize(
    "calls", ["true", "1.0", "-2", "1e999", "null", "[]", "1" * 5000, "9007199254740992"]
)
def test_a_changed_booking_is_refused(path: Path, calls: str) -> None:
    with bookings_path(path).open("a") as file:
        file.write(f'{{"calls": {calls}, "what": "x"}}\n')
    with pytest.raises(JudgeBayesError, match="is not a booking of judgebayes collect"):
        opened(path)


@pytest.mark.parametrize("line", ["not json", "[1]"])
def test_a_line_that_is_no_booking_says_what_to_do(path: Path, line: str) -> None:
    with bookings_path(path).open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(JudgeBayesError, match="Restore the file, or choose another file with -o"):
        opened(path)


@pytest.mark.parametrize("before", ["true", "1.0", '"1"', "null"])
def test_a_setting_of_another_type_is_another_setting(path: Path, before: str) -> None:
    settings_path(path).write_text(f'{{"temperature": {before}, "prompt": "x"}}')
    with pytest.raises(JudgeBayesError, match="was started with another temperature"):
        opened(path)


@pytest.mark.parametrize("content", ["[]", "1", "", "{", '{"prompt": 1, "prompt": "x"}'])
def test_settings_that_are_none_are_not_replaced(path: Path, content: str) -> None:
    settings_path(path).write_text(content)
    with pytest.raises(JudgeBayesError):
        opened(path)
    assert settings_path(path).read_text() == content
