import numpy as np
import pytest

from judgebayes.experiments.calibrate_dont_curate import selective


def forecasts(n: int = 60, seed: int = 0, decimals: int = 12) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = np.round(rng.uniform(0.05, 0.95, n), decimals)
    labels = (rng.random(n) < p).astype(int)
    return np.log(np.stack([1 - p, p], 1)), labels


def test_the_curve_is_a_running_mean_from_the_most_confident_on() -> None:
    log_probs, labels = forecasts()
    order = np.argsort(-log_probs.max(1))
    right = (log_probs.argmax(1) == labels)[order]
    accuracy = [selective.accuracy_at_coverage(log_probs, labels, k / 60) for k in range(1, 61)]
    np.testing.assert_allclose(accuracy, right.cumsum() / np.arange(1, 61))


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
    accuracy = [selective.accuracy_at_coverage(log_probs, labels, k / 24) for k in range(1, 25)]
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
    ):
        weighted = float(measure(log_probs, labels, weight))
        assert weighted == pytest.approx(float(measure(log_probs[repeated], labels[repeated])))
        unknown = np.where(weight == 0, -1, labels)
        assert weighted == pytest.approx(float(measure(log_probs, unknown, np.maximum(weight, 1))))
