"""Documents for machines: their schema, and requirements on their numbers."""

import json
import re
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pytest
from documents import closed

from judgebayes.errors import JudgeBayesError
from judgebayes.workflow.machine import (
    CommandResult,
    Requirement,
    document,
    plain,
    read_requirement,
    schema,
    to_json,
)
from judgebayes.workflow.results import rows_of

TABLE = [
    {"method": "sc", "size": 1, "loss": 0.5},
    {"method": "sc", "size": 3, "loss": 0.25},
    {"method": "gemini-2.5-flash", "size": 3, "loss": None},
]
RESULT = {
    "win_rate": {"low": 0.51, "high": 0.7},
    "method": "davidson",
    "good": True,
    "tables": {"held out": TABLE, "judges": [{"judge": "gpt-4.1", "votes": 3}]},
}
CONTENT = document("calibrate", "1", CommandResult(RESULT), exit_code=0)


@pytest.mark.parametrize(
    ("text", "value", "holds"),
    [
        ("win_rate.low>0.5", 0.51, True),
        ("win_rate.low > .51", 0.51, False),
        ("result.win_rate.low>=.51", 0.51, True),
        ("win_rate.high != 0.7", 0.7, False),
        ("exit_code==0", 0, True),
        ("tables.judges.gpt-4.1.votes<3", 3, False),
        ("tables.judges.0.votes<=3", 3, True),
        ("tables.held out.sc.3.loss<1e-1", 0.25, False),
        ("tables.held out.0.loss<1", 0.5, True),
        ("tables.held out.gemini-2.5-flash.loss<1", None, False),
        ("tables.held out.gemini-2.5-flash.loss>=0", None, False),
    ],
)
def test_a_requirement_reads_any_number(text: str, value: float | None, holds: bool) -> None:
    checked = read_requirement(text).check(CONTENT)
    assert (checked["value"], checked["holds"]) == (value, holds)


@pytest.mark.parametrize(
    "text",
    [
        *("", "win_rate.low", "win_rate.low=0.5", "win_rate.low=>0.5", "win_rate.low>", ">0.5"),
        *("win_rate.low>half", "win_rate.low>0,5", "0.5<win_rate.low", "win_rate.low>nan"),
        *("win_rate.low>inf", "0<win_rate.low<1", "win_rate.low>0.5 and win_rate.high<1"),
    ],
)
def test_a_broken_requirement_is_one_sentence(text: str) -> None:
    sentence = f"--require {text!r} is not a path, one of >=, <=, ==, !=, >, <, and a number"
    with pytest.raises(JudgeBayesError, match=re.escape(sentence)) as caught:
        read_requirement(text)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("win_rat.low", "the JSON has no 'win_rat.low'. Did you mean 'win_rate.low'?"),
        ("tables.judges.gpt-4.votes", "Did you mean 'tables.judges.gpt-4.1.votes'?"),
        ("tables.held out.sc.loss", "Did you mean 'tables.held out.sc.3.loss'?"),
        ("tables.judges.7.votes", "Did you mean 'tables.judges.0.votes'?"),
        ("xyz", "the JSON has no 'xyz'. The JSON has 'win_rate', 'method', 'good', 'tables'"),
        ("method", "'method' is not a number."),
        ("win_rate", "'win_rate' is not a number. Did you mean 'win_rate.low'?"),
        ("findings", "'findings' is not a number."),
    ],
)
def test_a_path_that_is_no_number_says_what_is_there(path: str, words: str) -> None:
    with pytest.raises(JudgeBayesError) as caught:
        Requirement(path, ">", 0.0).check(CONTENT)
    assert words in str(caught.value)


def test_what_is_not_finite_is_null() -> None:
    values = {
        "scalar": np.float32(np.nan),
        "array": np.array([1.0, np.inf]),
        "inner": ({"x": -float("inf")}, np.int8(3), np.True_),
        "path": Path("a") / "b",
    }
    expected = {"scalar": None, "array": [1.0, None], "inner": [{"x": None}, 3, True]}
    assert plain(values) == expected | {"path": str(Path("a") / "b")}
    assert rows_of(pd.DataFrame({"x": [np.nan, np.inf, 0.1]})) == [
        {"x": None},
        {"x": None},
        {"x": 0.1},
    ]
    text = to_json(document("calibrate", "1", CommandResult(values), exit_code=0))
    assert "NaN" not in text
    assert "Infinity" not in text


def test_the_schema_is_valid_and_refuses_what_it_should() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    checker = jsonschema.Draft202012Validator(schema())
    said = {
        "schema": "x/1",
        "sentences": [],
        "next_steps": [],
        "tables": {"answers": [{"item": "a"}]},
    }
    applied = said | {"method": "sc", "items": 3, "judges": 1, "decisions": {"A": 3}}
    done = document("apply", "1", CommandResult(applied), exit_code=0)
    assert checker.is_valid(done)
    assert checker.is_valid(done | {"more": 1})  # a later version may add keys
    assert not jsonschema.Draft202012Validator(closed(schema())).is_valid(done | {"more": 1})
    for broken in (
        {"schema": "judgebayes.command/2"},
        {"command": "nothing"},
        {"exit_code": 3},
        {"findings": [{"severity": "ugly"}]},
        {"result": None},  # without an error
        {"result": done["result"] | {"items": "3"}},
        {"result": said},
        {"required": [{"requirement": "x>1", "value": 2.0}]},
    ):
        assert not checker.is_valid(done | broken), broken
    for key in done:
        assert not checker.is_valid({k: v for k, v in done.items() if k != key}), key
    failed = document("example", "1", None, exit_code=2, error="No.")
    assert checker.is_valid(failed)
    assert not checker.is_valid(failed | {"exit_code": 0})
    assert json.loads(to_json(failed)) == failed
