import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgebayes.measures import scores

SIZES = [2, 3, 5]


def forecasts(n_classes: int, n: int = 40, seed: int = 0) -> tuple[jax.Array, jax.Array]:
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(n_classes, 0.7), n)
    labels = rng.integers(0, n_classes, n)
    return jnp.log(jnp.asarray(probs)), jnp.asarray(labels)


@pytest.mark.parametrize("n_classes", SIZES)
def test_drps_equals_scoringrules(n_classes: int) -> None:
    import scoringrules  # compilation takes seconds

    log_probs, labels = forecasts(n_classes)
    ours = jax.vmap(scores.drps)(log_probs, labels)
    # scoringrules numbers classes from 1.
    theirs = scoringrules.rps_score(np.asarray(labels) + 1, np.asarray(jnp.exp(log_probs)))
    np.testing.assert_allclose(ours, theirs, atol=2e-6)


@pytest.mark.parametrize("n_classes", SIZES)
def test_brier_and_nll_equal_their_definitions(n_classes: int) -> None:
    log_probs, labels = forecasts(n_classes)
    probs = np.exp(np.asarray(log_probs))
    for i, y in enumerate(np.asarray(labels)):
        truth = np.eye(n_classes)[y]
        assert float(scores.brier(log_probs[i], labels[i])) == pytest.approx(
            ((probs[i] - truth) ** 2).sum(), abs=1e-5
        )
        assert float(scores.nll(log_probs[i], labels[i])) == pytest.approx(
            -np.log(probs[i, y]), rel=1e-5
        )


@pytest.mark.parametrize("score", [scores.drps, scores.nll, scores.brier])
@settings(max_examples=20, deadline=None)
@given(truth=st.lists(st.floats(0.05, 1), min_size=3, max_size=3))
def test_scores_are_proper(score: scores.Score, truth: list[float]) -> None:
    p = np.array(truth) / sum(truth)
    rng = np.random.default_rng(0)

    def expected(q: np.ndarray) -> float:
        log_q = jnp.log(jnp.asarray(q))
        return sum(p[y] * float(score(log_q, jnp.asarray(y))) for y in range(3))

    honest = expected(p)
    for other in rng.dirichlet(np.ones(3), 5):
        assert expected(other) >= honest - 1e-5


def test_mae_and_accuracy_count_known_labels_only() -> None:
    decisions, labels = jnp.array([0, 1, 2, 0]), jnp.array([0, 2, 0, -1])
    assert float(scores.mae(decisions, labels)) == 1.0
    assert float(scores.accuracy(decisions, labels)) == pytest.approx(1 / 3)


@pytest.mark.parametrize("metric", [scores.mae, scores.accuracy])
def test_weight_0_is_a_dropped_item_and_weight_2_a_repeated_one(metric: object) -> None:
    decisions, labels = jnp.array([0, 1, 2, 0]), jnp.array([0, 2, 0, 1])
    weighted = metric(decisions, labels, jnp.array([1.0, 2.0, 0.0, 1.0]))
    repeated = metric(jnp.array([0, 1, 1, 0]), jnp.array([0, 2, 2, 1]))
    assert float(weighted) == pytest.approx(float(repeated))


def test_mean_score_ignores_rows_of_weight_0() -> None:
    log_probs = jnp.log(jnp.array([[0.5, 0.5], [1.0, 0.0]]))
    score = scores.mean_score(scores.nll, log_probs, jnp.array([0, 1]), jnp.array([1.0, 0.0]))
    assert float(score) == pytest.approx(np.log(2), rel=1e-6)


def naive_ece(probs: np.ndarray, labels: np.ndarray, bins: int) -> float:
    confidence, right = probs.max(1), probs.argmax(1) == labels
    total = 0.0
    for b in range(bins):
        inside = (confidence > b / bins) & (confidence <= (b + 1) / bins)
        if inside.any():
            total += inside.mean() * abs(right[inside].mean() - confidence[inside].mean())
    return total


@pytest.mark.parametrize("bins", [1, 2, 10])
def test_ece_equals_a_loop_over_bins(bins: int) -> None:
    log_probs, labels = forecasts(3, 200)
    naive = naive_ece(np.exp(np.asarray(log_probs, float)), np.asarray(labels), bins)
    assert float(scores.ece(log_probs, labels, bins=bins)) == pytest.approx(naive, abs=1e-5)


def test_debiased_ece_is_about_zero_for_a_calibrated_forecast_where_plain_ece_is_not() -> None:
    rng = np.random.default_rng(3)
    plain, debiased = [], []
    for _ in range(60):
        probs = rng.dirichlet(np.ones(3), 80)
        labels = jnp.asarray([rng.choice(3, p=p) for p in probs])
        log_probs = jnp.log(jnp.asarray(probs))
        plain.append(float(scores.ece(log_probs, labels)))
        root = float(scores.ece_debiased(log_probs, labels))
        debiased.append(np.sign(root) * root**2)
    error = np.std(debiased) / np.sqrt(60)
    assert abs(np.mean(debiased)) < 3 * error
    assert np.mean(plain) > 0.08


def naive_bins(
    probs: np.ndarray, labels: np.ndarray, weight: np.ndarray, bins: int
) -> list[tuple[float, float, float]]:
    """Return mass, confidence and accuracy of the bins that are not empty, (low, high]."""
    bins_by_loop = []
    used = np.where(labels >= 0, weight, 0.0)
    for b in range(bins):
        top = probs.max(1)
        inside = used * ((top > b / bins) & (top <= (b + 1) / bins))
        if inside.sum() > 0:
            right = probs.argmax(1) == labels
            share = inside / inside.sum()
            bins_by_loop.append((inside.sum(), share @ top, share @ right))
    return bins_by_loop


@pytest.mark.parametrize("bins", [None, 4])
def test_both_calibration_errors_are_a_loop_over_bins_with_weights_and_unknown_labels(
    bins: int | None,
) -> None:
    rng = np.random.default_rng(7)
    top = np.append(rng.uniform(0.5, 1, 60), [0.5, 0.5, 0.75, 1.0, 0.51, 0.99])
    probs = np.stack([top, 1 - top], 1)
    labels = rng.integers(-1, 2, 66)
    labels[60:62], labels[-2:] = (0, 1), (1, 0)
    weight = rng.integers(0, 4, 66) / 2.0
    weight[60:62], weight[-2:] = (
        (0.5, 1.0),
        1.0,
    )  # total weight between 1 and 2, no other items in their bin
    probs[-2], probs[-1] = (0.88, 0.12), (0.93, 0.07)
    by_bin = naive_bins(probs, labels, weight, bins or 10)
    mass, confidence, right = np.array(by_bin).T
    plain = (mass * abs(right - confidence)).sum() / mass.sum()
    many = mass > 1
    squares = mass * ((right - confidence) ** 2 - right * (1 - right) / (mass - 1 + ~many))
    total = squares[many].sum() / mass[many].sum()
    given = () if bins is None else (bins,)
    with np.errstate(divide="ignore"):
        log_probs = np.log(probs)
    assert float(scores.ece(log_probs, labels, weight, *given)) == pytest.approx(plain, rel=1e-9)
    root = np.sign(total) * np.sqrt(abs(total))
    assert float(scores.ece_debiased(log_probs, labels, weight, *given)) == pytest.approx(
        root, rel=1e-9
    )


def test_a_probability_a_rounding_above_1_stays_in_the_last_bin() -> None:
    certain = np.array([[0.0, -20.0], [0.0, -20.0], [-0.1, -2.35]])
    above, labels = certain + np.array([1e-9, 0.0]), np.array([0, 1, 0])
    for score in (scores.ece, scores.ece_debiased):
        assert float(score(above, labels)) == pytest.approx(float(score(certain, labels)), abs=1e-7)


def test_bins_of_opposite_errors_do_not_cancel() -> None:
    probs = np.array([[0.4, 0.3, 0.3]] * 2 + [[0.8, 0.1, 0.1]] * 2)
    labels = np.array([0, 0, 1, 2])  # the uncertain pair is right, the confident pair wrong
    assert float(scores.ece(np.log(probs), labels, bins=2)) == pytest.approx((0.6 + 0.8) / 2)
    root = float(scores.ece_debiased(np.log(probs), labels, bins=2))
    assert root == pytest.approx(((0.6**2 + 0.8**2) / 2) ** 0.5)


def test_a_bin_of_one_item_has_no_debiased_error() -> None:
    log_probs = np.log([[0.3, 0.7], [0.35, 0.65], [0.1, 0.9], [0.1, 0.9]])
    labels = np.array([1, 1, 1, 0])  # 0.7 and 0.65 share (0.6, 0.7]; with five bins (0.6, 0.8]
    without_first = float(scores.ece_debiased(log_probs[1:], labels[1:]))
    assert without_first == pytest.approx(
        float(scores.ece_debiased(log_probs[2:], labels[2:])), rel=1e-12
    )


def test_items_with_unknown_labels_are_ignored() -> None:
    log_probs = np.log([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
    labelled_score = float(scores.mean_score(scores.nll, log_probs[:2], np.array([0, 0])))
    score = float(scores.mean_score(scores.nll, log_probs, np.array([0, 0, -1])))
    assert score == pytest.approx(labelled_score, rel=1e-12)
    assert labelled_score == pytest.approx(-(np.log(0.9) + np.log(0.2)) / 2, rel=1e-12)
    truth = np.array([1, 1, -1])
    assert float(scores.mean_score(scores.nll, log_probs, truth)) == pytest.approx(
        -(np.log(0.1) + np.log(0.8)) / 2, rel=1e-12
    )
