"""JSONL by column gives the table that pandas makes of all records; no line is read with another one."""

import json
import random
from pathlib import Path

import pandas as pd
import pytest

from judgebayes.errors import JudgeBayesError
from judgebayes.io import records
from judgebayes.io.records import read_lines
from judgebayes.io.tables import read_table

VALUES = (
    0,
    1.5,
    None,
    "x",
    "é",
    '"',
    "\ud83d",
    True,
    2**70,
    float("nan"),
    [1],
    {"a": [1]},
    "{",
    "}{",
)


def nested_as_text(value: object) -> object:
    return json.dumps(value) if isinstance(value, list | dict) else value


@pytest.mark.parametrize("seed", range(60))
def test_a_table_has_the_records_of_its_lines_one_by_one(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    some = rng.sample(VALUES, rng.randint(1, 4))
    rows = [
        {name: rng.choice(some) for name in "abc" if rng.random() < 0.9} | {"d": n}
        for n in range(rng.randint(1, 12))
    ]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" * rng.choice([1, 1, 2]) for row in rows))
    lines = path.read_text().split("\n")
    one_by_one = {n: records.parse_json(t, "", "", float) for n, t in enumerate(lines, 1) if t}
    assert repr(dict(read_lines(path))) == repr(one_by_one)
    as_written = {n: records.parse_json(t, "", "", str) for n, t in enumerate(lines, 1) if t}
    cells = [
        pd.Series({k: nested_as_text(v) for k, v in row.items()}, dtype=object)
        for row in as_written.values()
    ]
    table = read_table(path)
    expected = pd.DataFrame(cells, index=list(as_written), dtype=object)[list(table.columns)]
    assert repr(table.astype(object).to_dict("list")) == repr(expected.to_dict("list"))
    assert list(table.index) == list(as_written)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (['{"a": 1}, {"a": 2}', '{"a": 3}'], "Line 1 of .* is not JSON"),
        (['{"a": "x}', '{b": 1}', '{"a": 1}, {"b": 2}'], "Line 1 of .* is not JSON"),
        (['{"a": 1}, {"b": [{}', "{}]}"], "Line 1 of .* is not JSON"),
        (['{"a": 1}', '{"a": 1, "a": 2}'], "Line 2 of .* two fields named 'a'"),
        (['{"a": 1}', '{"a": "x", "a": "y"}'], "Line 2 of .* two fields named 'a'"),
        (['{"a": 1}', '{"a": ' * 200 + "1" + "}" * 200], "Line 2 of .* is nested too deeply"),
        (['{"a": 1}', "7"], "Line 2 of .* is not an object but int"),
    ],
)
def test_every_line_is_an_object_of_its_own(lines: list[str], said: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(lines))
    with pytest.raises(JudgeBayesError, match=said):
        read_table(path)


def test_long_numbers_are_floats_as_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1}\n{"a": 1' + "0" * 301 + "}\n")
    assert read_table(path)["a"].tolist() == [1.0, 1e301]
