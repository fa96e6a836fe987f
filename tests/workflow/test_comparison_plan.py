"""The number of splits of a comparison follows from its sizes."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

import judgebayes as jb
from judgebayes.workflow.calibrating import read_request
from judgebayes.workflow.comparison_plan import plan_words, splits_of
from judgebayes.workflow.options import CalibrateRequest

CLASSES = tuple("abcdefghij")


def crowd(items: int, workers: int) -> CalibrateRequest:
    """Return the request for a crowd in ten classes, all of whose items have labels."""
    rng = np.random.default_rng(0)
    names = [f"i{i}" for i in range(items)]
    votes = pd.DataFrame(
        {
            "item": np.repeat(names, 4),
            "judge": [f"w{j}" for j in rng.integers(0, workers, 4 * items)],
            "vote": rng.choice(CLASSES, 4 * items),
        }
    ).drop_duplicates(["item", "judge"])
    labels = pd.DataFrame({"item": names, "label": rng.choice(CLASSES, items)})
    return CalibrateRequest(votes=votes, labels=labels, classes=",".join(CLASSES))


def test_a_long_comparison_has_fewer_splits_and_says_so() -> None:
    request = crowd(items=700, workers=44)
    data = read_request(request)
    splits = splits_of(request, data)
    assert 20 <= splits < 100
    (words,) = plan_words(request, data)
    assert f"on {splits} splits" in words
    assert "The usual 100 would take about" in words
    with_more = dataclasses.replace(request, splits=100)
    assert splits_of(with_more, data) == 100
    assert "The usual" not in plan_words(with_more, data)[0]


def test_a_short_comparison_has_the_usual_splits() -> None:
    request = crowd(items=60, workers=5)
    data = read_request(request)
    assert splits_of(request, data) == 100
    assert plan_words(request, data) == []


def test_the_result_says_how_many_splits_there_were(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judgebayes.workflow.comparison_plan.USUAL_SPLITS", 3)
    votes = pd.DataFrame({"item": range(12), "ann": [0, 1] * 6, "ben": [0, 1, 1] * 4})
    labels = pd.DataFrame({"item": range(12), "label": [0, 1] * 6})
    result = jb.calibrate(votes, labels=labels, wide=True, method="vote-share", calibrator="none")
    assert result.request.splits == 3
    assert result.compared is not None
    assert len(result.compared.parts.calibration) == 3
