from dataclasses import FrozenInstanceError
from itertools import accumulate

import jax
import numpy as np
import pytest
from scipy.special import comb

from judgebayes.calibrators.conformal import SplitConformal, coverage, coverage_law
from judgebayes.errors import JudgeBayesError
from judgebayes.inference import Status


def answers(n: int, seed: int = 0, n_classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(n_classes, 0.7), n)
    labels = np.array([rng.choice(n_classes, p=p) for p in probs])
    return np.log(probs), labels


def naive_sets(
    log_probs: np.ndarray, labels: np.ndarray, new: np.ndarray, level: float
) -> np.ndarray:
    """P2 eqs 5, 6 by a sort and a loop."""
    scores = sorted(1 - np.exp(log_probs[i, y]) for i, y in enumerate(labels))
    place = int(np.ceil(round((len(scores) + 1) * level, 9)))
    threshold = np.inf if place > len(scores) else scores[place - 1]
    return np.array([[1 - p <= threshold + 1e-12 for p in np.exp(row)] for row in new])


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95])
@pytest.mark.parametrize("n", [5, 19, 100])
def test_sets_are_those_of_a_sort_and_a_loop(n: int, level: float) -> None:
    log_probs, labels = answers(n)
    new, _ = answers(40, seed=1)
    fit = SplitConformal(level).fit(log_probs, labels)
    np.testing.assert_array_equal(fit(new), naive_sets(log_probs, labels, new, level))
    too_few = np.ceil(round((n + 1) * level, 9)) > n
    assert (Status(int(fit.status)) is Status.DEGENERATE) == too_few


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.filterwarnings("ignore")
def test_sets_are_those_of_mapie(seed: int) -> None:
    classification = pytest.importorskip("mapie.classification")
    from sklearn.base import BaseEstimator, ClassifierMixin

    class Precomputed(ClassifierMixin, BaseEstimator):
        """A classifier whose features are its probabilities."""

        def fit(self, x: np.ndarray, y: np.ndarray) -> "Precomputed":  # noqa: ARG002
            self.classes_ = np.arange(3)
            self.is_fitted_ = True
            return self

        def predict_proba(self, x: np.ndarray) -> np.ndarray:
            return x

        def predict(self, x: np.ndarray) -> np.ndarray:
            return x.argmax(1)

    log_probs, labels = answers(150, seed)
    new, _ = answers(200, seed + 100)
    estimator = Precomputed().fit(np.exp(log_probs), labels)
    peer = classification.SplitConformalClassifier(
        estimator, confidence_level=0.9, conformity_score="lac", prefit=True
    ).conformalize(np.exp(log_probs), labels)
    theirs = peer.predict_set(np.exp(new))[1][:, :, 0]
    np.testing.assert_array_equal(SplitConformal(0.9).fit(log_probs, labels)(new), theirs)


def test_every_group_has_its_own_threshold() -> None:
    log_probs, labels = answers(90)
    groups = np.arange(90) % 3
    fit = SplitConformal(0.8, n_groups=3).fit(log_probs, labels, groups=groups)
    for g in range(3):
        own = SplitConformal(0.8).fit(log_probs[groups == g], labels[groups == g])
        np.testing.assert_array_equal(fit.threshold[g], own.threshold[0])
        inside = fit(log_probs, groups=groups)[groups == g]
        np.testing.assert_array_equal(inside, own(log_probs[groups == g]))


def test_empty_sets_stay_empty_by_default() -> None:
    sure = np.log([[0.98, 0.01, 0.01]] * 30)
    torn = np.log([[0.4, 0.4, 0.2]])
    empty = SplitConformal(0.8).fit(sure, np.zeros(30, int))(torn)
    assert not np.asarray(empty).any()
    filled = SplitConformal(0.8, no_empty=True).fit(sure, np.zeros(30, int))(torn)
    np.testing.assert_array_equal(filled, [[True, True, False]])


def test_coverage_counts_labelled_items() -> None:
    sets = np.array([[True, True], [False, True], [False, False]])
    labels = np.array([0, 0, -1])
    assert float(coverage(sets, labels)) == 0.5
    assert float(coverage(sets, labels, np.array([3.0, 1.0, 1.0]))) == 0.75


def test_the_coverage_obeys_its_exact_law() -> None:
    n, m, level = 30, 50, 0.9
    law = coverage_law(n, level, m)
    k = int(np.ceil((n + 1) * level))
    exact, j = naive_law(n, k, m), np.arange(m + 1)
    assert law.mean == pytest.approx(k / (n + 1))
    samples = [answers(n + m, seed) for seed in range(300)]
    log_probs, labels = (np.stack(part) for part in zip(*samples, strict=True))

    def covered(log_probs: jax.Array, labels: jax.Array) -> jax.Array:
        sets = SplitConformal(level).fit(log_probs[:n], labels[:n])(log_probs[n:])
        return coverage(sets, labels[n:])

    with jax.enable_x64(True):
        observed = np.asarray(jax.vmap(covered)(log_probs, labels))
    assert np.mean(observed) == pytest.approx(law.mean, abs=4 * np.std(observed) / 300**0.5)
    inside = np.mean([law.low <= c + 1e-9 and c <= law.high + 1e-9 for c in observed])
    assert inside > 0.92
    assert np.var(observed) == pytest.approx((exact * (j / m - law.mean) ** 2).sum(), rel=0.3)


def test_too_few_items_cover_everything() -> None:
    law = coverage_law(5, 0.9, 10)
    assert (law.low, law.mean, law.high) == (1, 1, 1)


def test_impossible_requests_raise_errors() -> None:
    log_probs, labels = answers(10)
    with pytest.raises(JudgeBayesError, match=r"level=1\.5; it must be between 0 and 1"):
        SplitConformal(1.5).fit(log_probs, labels)
    with pytest.raises(JudgeBayesError, match="3 groups; pass the group of each item"):
        SplitConformal(n_groups=3).fit(log_probs, labels)
    with pytest.raises(JudgeBayesError, match="items at least 1"):
        coverage_law(5, 0.9, 0)


def test_ties_open_the_upper_end_of_the_law() -> None:
    """Scores with two values: the sets cover all or nearly all, which is impossible without ties."""
    rng = np.random.default_rng(8)
    n, m = 19, 400
    inside = {"with count": 0, "without": 0}
    log_probs = np.log(np.where(rng.random((100, n + m, 1)) < 0.5, [[0.9, 0.1]], [[0.6, 0.4]]))
    labels = (rng.random((100, n + m)) < np.exp(log_probs[..., 1])).astype(int)
    with jax.enable_x64(True):
        every = jax.vmap(lambda p, y: SplitConformal(0.8).fit(p[:n], y[:n])(p))(log_probs, labels)
    for held in np.take_along_axis(np.asarray(every), labels[..., None], 2)[..., 0]:
        for name, covered in (("with count", int(held[:n].sum())), ("without", None)):
            law = coverage_law(n, 0.8, m, covered=covered)
            inside[name] += law.low <= held[n:].mean() <= law.high
    assert inside["with count"] / 100 > 0.93
    assert inside["without"] / 100 < 0.9


def test_without_ties_the_law_is_unchanged() -> None:
    assert coverage_law(19, 0.8, 100, covered=16) == coverage_law(19, 0.8, 100)


def test_weights_0_and_2_are_dropped_and_repeated_and_unlabelled_items_are_ignored() -> None:
    log_probs, labels = answers(40)
    weight = np.arange(40) % 3 * 1.0
    labels = np.where(np.arange(40) % 7 == 0, -1, labels)
    times = np.where(labels >= 0, weight, 0).astype(int)
    fit = SplitConformal(0.8).fit(log_probs, labels, weight=weight)
    repeated = SplitConformal(0.8).fit(np.repeat(log_probs, times, 0), np.repeat(labels, times))
    np.testing.assert_array_equal(fit.threshold, repeated.threshold)
    assert int(fit.status) == int(repeated.status) == Status.CONVERGED


def test_a_group_that_is_too_small_covers_everything_and_is_degenerate() -> None:
    log_probs, labels = answers(21)
    groups = np.append(np.zeros(20, int), 1)
    fit = SplitConformal(0.8, n_groups=2).fit(log_probs, labels, groups=groups)
    assert np.isinf(fit.threshold).tolist() == [False, True]
    assert int(fit.status) == Status.DEGENERATE
    assert np.asarray(fit(log_probs, groups=groups))[20].all()


def test_only_values_that_can_vary_within_a_program_are_leaves() -> None:
    assert jax.tree.leaves(SplitConformal(0.8, no_empty=True, n_groups=2)) == [0.8]
    assert SplitConformal() == SplitConformal(0.9, no_empty=False, n_groups=1)
    log_probs, labels = answers(20)
    fit = SplitConformal().fit(log_probs, labels)
    assert len(jax.tree.leaves(fit)) == 2


def test_neither_the_request_nor_the_fit_can_be_changed() -> None:
    log_probs, labels = answers(20)
    fit = SplitConformal().fit(log_probs, labels)
    with pytest.raises(FrozenInstanceError):
        SplitConformal().level = 0.5
    with pytest.raises(FrozenInstanceError):
        fit.no_empty = True


def test_empty_sets_get_the_most_probable_classes_up_to_rounding() -> None:
    sure = np.log([[0.98, 0.01, 0.01]] * 30)
    p = np.array(
        [
            [0.4, 0.4, 0.2],
            [0.4 + 1e-11, 0.4 - 1e-11, 0.2],
            [0.401, 0.399, 0.2],
            [0.99, 0.005, 0.005],
        ]
    )
    sets = SplitConformal(0.8, no_empty=True).fit(sure, np.zeros(30, int))(np.log(p))
    first, both = [True, False, False], [True, True, False]
    np.testing.assert_array_equal(sets, [both, both, first, first])


def naive_law(n: int, k: int, m: int) -> list[float]:
    """The probability that j of m new scores are below the k-th of n, in a random order."""
    return [comb(j + k - 1, j) * comb(n + m - k - j, m - j) / comb(n + m, m) for j in range(m + 1)]


def quantile(law: list[float], q: float) -> int:
    return next(j for j, below in enumerate(accumulate(law)) if below >= q)


@pytest.mark.parametrize(("covered", "upper"), [(None, 16), (15, 16), (16, 16), (17, 18), (18, 19)])
def test_the_ends_of_the_law_are_the_first_counts_that_reach_the_shares(
    covered: int | None, upper: int
) -> None:
    """n = 19 at level 0.8 gives k = 16; with more than k covered, the law is that of one more score."""
    law = coverage_law(19, 0.8, 1500, 0.5, covered=covered)
    assert law.low == quantile(naive_law(19, 16, 1500), 0.25) / 1500
    assert law.high == quantile(naive_law(19, upper, 1500), 0.75) / 1500
    assert law.mean == pytest.approx(16 / 20)
    assert coverage_law(19, 0.8, 1500, 0.5, covered=19).high == 1
    assert coverage_law(19, 0.8, 1500) == coverage_law(19, 0.8, 1500, 0.95)


def test_limits_of_the_arguments() -> None:
    log_probs, labels = answers(10)
    for level in (0.0, 1.0):
        with pytest.raises(JudgeBayesError, match="must be between 0 and 1"):
            SplitConformal(level).fit(log_probs, labels)
        with pytest.raises(JudgeBayesError, match=r"level=.*between 0 and 1"):
            coverage_law(5, level, 10)
        with pytest.raises(JudgeBayesError, match=r"interval=.*between 0 and 1"):
            coverage_law(5, 0.5, 10, level)
    with pytest.raises(JudgeBayesError, match="2 groups; pass the group of each item"):
        SplitConformal(n_groups=2).fit(log_probs, labels)
    with pytest.raises(JudgeBayesError, match="n must be at least 0"):
        coverage_law(-1, 0.5, 10)
    assert coverage_law(0, 0.5, 1).low == 1  # no scores: every set contains every class
    assert coverage_law(1, 0.5, 1).mean == pytest.approx(0.5)


def test_a_score_that_equals_the_threshold_but_for_rounding_conforms() -> None:
    # The threshold is the score of probability 1 - 0.7, which is not 0.3 to the last bit.
    calibration = np.log(np.array([[0.9, 0.1], [1 - 0.7, 0.7], [0.8, 0.2]]))
    fit = SplitConformal(level=0.75).fit(calibration, np.zeros(3, int))
    for p in (0.3, 0.1 * 3, 0.3 - 1e-15, 0.3 - 1e-12):
        assert np.asarray(fit(np.log(np.array([[p, 1 - p]]))))[0, 0]
    assert not np.asarray(fit(np.log(np.array([[0.29, 0.71]]))))[0, 0]
