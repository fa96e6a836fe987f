import warnings

import numpy as np
import pytest

from judgebayes.experiments.significance import interval, success_rate
from judgebayes.generators.systems import covariance
from judgebayes.measures.significance import Interval


def labels_only(labels: np.ndarray, groups: np.ndarray | None = None, **options: float) -> Interval:
    """Return the share of valid items among the labelled ones."""
    return interval(success_rate("labels", 0.0 * labels, labels, **options), groups)


def prediction_powered(
    scores: np.ndarray, labels: np.ndarray, groups: np.ndarray | None = None, **options: float
) -> Interval:
    """Return the prediction-powered success rate."""
    return interval(success_rate("prediction-powered", scores, labels, **options), groups)


def rogan_gladen_interval(*data: np.ndarray) -> Interval:
    """Return Rogan and Gladen's success rate from scores, labels and groups."""
    return interval(success_rate("rogan-gladen", *data[:2]), *data[2:])


@pytest.fixture(scope="module")
def scored() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores, all labels, and labels of 120 of 900 items."""
    rng = np.random.default_rng(3)
    label = (rng.random(900) < 0.7).astype(int)
    score = np.clip(0.3 + 0.4 * label + rng.normal(0, 0.2, 900), 0, 1)
    some = np.where(np.arange(900) < 120, label, -1)
    return score, label, some


def test_prediction_powered_matches_ppi_python(scored: tuple) -> None:
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


def test_coverage_is_near_nominal() -> None:
    rng = np.random.default_rng(0)
    covered = np.zeros(3)
    for _ in range(300):
        label = (rng.random(600) < 0.7).astype(int)
        score = (rng.random(600) < np.where(label == 1, 0.9, 0.3)).astype(float)
        some = np.where(np.arange(600) < 100, label, -1)
        intervals = [f(score, some) for f in (prediction_powered, rogan_gladen_interval)]
        for i, span in enumerate([labels_only(some), *intervals]):
            covered[i] += span.low <= 0.7 <= span.high
    assert ((covered / 300 > 0.84) & (covered / 300 < 0.95)).all()


def test_the_influence_is_a_derivative(scored: tuple) -> None:
    """A little more weight on one item changes every estimate by its influence."""
    score, _, some = scored
    for method in ("labels", "rogan-gladen", "prediction-powered"):
        rate = success_rate(method, score, some, power=0.6)
        for i in (3, 50, 700):
            n = 2000  # copies of the whole data, and one more of the item
            rows = np.r_[np.tile(np.arange(900), n), i]
            weighted = success_rate(method, score[rows], some[rows], power=0.6)
            assert n * (weighted.value - rate.value) == pytest.approx(
                rate.influence[i], abs=2e-3 * np.abs(rate.influence).max()
            )


def test_variances_match_the_bootstrap_over_groups(scored: tuple) -> None:
    score, _, some = scored
    groups = np.arange(900) % 300  # labelled and unlabelled items share groups
    rng = np.random.default_rng(0)
    for method in ("labels", "rogan-gladen", "prediction-powered"):
        rate = success_rate(method, score, some)
        bootstrap = []
        for _ in range(400):
            chosen = (rng.integers(0, 300, 300)[:, None] + [0, 300, 600]).ravel()
            bootstrap.append(success_rate(method, score[chosen], some[chosen]).value)
        deviation = np.sqrt(covariance([rate], [groups])[0, 0])
        assert deviation == pytest.approx(np.std(bootstrap), rel=0.15)
        assert interval(rate, groups).mean == rate.value
