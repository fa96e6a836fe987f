"""Copies of records are no repeated votes, and a criterion makes another judge."""

import copy
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from fuzz.mutators import to_json_bytes
from fuzz.seeds import VALID

import judgebayes as jb
from judgebayes.errors import JudgeBayesError
from judgebayes.io.formats import import_votes

LOG = pd.DataFrame(
    {
        "item": [0, 1, 2, 3] * 2,
        "judge": list("aaaabbbb"),
        "vote": [0, 1, 0, 1, 1, 1, 0, 0],
        "at": range(8),
    }
)


def test_identical_records_count_once_and_are_counted() -> None:
    doubled = pd.concat([LOG, LOG.head(3)])
    data = jb.read(doubled)
    assert (data.votes.index == jb.read(LOG).votes.index).all()
    assert any(line.startswith("3 record(s) are identical") for line in data.sentences)
    # They are no repeated votes either if repeated votes are announced.
    assert (jb.read(doubled, repeats=True).votes.index == data.votes.index).all()


def test_records_that_nothing_tells_apart_are_repeated_votes_only_if_the_user_says_so() -> None:
    plain = pd.concat([LOG, LOG.assign(vote=[0, 1, 0, 0, 1, 1, 0, 0])]).drop(columns="at")
    with pytest.raises(JudgeBayesError, match="--set repeats=true"):
        jb.read(plain)
    assert jb.read(plain, repeats=True).votes.n_samples == 2


def test_a_criterion_makes_another_judge_unless_the_judge_is_named() -> None:
    table = pd.concat([LOG.assign(rubric="tone"), LOG.assign(rubric="facts", vote=1 - LOG["vote"])])
    table["at"] = range(16)
    data = jb.read(table)
    assert list(data.coding.judges) == ["a / tone", "b / tone", "a / facts", "b / facts"]
    assert any("'rubric' has 2 values" in line for line in data.sentences)
    assert (jb.read(table, judge="judge,rubric").labels == data.labels).all()
    with pytest.raises(JudgeBayesError, match="are the same vote"):
        jb.read(table, judge="judge")


@pytest.mark.parametrize(
    ("names", "judges"),
    [
        (("tone", "facts"), {"a / tone", "b / tone", "a / facts", "b / facts"}),
        (("run1", "run2"), {"a", "b"}),
    ],
)
def test_files_of_a_judge_are_criteria_or_runs(
    tmp_path: Path, names: tuple[str, str], judges: set[str]
) -> None:
    for name in names:
        LOG.drop(columns="at").to_csv(tmp_path / f"{name}.csv", index=False)
    data = jb.read(tmp_path)
    assert set(data.coding.judges) == judges
    assert any("several files" in line for line in data.sentences)
    assert data.numbers["votes"] == 16


@pytest.mark.parametrize("form", ["inspect", "lm-eval"])
def test_a_record_twice_in_one_log_counts_once(form: str, tmp_path: Path) -> None:
    """A copy is no repeated vote; a record that differs in its answer is none."""
    name, content = VALID[form]
    once = import_votes(form, _written(tmp_path / "once" / name, content))
    doubled = copy.deepcopy(content)
    records = doubled if isinstance(doubled, list) else doubled["samples"]
    records.append(copy.deepcopy(records[0]))
    twice = import_votes(form, _written(tmp_path / "twice" / name, doubled))
    pd.testing.assert_frame_equal(twice.votes, once.votes)
    assert twice.dropped["identical to an earlier record"] == 1
    assert twice.read == once.read + 1


def _written(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True)
    path.write_bytes(to_json_bytes(content, path.suffix == ".jsonl"))
    return path
