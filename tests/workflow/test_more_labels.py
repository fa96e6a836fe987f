"""What more labels would gain: the sentence, and what cannot be forecast."""

import numpy as np
import pandas as pd
import pytest

import judgebayes as jb
from judgebayes.evaluate.learning_curve import Forecast
from judgebayes.measures.significance import Interval
from judgebayes.workflow.more_labels import MoreLabels

ITEMS = 60


@pytest.fixture(scope="module")
def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Votes of two judges on sixty items, and their labels."""
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, ITEMS)
    right = rng.random((ITEMS, 2)) < (0.8, 0.7)
    item, judge = (x.ravel() for x in np.indices(right.shape))
    vote = np.where(right.ravel(), label[item], 1 - label[item])
    votes = pd.DataFrame({"item": item, "judge": judge, "vote": vote})
    return votes, pd.DataFrame({"item": np.arange(ITEMS), "label": label})


def test_the_forecast_is_said_and_given(tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    """The sentence and the numbers agree."""
    result = jb.calibrate(*tables, method="best-constant", splits=10, forecast=60)
    numbers = result.to_dict()["more_labels"]
    assert numbers["labels"] == 120
    assert f"is expected to be {numbers['nll']['estimate']:.3f}" in result.sentences[-1]
    assert f"lower by about {numbers['gain']:.3f}" in result.sentences[-1]
    assert "With 60 more labels of random items (120 in all)" in result.sentences[-1]
    assert "tested for the method that calibrate chooses" in result.sentences[-1]


def test_a_rule_that_is_certain_and_wrong_has_no_forecast(
    tables: tuple[pd.DataFrame, pd.DataFrame],
) -> None:
    """Its NLL is infinite with any number of labels."""
    result = jb.calibrate(*tables, method="sc", splits=10, forecast=60)
    assert result.more is None
    assert any("cannot be forecast" in each for each in result.warnings)


def test_far_forecasts_are_refused(tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    """Too few labels, or more than four times as many."""
    with pytest.raises(jb.JudgeBayesError, match="it can be at most 180"):
        jb.calibrate(*tables, method="sc", splits=2, forecast=181)
    with pytest.raises(jb.JudgeBayesError, match=r"needs 40 labels or more .* there are 20"):
        jb.calibrate(tables[0], tables[1].head(20), method="sc", splits=2, forecast=10)


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.0, 0.004, "the present labels are enough"),
        (0.0, 0.02, "is not clear from these labels"),
        (0.01, 0.02, "they make the probabilities better"),
    ],
)
def test_the_advice_follows_from_the_gain(low: float, high: float, words: str) -> None:
    """More labels are recommended only if the interval of their gain is above what is worth naming."""
    forecast = Forecast(200, Interval(0.3, 0.2, 0.4), Interval((low + high) / 2, low, high))
    said = MoreLabels("stacking", 100, forecast).sentence
    assert words in said
    assert "without --method" not in said
