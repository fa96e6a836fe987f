"""The forecast of labels: against a purchase, the law of its line, and what is refused."""

import numpy as np
import pytest
from scipy.stats import norm

from judgebayes.errors import JudgeBayesError
from judgebayes.inference import MAP
from judgebayes.majority import MeanLoss, SplitCurve, Splits, label_forecast
from judgebayes.majority.assurance import LabelForecast


def world(rng: np.random.Generator, items: int = 300) -> Splits:
    """Return five votes on each item, and every label."""
    truth = rng.integers(0, 2, items)
    right = rng.random((items, 5)) < rng.beta(5, 1.5, items)[:, None]
    votes = np.where(right, truth[:, None], 1 - truth[:, None])
    return Splits(np.stack([5 - votes.sum(1), votes.sum(1)], axis=1), truth, (0, 1))


def bought(whole: Splits, items: np.ndarray) -> Splits:
    labels = np.full(len(whole.labels), -1)
    labels[items] = whole.labels[items]
    return whole.with_labels(labels)


def width(splits: Splits) -> float:
    curve = SplitCurve().fit(splits).curve(splits, (5,), MeanLoss("these"))
    return float(curve.high[0] - curve.low[0])


def test_more_assurance_and_narrower_intervals_need_more_labels() -> None:
    whole = world(np.random.default_rng(2), 120)
    splits = bought(whole, np.arange(20))
    fit = SplitCurve().fit(splits)
    wide, narrow = (
        label_forecast(fit, splits, 5, share * width(splits), MeanLoss("these"), simulations=20)
        for share in (0.8, 0.6)
    )
    few, many = wide.needed(), narrow.needed()
    assert few is not None
    assert many is not None
    assert 20 < few < many < 120
    assert (narrow.needed(0.9) or 120) > many


def test_the_line_gives_the_labels_of_a_width() -> None:
    forecast = LabelForecast(0.1, 1000, np.log(1.0), -0.5, 0.2)
    assert forecast.needed() == 100  # w = n^-1/2
    spread = 0.1 * np.exp(-norm.ppf(0.9) * 0.2)
    assert forecast.needed(0.9) == int(np.ceil(spread**-2))
    assert LabelForecast(0.01, 1000, 0.0, -0.5, 0.0).needed() is None
    assert LabelForecast(0.1, 1000, -5.0, 0.0, 0.0).needed() == 1


def test_bad_requests_get_their_sentence() -> None:
    splits = bought(world(np.random.default_rng(1), 60), np.arange(20))
    fit = SplitCurve().fit(splits)
    with pytest.raises(JudgeBayesError, match="target width is 0"):
        label_forecast(fit, splits, 5, 0.0)
    with pytest.raises(JudgeBayesError, match="assurance is 1"):
        label_forecast(fit, splits, 5, 0.2, simulations=14).needed(1.0)
    point = SplitCurve(inference=MAP()).fit(splits)
    with pytest.raises(JudgeBayesError, match="needs a posterior"):
        label_forecast(point, splits, 5, 0.2)
