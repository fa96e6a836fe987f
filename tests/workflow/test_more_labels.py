"""What more labels would gain: the sentence, and what cannot be forecast."""

import numpy as np
import pandas as pd
import pytest

import judgebayes as jb
from judgebayes.evaluate.learning_curve import Forecast
from judgebayes.measures.significance import Interval
from judgebayes.report import page_of
from judgebayes.workflow.next_steps import forecast_words, grow, more_labels

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


def test_the_forecast_is_on_the_page(tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    """With as many labels again, at most those that the items lack."""
    given = tables[0], tables[1].head(50)
    result = jb.calibrate(*given, method="best-constant", splits=10)
    page = page_of(result, "judgebayes calibrate")
    assert "With 10 more labels of random items (60 in all)" in page
    assert "tested for the method that calibrate chooses" in page
    assert result.compared is not None
    name = "best-constant"
    forecast = more_labels(result.compared, name, grow(result.compared, name), 50, 10)
    assert forecast is not None
    assert f"is expected to be {forecast.loss.mean:.3f}" in page


def test_a_rule_that_is_certain_and_wrong_has_no_forecast(
    tables: tuple[pd.DataFrame, pd.DataFrame],
) -> None:
    """Its NLL is infinite with any number of labels."""
    given = tables[0], tables[1].head(50)
    result = jb.calibrate(*given, method="sc", splits=10)
    assert result.compared is not None
    assert more_labels(result.compared, "sc", grow(result.compared, "sc"), 50, 10) is None
    assert "more labels of random items" not in page_of(result, "judgebayes calibrate")


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
    said = forecast_words("stacking", 100, forecast, by_user=False)
    assert words in said
    assert "without --method" not in said
