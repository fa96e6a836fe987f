"""The labels of several annotators: error rates, likelihoods and merged labels."""

import numpy as np
import pytest
from scipy.special import softmax

from judgebayes.votes.annotators import Annotations, ErrorRates, error_rates


def annotations(given: np.ndarray, n_classes: int = 2, final: int | None = None) -> Annotations:
    """Return the labels of a table item x annotator, -1 without a label."""
    item, annotator = np.nonzero(given >= 0)
    own = annotator != final
    item, annotator = item[own], annotator[own]
    decided = np.full(len(given), -1) if final is None else given[:, final]
    return Annotations(item, annotator, given[item, annotator], decided, given.shape[1], n_classes)


def noisy(truth: np.ndarray, rates: list[float], n_classes: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    shape = len(truth), len(rates)
    other = (truth[:, None] + rng.integers(1, n_classes, shape)) % n_classes
    return np.where(rng.random(shape) < rates, other, truth[:, None])


GIVEN = np.array([[0, 0, -1], [0, 1, -1], [0, 1, 1], [0, 1, 0], [-1, -1, -1], [1, -1, -1]])


@pytest.mark.parametrize(
    ("how", "final", "expected"),
    [
        ("majority", None, [0, -1, 1, 0, -1, 1]),
        ("adjudicated", None, [0, -1, -1, -1, -1, 1]),
        ("adjudicated", 2, [0, -1, 1, 0, -1, 1]),
        ("majority", 2, [0, -1, 1, 0, -1, 1]),
        ("noisy", None, [0, -1, 1, 0, -1, 1]),
        ("noisy", 0, [0, 0, 0, 0, -1, 1]),
    ],
)
def test_merged_labels(how: str, final: int | None, expected: list[int]) -> None:
    labels = annotations(GIVEN, final=final)
    rates = ErrorRates(np.full(3, 0.2), (0.0, 0.1), 2)
    assert labels.merged(how, rates).tolist() == expected  # type: ignore[arg-type]


def test_the_likelihood_is_that_of_the_story() -> None:
    rates = ErrorRates(np.array([0.1, 0.25, 0.3]), (0.0, 0.0), 3)
    given = np.array([[0, 2, -1], [1, 1, 2], [-1, -1, -1]])
    chances = softmax(rates.log_likelihood(annotations(given, 3)), axis=1)
    for row, posterior in zip(given, chances, strict=True):
        each = [
            np.prod(
                [1 - e if z == y else e / 2 for z, e in zip(row, rates.rate, strict=True) if z >= 0]
            )
            for y in range(3)
        ]
        np.testing.assert_allclose(posterior, np.array(each) / sum(each), rtol=1e-12)


def test_two_annotators_have_the_rate_of_their_disagreement() -> None:
    truth = (np.arange(20_000) % 4 > 0).astype(int)
    given = noisy(truth, [0.15, 0.15], 2)
    disagree = (given[:, 0] != given[:, 1]).mean()
    rates = error_rates(annotations(given))
    assert rates is not None
    e = float(rates.rate[0])
    assert 2 * e * (1 - e) == pytest.approx(disagree, rel=2e-3)
    assert rates.level[0] == pytest.approx(0, abs=0.02)
    # The standard error of the disagreement, on the logit scale of the rate.
    error = np.sqrt(disagree * (1 - disagree) / len(truth)) / (2 * (1 - 2 * e)) / (e * (1 - e))
    assert rates.level[1] == pytest.approx(error, rel=0.1)


def test_adjudication_hardly_changes_the_rate() -> None:
    truth = (np.arange(2000) % 4 > 0).astype(int)
    given = noisy(truth, [0.15, 0.15], 2)
    split = given[:, 0] != given[:, 1]
    third = np.where(split, truth, -1)[:, None]
    free, decided = (
        error_rates(annotations(given)),
        error_rates(annotations(np.hstack([given, third]), final=2)),
    )
    assert free is not None
    assert decided is not None
    assert decided.rate[0] == pytest.approx(free.rate[0], abs=0.004)


def test_the_nodes_have_the_mean_and_the_spread() -> None:
    rates = ErrorRates(np.array([0.2]), (0.1, 0.3), 2)
    at = np.array([np.log(node.rate[0] / (1 - node.rate[0])) for node in rates.nodes()])
    shift, weight = at - np.log(0.25), np.array([1, 4, 1]) / 6
    assert weight @ shift == pytest.approx(0.1)
    assert weight @ (shift - 0.1) ** 2 == pytest.approx(0.09)
