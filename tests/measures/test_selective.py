import numpy as np
import pytest
from scipy import stats

from judgebayes.measures import selective
from judgebayes.measures.scores import ece


def forecasts(n: int = 60, seed: int = 0, decimals: int = 12) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = np.round(rng.uniform(0.05, 0.95, n), decimals)
    labels = (rng.random(n) < p).astype(int)
    return np.log(np.stack([1 - p, p], 1)), labels


def test_the_curve_is_a_running_mean_from_the_most_confident_on() -> None:
    log_probs, labels = forecasts()
    order = np.argsort(-log_probs.max(1))
    right = (log_probs.argmax(1) == labels)[order]
    curve = selective.accuracy_curve(log_probs, labels)
    np.testing.assert_allclose(curve.accuracy, right.cumsum() / np.arange(1, 61))
    np.testing.assert_allclose(curve.coverage, np.arange(1, 61) / 60)
    np.testing.assert_allclose(curve.risk, 1 - np.asarray(curve.accuracy))


def test_accuracy_at_full_coverage_is_accuracy() -> None:
    log_probs, labels = forecasts()
    right = log_probs.argmax(1) == labels
    assert float(selective.accuracy_at_coverage(log_probs, labels, 1.0)) == pytest.approx(
        right.mean()
    )
    best = np.argsort(-log_probs.max(1))[:15]
    assert float(selective.accuracy_at_coverage(log_probs, labels, 0.25)) == pytest.approx(
        right[best].mean()
    )


@pytest.mark.parametrize("decimals", [12, 1])
def test_the_area_is_the_mean_accuracy_over_coverages(decimals: int) -> None:
    log_probs, labels = forecasts(decimals=decimals)
    grid = (np.arange(4000) + 0.5) / 4000
    naive = np.mean(
        [float(selective.accuracy_at_coverage(log_probs, labels, c)) for c in grid[::40]]
    )
    assert float(selective.auac(log_probs, labels)) == pytest.approx(naive, abs=0.01)


def test_ties_are_the_average_over_random_orders() -> None:
    log_probs, labels = forecasts(24, decimals=1)
    # Among tied classes argmax takes the first, but the library guesses one, so drop such items.
    log_probs[np.isclose(log_probs[:, 0], log_probs[:, 1])] = np.log([0.4, 0.6])
    rng = np.random.default_rng(1)
    curves = []
    for _ in range(3000):
        noise = rng.random(24)
        order = np.lexsort((noise, -np.round(log_probs.max(1), 9)))
        curves.append((log_probs.argmax(1) == labels)[order].cumsum() / np.arange(1, 25))
    accuracy = selective.accuracy_curve(log_probs, labels).accuracy
    np.testing.assert_allclose(accuracy, np.mean(curves, 0), atol=0.03)


@pytest.mark.parametrize("decimals", [12, 1])
def test_weights_are_repetitions_and_the_order_does_not_matter(decimals: int) -> None:
    log_probs, labels = forecasts(decimals=decimals)
    weight = np.r_[np.zeros(10), np.full(20, 2.0), np.ones(30)]
    repeated = np.random.default_rng(2).permutation(np.r_[10:30, 10:30, 30:60])
    for measure in (
        selective.auac,
        lambda *x: selective.accuracy_at_coverage(*x[:2], 0.3, *x[2:]),
        lambda *x: selective.kept_at_confidence(*x[:2], 0.8, *x[2:]).share,
        lambda *x: selective.kept_at_confidence(*x[:2], 0.8, *x[2:]).accuracy,
        selective.max_calibration_error,
    ):
        weighted = float(measure(log_probs, labels, weight))
        assert weighted == pytest.approx(float(measure(log_probs[repeated], labels[repeated])))
        unknown = np.where(weight == 0, -1, labels)
        assert weighted == pytest.approx(float(measure(log_probs, unknown, np.maximum(weight, 1))))


def test_swapping_the_classes_changes_nothing() -> None:
    log_probs, labels = forecasts(decimals=1)
    log_probs[:5] = np.log(0.5)
    for measure in (selective.auac, selective.max_calibration_error):
        swapped = measure(log_probs[:, ::-1], 1 - labels)
        assert float(measure(log_probs, labels)) == pytest.approx(float(swapped))


def test_accepted_share_and_accuracy_at_a_threshold() -> None:
    log_probs = np.log([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]])
    accepted = selective.kept_at_confidence(log_probs, np.array([0, 0, 1]), 0.8)
    assert (float(accepted.share), float(accepted.accuracy)) == pytest.approx((2 / 3, 0.5))
    none = selective.kept_at_confidence(log_probs, np.array([0, 0, 1]), 0.99)
    assert float(none.share) == 0
    assert np.isnan(float(none.accuracy))


@pytest.mark.parametrize("of", [None, 1])
def test_reliability_is_a_loop_over_bins(of: int | None) -> None:
    log_probs, labels = forecasts(400)
    p = np.exp(log_probs.max(1) if of is None else log_probs[:, 1])
    happened = log_probs.argmax(1) == labels if of is None else labels == 1
    diagram = selective.reliability(log_probs, labels, of=of)
    gaps = []
    for b in range(15):
        inside = (p > b / 15) & (p <= (b + 1) / 15)
        assert float(diagram.mass[b]) == inside.sum()
        if inside.any():
            assert float(diagram.predicted[b]) == pytest.approx(p[inside].mean())
            assert float(diagram.observed[b]) == pytest.approx(happened[inside].mean())
            gaps.append(abs(p[inside].mean() - happened[inside].mean()))
    worst = selective.max_calibration_error(log_probs, labels, of=of)
    assert float(worst) == pytest.approx(max(gaps))


def test_the_largest_gap_bounds_the_mean_one() -> None:
    log_probs, labels = forecasts(400)
    assert float(selective.max_calibration_error(log_probs, labels)) >= float(
        ece(log_probs, labels, bins=15)
    )


@pytest.mark.parametrize("grouped", [False, True])
def test_bins_of_confidence_are_a_loop_over_predictions(grouped: bool) -> None:
    log_probs, labels = forecasts()
    items, groups = np.arange(60) // 3, np.arange(20) // 2 if grouped else None
    table = selective.confidence_bins(log_probs, labels, items, groups, bins=5, level=0.9)
    n_answers = 0
    for each in table:
        low, high = each.place / 5, (each.place + 1) / 5
        own = [i for i in range(60) if low < np.exp(log_probs[i]).max() <= high]
        n_answers += len(own)
        share = np.mean([log_probs[i].argmax() == labels[i] for i in own])
        n = len({items[i] // 2 if grouped else items[i] for i in own})
        interval = stats.beta(1 + share * n, 1 + n - share * n).interval(0.9)
        assert each.items == len({items[i] for i in own})
        assert each.share == pytest.approx(len(own) / 60)
        assert each.predicted == pytest.approx(np.mean([np.exp(log_probs[i]).max() for i in own]))
        assert each.right == pytest.approx((share, *interval))
    assert n_answers == 60
    assert [each.place for each in table] == [2, 3, 4]
