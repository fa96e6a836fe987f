"""The split curve: against a naive twin, the laws of a fit, and other inferences."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import log_softmax

from judgebayes.errors import JudgeBayesError
from judgebayes.inference import MAP
from judgebayes.majority import MeanLoss, SplitCurve, Splits, Thinning, counts_of, losses, splits_of
from judgebayes.models.split_curve import HALF_LENGTH, TERMS, SplitCurveModel, split_data
from judgebayes.votes import from_counts

SIZES = (1, 3, 5)


def simulated(items: int = 300, labels: int = 60, classes: int = 2, seed: int = 0) -> Splits:
    """Return five votes of similar judges on each item, harder items among them."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, items)
    right = rng.beta(5, 1, items)[:, None]
    other = (truth[:, None] + rng.integers(1, classes, (items, 5))) % classes
    votes = np.where(rng.random((items, 5)) < right, truth[:, None], other)
    given = np.stack([(votes == c).sum(1) for c in range(classes)], axis=1)
    known = np.where(np.arange(items) < labels, truth, -1)
    return Splits(given, known, tuple(range(classes)))


def test_the_probabilities_are_those_of_the_formula() -> None:
    rng, model = np.random.default_rng(1), SplitCurveModel(3, by_class=True)
    # The second class is one that no label has.
    votes = np.array([[5, 0, 1, 1], [2, 0, 2, 1], [0, 1, 0, 4], [1, 2, 1, 1]])
    given, total = votes[:, [0, 2, 3]], votes.sum(1)
    sites = {
        "alpha": 0.3,
        "beta": 2.0,
        "gamma": 1.3,
        "bend": rng.normal(size=TERMS),
        "log_spread": -0.2,
        "offset": rng.normal(size=3),
    }
    data = split_data(jnp.asarray(votes), jnp.full(4, -1), None, (0, 2, 3))
    ours = model.predict({k: jnp.asarray(v) for k, v in sites.items()}, data)
    naive = np.zeros((4, 3))
    for i in range(4):
        share = given[i] / total[i]
        first, second = np.sort(share)[::-1][:2]
        z = first - second
        x = z - 0.5 + HALF_LENGTH
        h = 0.0
        for m in range(1, TERMS + 1):
            root = m * np.pi / (2 * HALF_LENGTH)
            density = 0.25 * np.sqrt(2 * np.pi) * 0.3 * np.exp(-0.5 * (0.3 * root) ** 2)
            h += np.sqrt(density / HALF_LENGTH) * np.sin(root * x) * sites["bend"][m - 1]
        far = [sum(votes[i, v] * abs(v - c) for v in range(4)) / total[i] / 3 for c in (0, 2, 3)]
        logit = 2.0 * share + (share == first) * (0.3 + h) - 1.3 * np.array(far)
        logit += np.exp(-0.2) * sites["offset"]
        naive[i] = log_softmax(logit)
    np.testing.assert_allclose(ours, naive, atol=1e-5)


@pytest.mark.parametrize("classes", [2, 3])
def test_swapping_classes_swaps_the_answers(classes: int) -> None:
    splits = simulated(classes=classes)
    labels = np.where(splits.labels < 0, -1, classes - 1 - splits.labels)
    swapped = Splits(splits.given[:, ::-1], labels, splits.label_classes)
    fits = [SplitCurve(by_class=False).fit(s).probs(s).mean(0) for s in (splits, swapped)]
    np.testing.assert_allclose(fits[0], fits[1][:, ::-1], atol=1e-7)


@pytest.mark.parametrize("classes", [2, 3])
def test_with_noise_labels_are_drawn_given_votes_and_what_was_observed(classes: int) -> None:
    splits, noise = simulated(items=40, labels=25, classes=classes), 0.2
    fit = SplitCurve(inference=MAP(), noise=noise).fit(splits)
    probs = fit.probs(splits)[0]
    naive = 0.0
    for i in range(40):
        chance = probs[i].copy()
        if splits.labels[i] >= 0:
            for y in range(classes):
                chance[y] *= 1 - noise if y == splits.labels[i] else noise / (classes - 1)
        naive += float(chance / chance.sum() @ losses(splits.take(np.array([i])), 3, "wrong")[0])
    curve = fit.curve(splits, (3,), MeanLoss("these", "wrong"))
    assert float(curve.error[0]) == pytest.approx(naive / 40, abs=1e-9)
    none = SplitCurve(noise=1e-9).fit(splits).curve(splits, SIZES, MeanLoss("these"))
    zero = SplitCurve().fit(splits).curve(splits, SIZES, MeanLoss("these"))
    np.testing.assert_allclose(none.error, zero.error, atol=2e-3)
    np.testing.assert_allclose(none.high - none.low, zero.high - zero.low, rtol=0.1)


def test_noise_in_labels_is_no_error_of_the_majority() -> None:
    splits, rng = simulated(items=600, labels=600), np.random.default_rng(2)
    item = np.arange(600)
    truth = losses(splits, 5, "wrong")[item, splits.labels].mean()
    wrong = rng.random(600) < 0.15
    observed = splits.with_labels(np.where(wrong, 1 - splits.labels, splits.labels))
    ours, taken_as_right = (
        SplitCurve(noise=noise).fit(observed).curve(observed, (5,), MeanLoss("these", "wrong"))
        for noise in (0.15, 0.0)
    )
    assert ours.low[0] < truth < ours.high[0]
    assert taken_as_right.low[0] > truth + 0.05


@pytest.mark.parametrize("classes", [2, 3])
def test_with_every_label_the_error_on_these_items_is_known(classes: int) -> None:
    splits = simulated(labels=300, classes=classes)
    curve = SplitCurve().fit(splits).curve(splits, SIZES, MeanLoss("these", "wrong"))
    item = np.arange(300)
    exact = [losses(splits, size, "wrong")[item, splits.labels].mean() for size in SIZES]
    np.testing.assert_allclose(curve.error, exact, atol=1e-12)
    np.testing.assert_allclose(curve.high - curve.low, 0, atol=1e-12)


def test_for_new_items_fully_labelled_data_are_those_of_thinning() -> None:
    splits = simulated(labels=300)
    curve = SplitCurve().fit(splits).curve(splits, SIZES)
    correct = splits.given[np.arange(300), splits.labels]
    thinned = Thinning().fit(counts_of(correct, 5)).curve(SIZES)
    np.testing.assert_allclose(curve.error, thinned.error, atol=0.005)
    np.testing.assert_allclose(curve.high - curve.low, thinned.high - thinned.low, rtol=0.1)


def test_unlabelled_votes_narrow_the_interval() -> None:
    ratios = []
    for seed in range(8):
        splits = simulated(labels=20, seed=seed)
        curve = SplitCurve(by_class=False).fit(splits).curve(splits, SIZES)
        correct = splits.given[np.arange(20), splits.labels[:20]]
        thinned = Thinning().fit(counts_of(correct, 5)).curve(SIZES)
        ratios.append((curve.high - curve.low) / (thinned.high - thinned.low))
    assert (np.mean(ratios, axis=0) < 0.9).all()


def test_related_items_widen_the_interval() -> None:
    splits = simulated(items=60, labels=60)
    repeated = Splits(np.repeat(splits.given, 5, axis=0), np.repeat(splits.labels, 5), (0, 1))
    groups = np.repeat(np.arange(60), 5)
    fit = SplitCurve().fit(splits)
    alone = fit.curve(splits, SIZES)
    grouped = fit.curve(repeated, SIZES, MeanLoss(groups=groups))
    naive = fit.curve(repeated, SIZES)
    width = alone.high - alone.low
    np.testing.assert_allclose(grouped.high - grouped.low, width, rtol=0.15)
    assert ((naive.high - naive.low) < 0.6 * width).all()


def test_a_vote_for_a_class_that_no_label_has_is_for_no_class() -> None:
    votes = from_counts(np.array([[3, 2, 0], [1, 2, 2], [0, 4, 1]]))
    splits = splits_of(votes, np.array([0, -1, 2]), (0, 2))
    assert losses(splits, 5, "wrong")[0].tolist() == [0, 1]
    with pytest.raises(JudgeBayesError, match="label 1, which is not one of"):
        splits_of(votes, np.array([0, 1, 2]), (0, 2))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"labels": np.array([0])}, "3 items with votes and 1 labels"),
        ({"label_classes": (0, 3)}, "classes 0 to 1"),
        ({"given": np.array([[1, -1], [0, 1], [1, 1]])}, "negative"),
    ],
)
def test_splits_that_do_not_agree_are_refused(change: dict[str, object], sentence: str) -> None:
    usual = {"given": np.ones((3, 2), int), "labels": np.zeros(3, int), "label_classes": (0, 1)}
    with pytest.raises(JudgeBayesError, match=sentence):
        Splits(**(usual | change))  # type: ignore[arg-type]
