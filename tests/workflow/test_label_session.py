"""A labelling session: its file, its stopping, and what it refuses."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from judgebayes.errors import JudgeBayesError
from judgebayes.majority import SplitCurve, Splits, is_check, labelling_order, stopping_level
from judgebayes.majority.split_curve import MeanLoss
from judgebayes.workflow.label_session import SessionStep, label_session

ITEMS = 40
Step = Callable[..., SessionStep]


@pytest.fixture
def votes() -> pd.DataFrame:
    rng = np.random.default_rng(2)
    said = (rng.random((ITEMS, 5)) < rng.beta(6, 1, ITEMS)[:, None]).astype(int)
    item, judge = np.indices(said.shape)
    return pd.DataFrame({"item": item.ravel(), "judge": judge.ravel(), "vote": said.ravel()})


@pytest.fixture
def step(votes: pd.DataFrame, tmp_path: Path) -> Step:
    def one(new_label: str | None = None, **named: object) -> SessionStep:
        named = {"session": tmp_path / "labels.jsonl", "target": "these"} | named
        return label_session(votes, new_label=new_label, **named)

    return one


def test_labelling_as_proposed_until_the_interval_is_narrow(
    step: Step, votes: pd.DataFrame, tmp_path: Path
) -> None:
    state = step()
    assert len(state.labels) == 0
    assert np.isnan(state.error)
    order = labelling_order(ITEMS, 0)
    used = 0
    while not state.enough:
        assert str(state.next_item) == str(order[used])
        state = step(f"{state.next_item}=1", target_width=0.35)
        used += 1
        assert is_check(used) == bool(np.isfinite(state.width))
    assert used < ITEMS
    lines = (tmp_path / "labels.jsonl").read_text().splitlines()
    assert [str(json.loads(line)["item"]) for line in lines] == [str(i) for i in order[:used]]
    # The same interval, from the split curve itself.
    ones = votes.groupby("item")["vote"].sum().to_numpy()
    labels = np.full(ITEMS, -1)
    labels[order[:used]] = 1
    splits = Splits(np.stack([5 - ones, ones], axis=1), labels, (0, 1))
    curve = (
        SplitCurve().fit(splits).curve(splits, (5,), MeanLoss("these", level=stopping_level(0.9)))
    )
    assert state.width == pytest.approx(float(curve.high[0] - curve.low[0]), abs=0.02)


@pytest.mark.parametrize(
    ("named", "sentence"),
    [
        ({"new_label": "nobody=1"}, "no item 'nobody'"),
        ({"new_label": "3"}, "ITEM=LABEL"),
        ({"new_label": "3=9"}, "9"),
        ({"seed": 1}, "another seed"),
        ({"new_label": "3=1", "session": None}, "--session FILE"),
        ({"target_width": 2.0}, "between 0 and 1"),
        ({"level": 1.5}, "must be a probability"),
    ],
)
def test_what_a_session_refuses_is_not_in_its_file(
    step: Step, tmp_path: Path, named: dict[str, object], sentence: str
) -> None:
    step("7=1")
    before = (tmp_path / "labels.jsonl").read_bytes()
    with pytest.raises(JudgeBayesError, match=sentence):
        step(**named)
    assert (tmp_path / "labels.jsonl").read_bytes() == before


def test_another_label_of_an_item_and_other_votes_are_refused(
    step: Step, votes: pd.DataFrame, tmp_path: Path
) -> None:
    state = step("7=1")
    assert "not those that were proposed" in str(state) or int(labelling_order(ITEMS, 0)[0]) == 7
    with pytest.raises(JudgeBayesError, match="already labelled '1'"):
        step("7=0")
    with pytest.raises(JudgeBayesError, match="another votes"):
        label_session(votes[votes["judge"] < 4], session=tmp_path / "labels.jsonl")
