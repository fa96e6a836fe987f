import warnings

import numpy as np
import pytest

from judgebayes.errors import JudgeBayesError
from judgebayes.precision import Impression, PrecisionCounts
from judgebayes.precision.systems import (
    labels_only,
    order_probabilities,
    prediction_powered,
    rogan_gladen_interval,
)


@pytest.fixture(scope="module")
def scored() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores, all labels, and labels of 120 of 900 items."""
    rng = np.random.default_rng(3)
    label = (rng.random(900) < 0.7).astype(int)
    score = np.clip(0.3 + 0.4 * label + rng.normal(0, 0.2, 900), 0, 1)
    some = np.where(np.arange(900) < 120, label, -1)
    return score, label, some


def test_prediction_powered_is_ppi_pythons(scored: tuple) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ppi_py = pytest.importorskip("ppi_py")
        score, _, some = scored
        y, f, rest = some[:120].astype(float), score[:120], score[120:]
        point = float(np.squeeze(ppi_py.ppi_mean_pointestimate(y, f, rest, lam=1.0)))
        low, high = (float(np.squeeze(a)) for a in ppi_py.ppi_mean_ci(y, f, rest, 0.1, lam=1.0))
        tuned = float(np.squeeze(ppi_py.ppi_mean_pointestimate(y, f, rest)))
    ours = prediction_powered(score, some, power=1.0)
    assert ours.mean == pytest.approx(point, abs=1e-10)
    assert (ours.low, ours.high) == pytest.approx((low, high), abs=5e-4)
    assert prediction_powered(score, some).mean == pytest.approx(tuned, abs=2e-3)


def test_groups_that_err_together_widen_every_interval(scored: tuple) -> None:
    score, _, some = scored
    twice = [np.concatenate([a, a]) for a in (score, some)]
    groups = np.tile(np.arange(900), 2)
    for answer in (prediction_powered, rogan_gladen_interval):
        alone, once = answer(score, some), answer(*twice, groups)
        assert once.mean == pytest.approx(alone.mean, abs=1e-9)
        assert once.high - once.low == pytest.approx(alone.high - alone.low, rel=1e-6)
        assert answer(*twice).high - answer(*twice).low < alone.high - alone.low
    assert labels_only(twice[1], groups) == pytest.approx(labels_only(some), rel=1e-9)


def test_all_cover_the_truth_about_as_often_as_they_say() -> None:
    rng = np.random.default_rng(0)
    held = np.zeros(3)
    for _ in range(300):
        label = (rng.random(600) < 0.7).astype(int)
        score = (rng.random(600) < np.where(label == 1, 0.9, 0.3)).astype(float)
        some = np.where(np.arange(600) < 100, label, -1)
        found = [f(score, some) for f in (prediction_powered, rogan_gladen_interval)]
        for i, interval in enumerate([labels_only(some), *found]):
            held[i] += interval.low <= 0.7 <= interval.high
    assert ((held / 300 > 0.84) & (held / 300 < 0.95)).all()


def test_what_is_missing_is_named(scored: tuple) -> None:
    score, label, some = scored
    with pytest.raises(JudgeBayesError, match="No item is labelled"):
        prediction_powered(score, np.full(900, -1))
    with pytest.raises(JudgeBayesError, match="Every item is labelled"):
        prediction_powered(score, label)
    with pytest.raises(JudgeBayesError, match="No item is invalid"):
        rogan_gladen_interval(score, np.where(some == 0, -1, some))


def test_orders_of_generators_add_up(tallied: PrecisionCounts) -> None:
    fit = Impression().fit(tallied.reveal(np.array([True, True, True, False, False])))
    above = order_probabilities(fit)
    np.testing.assert_allclose(above + above.T, 1)
    truth = np.asarray(tallied.labelled_precision)
    assert above[0, 1] == float(truth[0] > truth[1])
