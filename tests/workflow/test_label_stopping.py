"""`ensemble` with a target width: the next item to label, and when to stop."""

import numpy as np
import pandas as pd
import pytest

import judgebayes as jb
from judgebayes.errors import JudgeBayesError
from judgebayes.majority import SplitCurve, Splits, is_check, labelling_order, stopping_level
from judgebayes.majority.split_curve import MeanLoss
from judgebayes.workflow.ensembling import MajorityError

ITEMS = 40


@pytest.fixture
def votes() -> pd.DataFrame:
    rng = np.random.default_rng(2)
    said = (rng.random((ITEMS, 5)) < rng.beta(6, 1, ITEMS)[:, None]).astype(int)
    item, judge = np.indices(said.shape)
    return pd.DataFrame({"item": item.ravel(), "judge": judge.ravel(), "vote": said.ravel()})


def asked(votes: pd.DataFrame, labelled: list[object], width: float = 0.35) -> MajorityError:
    labels = pd.DataFrame({"item": labelled, "label": 1})
    return jb.ensemble(votes, labels, target_width=width, target="these")


def test_labelling_as_proposed_until_the_interval_is_narrow(votes: pd.DataFrame) -> None:
    order = labelling_order(ITEMS, 0)
    labelled: list[object] = [int(item) for item in order[:10]]
    while (stop := asked(votes, labelled).stop) is not None and not stop.enough:
        assert str(stop.next_item) == str(order[len(labelled)])
        assert is_check(len(labelled)) == bool(np.isfinite(stop.width))
        labelled.append(stop.next_item)
    used = len(labelled)
    assert stop is not None
    assert used < ITEMS
    # The same interval, from the split curve itself.
    ones = votes.groupby("item")["vote"].sum().to_numpy()
    labels = np.full(ITEMS, -1)
    labels[order[:used]] = 1
    splits = Splits(np.stack([5 - ones, ones], axis=1), labels, (0, 1))
    curve = (
        SplitCurve().fit(splits).curve(splits, (5,), MeanLoss("these", level=stopping_level(0.9)))
    )
    assert stop.width == pytest.approx(float(curve.high[0] - curve.low[0]), abs=0.02)


def test_labels_that_were_not_proposed_are_named(votes: pd.DataFrame) -> None:
    last = int(labelling_order(ITEMS, 0)[-1])
    result = asked(votes, [last])
    assert "are not those that were proposed" in str(result)
    assert {"width", "enough", "next_item"} <= result.to_dict().keys()
    with pytest.raises(JudgeBayesError, match="between 0 and 1"):
        asked(votes, [last], 2.0)
