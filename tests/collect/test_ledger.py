"""The ledger: calls, replies, settings and budgets over runs."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from judgebayes.collect.ledger import Budget, Ledger, Question, ledger_path, open_ledger
from judgebayes.collect.replies import Answer
from judgebayes.errors import JudgeBayesError

ASKED = Question("j", "q", 1, "AB", "c")
ANSWER = Answer("A \ud83d \0", "stop", 7, 1, "m")
SETTINGS = {"temperature": 1, "prompt": "x"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of votes whose ledger has one answer."""
    with open_ledger(tmp_path / "v.jsonl", SETTINGS) as ledger:
        ledger.answered(ledger.book(ASKED), ASKED, ANSWER)
    return tmp_path / "v.jsonl"


def opened(path: Path, settings: dict[str, Any] = SETTINGS) -> Ledger:
    with open_ledger(path, settings) as ledger:
        return ledger


def test_an_answer_is_read_as_it_was_written(path: Path) -> None:
    ledger = opened(path)
    assert ledger.replies == {ASKED: ANSWER}
    assert (ledger.calls, ledger.tokens, ledger.largest) == (1, 8, 8)


def test_lost_calls_count_in_later_runs(tmp_path: Path) -> None:
    made = 0
    for _ in range(3):
        with open_ledger(tmp_path / "v.jsonl", {}) as ledger:
            while ledger.short_of(Budget(calls=4)) is None:
                ledger.under_way.discard(ledger.book(ASKED))
                made += 1
    assert made == 4


def test_refused_calls_are_taken_back(tmp_path: Path) -> None:
    for _ in range(2):
        with open_ledger(tmp_path / "v.jsonl", {}) as ledger:
            assert ledger.short_of(Budget(1)) is None
            call = ledger.book(ASKED)
            assert ledger.short_of(Budget(1)) == "calls"
            ledger.refused(call)


def test_a_lost_call_costs_as_many_tokens_as_the_most_costly_one(path: Path) -> None:
    with open_ledger(path, SETTINGS) as ledger:
        ledger.under_way.discard(ledger.book(ASKED))
    with open_ledger(path, SETTINGS) as ledger:
        assert ledger.short_of(Budget(tokens=24)) is None
        assert ledger.short_of(Budget(tokens=23)) == "tokens"


def test_a_second_run_waits(path: Path) -> None:
    with (
        open_ledger(path, SETTINGS),
        pytest.raises(JudgeBayesError, match="Another run is writing to"),
    ):
        opened(path)
    assert opened(path).calls == 1


@pytest.mark.parametrize("now", [True, 1.0, "1", None])
def test_a_setting_of_another_type_is_another_setting(path: Path, now: Any) -> None:
    with pytest.raises(JudgeBayesError, match="was started with another temperature"):
        opened(path, SETTINGS | {"temperature": now})
    assert opened(path, SETTINGS | {"model of judge 'k'": "m"}).calls == 1
    with pytest.raises(JudgeBayesError, match="was started with another model of judge 'k'"):
        opened(path, {"model of judge 'k'": "n"})


def test_settings_that_got_no_answer_may_change(tmp_path: Path) -> None:
    for calls, temperature in enumerate((1, 2, 3)):
        with open_ledger(tmp_path / "v.jsonl", {"temperature": temperature}) as ledger:
            assert ledger.calls == calls  # each may be charged for
            ledger.book(ASKED)


@pytest.mark.parametrize("content", [b"[]", b"not a database" * 999])
def test_a_ledger_that_is_none_is_one_sentence_and_stays(path: Path, content: bytes) -> None:
    ledger_path(path).write_bytes(content)
    with pytest.raises(JudgeBayesError, match="cannot be read or written: file is not a database"):
        opened(path)
    assert ledger_path(path).read_bytes() == content


@pytest.mark.parametrize("reply", ["[]", "{}", "no JSON"])
def test_a_row_that_is_no_call_is_one_sentence(path: Path, reply: str) -> None:
    with closing(sqlite3.connect(ledger_path(path))) as database, database:
        database.execute("UPDATE calls SET reply = ?", (reply,))
    with pytest.raises(JudgeBayesError, match="a row is not a call of this command"):
        opened(path)


def test_a_file_of_votes_without_a_ledger_stays(tmp_path: Path) -> None:
    """Such as those of earlier versions, whose answers were paid for."""
    path = tmp_path / "v.jsonl"
    path.write_text("{}\n")
    with pytest.raises(JudgeBayesError, match=r"has no ledger 'v\.jsonl\.sqlite' beside it"):
        opened(path)
    assert [each.name for each in tmp_path.iterdir()] == ["v.jsonl"]
