"""Properties of calibration maps, and comparisons with other implementations; laws are in laws/."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from judgebayes import Beta, Identity, Isotonic, Platt, Status, Temperature
from judgebayes.calibrators.maps import clipped, initial_slope
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.experiments.calibrate_dont_curate.chain import Chain
from judgebayes.inference.fit import Fit, Method, training
from judgebayes.measures.scores import mean_score, nll

MAPS: dict[str, Method] = {
    "identity": Identity(),
    "temperature": Temperature(),
    "platt": Platt(),
    "platt-symmetric": Platt(symmetric=True),
    "isotonic": Isotonic(),
    "isotonic-symmetric": Isotonic(symmetric=True),
    "beta": Beta(),
    "beta-unpenalised": Beta(penalty=None),
    "beta-ridge": Beta(penalty=0.05, l1_share=0.0),
    "beta-lasso": Beta(penalty=0.05, l1_share=1.0),
    "beta-free": Beta(free_slopes=True),
    "beta-symmetric": Beta(symmetric=True),
    "chain": Chain((Platt(), Beta())),
}
SYMMETRIC = ["identity", "temperature", "platt-symmetric", "isotonic-symmetric", "beta-symmetric"]
maps = pytest.mark.parametrize("name", list(MAPS))

Answers = tuple[np.ndarray, np.ndarray]


def overconfident(n: int = 80, n_classes: int = 2, seed: int = 0) -> Answers:
    """Overconfident log-probabilities, as from one-coin models of correlated judges."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_classes, n)
    logits = 5 * (np.eye(n_classes)[labels] + 0.9 * rng.normal(size=(n, n_classes)))
    logits[:, 0] += 1.0
    return log_softmax(logits, axis=1), labels


def binary(log_probs: np.ndarray) -> np.ndarray:
    return np.exp(np.asarray(log_probs))[:, 1]


def loss(log_probs: Any, labels: np.ndarray) -> float:
    return float(mean_score(nll, log_probs, labels))


# --- common properties----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["chain", "beta", "beta-ridge", "beta-lasso", "beta-free"])
def test_with_two_classes_the_penalty_has_no_reference_class(name: str) -> None:
    """With more classes it has one; the other maps obey the laws for all numbers of classes."""
    log_probs, labels = overconfident()
    one = MAPS[name].fit(log_probs, labels)(log_probs)
    other = MAPS[name].fit(log_probs[:, ::-1], 1 - labels)(log_probs[:, ::-1])
    np.testing.assert_allclose(np.exp(other[:, ::-1]), np.exp(one), atol=1e-7)


@pytest.mark.parametrize("name", [n for n in MAPS if "isotonic" not in n])
def test_calibrated_probabilities_are_unchanged(name: str) -> None:
    rng = np.random.default_rng(4)
    p = rng.uniform(0.02, 0.98, 20_000)
    labels = (rng.random(20_000) < p).astype(int)
    log_probs = np.log(np.stack([1 - p, p], 1))
    probs = binary(MAPS[name].fit(log_probs, labels)(log_probs))
    assert np.abs(probs - p).max() < 0.03


@maps
def test_certain_answers_are_clipped_and_converge(name: str) -> None:
    if name == "identity":
        pytest.skip("the null map leaves infinities alone")
    _, labels = overconfident()
    wrong = np.random.default_rng(2).random(80) < 0.2
    said = np.where(wrong, 1 - labels, labels)
    log_probs = np.where(said[:, None] == np.arange(2), 0.0, -np.inf)
    fit = MAPS[name].fit(log_probs, labels)
    assert Status(int(fit.status)) is Status.CONVERGED
    probs = np.exp(fit(log_probs))
    assert np.isfinite(probs).all()
    # A symmetric map has one accuracy, the others have one per class.
    right = (said == labels) if name in SYMMETRIC else labels[said == 1]
    allowed = 0.06 if "beta" in name or name == "chain" else 1e-5  # the penalty shrinks
    np.testing.assert_allclose(probs[said == 1, 1], right.mean(), atol=allowed)


@in_float64
def test_clipping_keeps_what_is_within_and_sums_to_one() -> None:
    p = np.array([0.0, 1e-9, 1e-3, 0.02, 0.5, 0.99, 1.0])
    with np.errstate(divide="ignore"):
        log_probs = np.log(np.stack([1 - p, p], axis=1))
    of_two = np.exp(clipped(jnp.asarray(log_probs), 0.01))
    np.testing.assert_allclose(of_two[:, 1], np.clip(p, 0.01, 0.99), rtol=1e-14)
    np.testing.assert_allclose(of_two.sum(1), 1.0, rtol=1e-14)

    three = np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0], [0.995, 0.005, 0.0]])
    with np.errstate(divide="ignore"):
        probs = np.exp(clipped(jnp.asarray(np.log(three)), 0.01))
    raised = np.maximum(three, 0.01)
    np.testing.assert_allclose(probs, raised / raised.sum(1, keepdims=True), rtol=1e-14)


# --- other implementations --------------------------------------------------------------------


def test_temperature_is_the_minimum_in_one_dimension() -> None:
    log_probs, labels = overconfident(300, 3)

    def at(slope: float) -> float:
        return loss(jax.nn.log_softmax(slope * jnp.asarray(log_probs)), labels)

    best = minimize_scalar(at, bounds=(0, 3), method="bounded", options={"xatol": 1e-7})
    fit = Temperature(clip=1e-12).fit(log_probs, labels)
    np.testing.assert_allclose(fit.first["slopes"], np.full((1, 3), best.x), atol=1e-4)
    assert float(fit.details["objective"]) <= best.fun + 1e-7


def test_platt_is_logistic_regression_on_the_log_odds() -> None:
    log_probs, labels = overconfident(300)
    fit = Platt(clip=1e-12).fit(log_probs, labels)
    odds = (log_probs[:, 1] - log_probs[:, 0])[:, None]
    peer = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(odds, labels)
    assert float(fit.first["slopes"][0, 1]) == pytest.approx(peer.coef_[0, 0], abs=1e-5)
    assert float(fit.first["intercepts"][0, 1]) == pytest.approx(peer.intercept_[0], abs=1e-5)


def test_isotonic_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(5)
    p = np.round(rng.random(150), 2)  # with ties
    labels = (rng.random(150) < p**2).astype(int)
    weight = rng.integers(0, 3, 150).astype(float)
    with np.errstate(divide="ignore"):
        log_probs = np.log(np.stack([1 - p, p], 1))
        peer = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
        peer.fit(p, labels, sample_weight=weight)
        new = np.linspace(0, 1, 400)
        grid = np.log(np.stack([1 - new, new], 1))
    fit = Isotonic(clip=1e-300).fit(log_probs, labels, weight=weight)
    np.testing.assert_allclose(binary(fit(grid)), peer.predict(new), atol=1e-9)


def test_isotonic_of_three_classes_is_one_against_the_rest() -> None:
    log_probs, labels = overconfident(150, 3)
    levels = np.stack(
        [
            IsotonicRegression(out_of_bounds="clip")
            .fit(np.exp(log_probs[:, k]), labels == k)
            .predict(np.exp(log_probs[:, k]))
            for k in range(3)
        ],
        axis=1,
    )
    fit = Isotonic(clip=1e-300).fit(log_probs, labels)
    np.testing.assert_allclose(
        np.exp(fit(log_probs)), levels / levels.sum(1, keepdims=True), atol=1e-7
    )


def test_symmetric_isotonic_counts_every_item_both_ways() -> None:
    log_probs, labels = overconfident(100)
    p = binary(log_probs)
    peer = IsotonicRegression(out_of_bounds="clip").fit(np.r_[p, 1 - p], np.r_[labels, 1 - labels])
    fit = Isotonic(symmetric=True, clip=1e-300).fit(log_probs, labels)
    np.testing.assert_allclose(binary(fit(log_probs)), peer.predict(p), atol=1e-7)


def coefficients(fit: Any) -> list[float]:
    """Return a, b, c of a beta map."""
    return [
        float(fit.first["slopes"][0, 1]),
        float(fit.first["slopes"][0, 0]),
        float(fit.first["intercepts"][0, 1]),
    ]


@pytest.mark.parametrize("seed", range(3))
def test_beta_without_penalty_is_that_of_betacal(seed: int) -> None:
    betacal = pytest.importorskip("betacal")
    log_probs, labels = overconfident(300, seed=seed)
    p = np.clip(binary(log_probs), 1e-6, 1 - 1e-6)
    peer = betacal.BetaCalibration("abm").fit(p[:, None], labels).calibrator_
    fit = Beta(penalty=0.0, clip=1e-12).fit(np.log(np.stack([1 - p, p], 1)), labels)
    ours = coefficients(fit)
    assert min(ours[:2]) > 0
    # betacal stops its regression early, up to 1.4e-3 away; run to convergence, it agrees.
    assert (
        float(fit.details["objective"])
        <= loss(np.log(two_sided(peer.predict(p[:, None]))), labels) + 1e-12
    )
    table = np.column_stack([np.log(p), -np.log1p(-p)])
    exact = peer.lr_.set_params(tol=1e-12, max_iter=10_000).fit(table, labels)
    np.testing.assert_allclose(ours, [*exact.coef_[0], *exact.intercept_], atol=1e-4)


def two_sided(p: np.ndarray) -> np.ndarray:
    return np.stack([1 - p, p], 1)


@pytest.mark.parametrize("l1_share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("penalty", [1e-3, 0.02, 0.3])
def test_beta_is_the_minimum_of_its_penalised_loss(penalty: float, l1_share: float) -> None:
    log_probs, labels = overconfident(seed=7)

    def objective(abc: np.ndarray) -> float:
        a, b, c = abc
        odds = a * log_probs[:, 1] - b * log_probs[:, 0] + c
        fitted = np.logaddexp(0, np.where(labels == 1, -odds, odds)).mean()
        delta = np.array([a - 1, b - 1, c])
        norm = l1_share * np.abs(delta).sum() + (1 - l1_share) / 2 * (delta**2).sum()
        return fitted + penalty * norm

    fit = Beta(penalty, l1_share, clip=1e-12).fit(log_probs, labels)
    ours = np.array(coefficients(fit))
    assert float(fit.details["objective"]) == pytest.approx(objective(ours), abs=1e-12)
    starts = ([1, 1, 0], [0.2, 0.2, 0], [0.1, 0.5, 1], ours)
    options = {"xatol": 1e-9, "fatol": 1e-13, "maxiter": 4000}
    best = min(minimize(objective, s, method="Nelder-Mead", options=options).fun for s in starts)
    assert float(fit.details["objective"]) <= best + 1e-9


def test_symmetric_beta_of_two_classes_is_one_slope() -> None:
    log_probs, labels = overconfident()
    a, b, c = coefficients(Beta(penalty=0.0, symmetric=True).fit(log_probs, labels))
    assert (a, c) == (b, 0.0)
    slope = float(Temperature().fit(log_probs, labels).first["slopes"][0, 0])
    assert a == pytest.approx(slope, abs=1e-7)


def test_bad_log_probabilities_raise_errors() -> None:
    for method in (Temperature(), Isotonic()):
        with pytest.raises(JudgeBayesError, match="Item 1, class 0 has the log-prob"):
            method.fit(np.log([[0.5, 0.5], [np.nan, 0.5]]), np.array([1, 0]))


@in_float64
def test_a_map_is_fitted_inside_compiled_code_to_known_labels() -> None:
    log_probs, labels = (jnp.asarray(x) for x in overconfident())
    weight = jnp.ones(len(labels))
    inside = jax.jit(lambda traced: Platt().fit(traced, labels, weight=weight)(traced))
    outside = Platt().fit(log_probs, labels, weight=weight)(log_probs)
    np.testing.assert_allclose(inside(log_probs), outside, atol=1e-9)


# --- noisy labels -----------------------------------------------------------------------------

NOISE = 0.2


def mislabelled(labels: np.ndarray, n_classes: int = 2) -> np.ndarray:
    """Labels of which a fifth are replaced by another class."""
    rng = np.random.default_rng(9)
    other = (labels + rng.integers(1, n_classes, len(labels))) % n_classes
    return np.where(rng.random(len(labels)) < NOISE, other, labels)


@pytest.mark.parametrize(
    "calibrator",
    [
        Platt(clip=1e-12, label_noise=NOISE),
        Beta(penalty=0.0, clip=1e-12, label_noise=NOISE),
        Temperature(clip=1e-12, label_noise=NOISE),
    ],
    ids=lambda c: type(c).__name__,
)
def test_a_map_with_label_noise_is_the_minimum_of_the_noisy_likelihood(
    calibrator: Method,
) -> None:
    log_probs, labels = overconfident(seed=3)
    noisy_labels = mislabelled(labels)

    def objective(abc: np.ndarray) -> float:
        a, b, c = {1: (*abc, *abc, 0.0), 2: (abc[0], *abc)}.get(len(abc), tuple(abc))
        odds = a * log_probs[:, 1] - b * log_probs[:, 0] + c
        q = 1 / (1 + np.exp(-odds))
        p = (1 - NOISE) * q + NOISE * (1 - q)
        return float(-np.log(np.where(noisy_labels == 1, p, 1 - p)).mean())

    fit = calibrator.fit(log_probs, noisy_labels)
    free = {Platt: 2, Beta: 3, Temperature: 1}[type(calibrator)]
    a, b, c = coefficients(fit)
    ours = np.array({1: [a], 2: [a, c], 3: [a, b, c]}[free])
    assert float(fit.details["objective"]) == pytest.approx(objective(ours), abs=1e-10)
    starts = (ours, np.array({1: [1.0], 2: [1.0, 0.0], 3: [1.0, 1.0, 0.0]}[free]))
    options = {"xatol": 1e-9, "fatol": 1e-13, "maxiter": 4000}
    best = min(minimize(objective, s, method="Nelder-Mead", options=options).fun for s in starts)
    assert float(fit.details["objective"]) <= best + 1e-9


def test_isotonic_with_label_noise_is_the_bounded_least_squares_fit() -> None:
    rng = np.random.default_rng(2)
    p = np.arange(1, 9) / 9
    labels = rng.integers(0, 2, (8, 5))

    def squares(g: np.ndarray) -> float:
        return float(((labels - (NOISE + (1 - 2 * NOISE) * g[:, None])) ** 2).sum())

    rising = {"type": "ineq", "fun": np.diff}
    best = minimize(
        squares, np.linspace(0, 1, 8), bounds=[(0, 1)] * 8, constraints=rising, tol=1e-14
    )
    flat = np.repeat(p, 5)
    fit = Isotonic(clip=1e-300, label_noise=NOISE).fit(np.log(two_sided(flat)), labels.ravel())
    np.testing.assert_allclose(binary(fit(np.log(two_sided(p)))), best.x, atol=1e-5)


def test_isotonic_is_monotone_where_probabilities_almost_tie() -> None:
    """Probabilities a few times 1e-12 apart, where interpolation may round to below 0."""
    rng = np.random.default_rng(5)
    z = rng.choice([-1, 1], 100) * rng.uniform(24, 29, 100)
    labels = (z > 0) ^ (rng.random(100) < 0.2)
    log_probs = np.stack([-np.logaddexp(0, z), -np.logaddexp(0, -z)], 1)
    points = {
        "knot": jnp.tile(1e-12 * jnp.arange(100.0), (1, 2, 1)),
        "level": jnp.stack([-1e-17 * jnp.ones(100), jnp.ones(100)])[None],
    }
    steep = Fit(Isotonic(clip=1e-6), points, jnp.asarray(0))
    for fit in (Isotonic().fit(log_probs, labels.astype(int)), steep):
        calibrated = np.asarray(fit(log_probs))
        assert np.isfinite(calibrated).all()
        np.testing.assert_allclose(np.exp(calibrated).sum(1), 1, atol=1e-9)


@pytest.mark.parametrize(("apart", "begun"), [(8.0, np.log(3001 / 1001) / 8), (0.5, 1.0)])
@in_float64
def test_the_initial_slope_matches_confidence_and_accuracy(apart: float, begun: float) -> None:
    """Three in four are right: the optimal slope for equally confident predictions, and at most 1."""
    labels = np.arange(4000) % 2
    margin = apart * np.where(np.arange(4000) % 8 < 2, -1, 1) * (2 * labels - 1)
    log_probs = log_softmax(np.stack([-margin / 2, margin / 2], axis=1), axis=1)
    data = training(log_probs, labels)
    slope = float(initial_slope(list(data.given.T), data))
    assert slope == pytest.approx(begun, rel=1e-9)
    if begun < 1:
        best = Temperature().fit(log_probs, labels).first["slopes"][0, 0]
        assert slope == pytest.approx(float(best), rel=1e-3)
