import numpy as np
import pytest

from judgebayes import BaseRate, MarginThreshold
from judgebayes.errors import JudgeBayesError
from judgebayes.measures import scores
from judgebayes.measures.scores import absolute_loss, bayes_action, zero_one_loss
from judgebayes.votes import Votes, from_counts


def threshold_by_loop(counts: np.ndarray, labels: np.ndarray) -> tuple[int, float]:
    """The least threshold with the least error, by a plain loop."""
    used = labels >= 0
    errors = []
    for k in range(1, int(counts.sum(1).max()) + 2):
        wrong = 0
        for (minus, _, plus), label in zip(counts[used], labels[used], strict=True):
            margin = plus - minus
            decision = 1 if abs(margin) < k else (2 if margin > 0 else 0)
            wrong += abs(decision - label)
        errors.append(wrong / used.sum())
    return int(np.argmin(errors)) + 1, min(errors)


def test_the_threshold_is_that_of_a_plain_loop(
    counts: np.ndarray, votes: Votes, labels: np.ndarray
) -> None:
    fit = MarginThreshold().fit(votes, labels)
    threshold, error = threshold_by_loop(counts, labels)
    assert int(fit.first["threshold"]) == threshold
    decisions = bayes_action(fit(votes), absolute_loss(3))
    assert float(scores.mae(decisions, labels)) == pytest.approx(error)


def every_possible_noisy_label(
    votes: Votes, labels: np.ndarray, noise: float
) -> tuple[Votes, np.ndarray, np.ndarray]:
    """Every item once per possible noisy label, weighted by its probability."""
    confusion = np.full((3, 3), noise / 2) + (1 - 1.5 * noise) * np.eye(3)
    items = np.repeat(np.arange(len(labels)), 3)
    return votes.take(items), np.tile(np.arange(3), len(labels)), confusion[labels].ravel()


def test_a_threshold_with_label_noise_is_that_of_the_true_labels(
    counts: np.ndarray, votes: Votes, labels: np.ndarray
) -> None:
    items = np.flatnonzero(labels >= 0)
    true = labels[items]
    threshold, _ = threshold_by_loop(counts[items], true)
    several, noisy_labels, weight = every_possible_noisy_label(votes.take(items), true, 0.6)
    with_noise = MarginThreshold(label_noise=0.6).fit(several, noisy_labels, weight=weight)
    unaware = MarginThreshold().fit(several, noisy_labels, weight=weight)
    assert int(with_noise.first["threshold"]) == threshold
    assert int(unaware.first["threshold"]) > threshold  # a tie has a small loss for a wrong label


def test_the_threshold_is_for_ternary_votes() -> None:
    with pytest.raises(JudgeBayesError, match="needs ternary votes; these have 2"):
        MarginThreshold().fit(from_counts(np.array([[1, 2]])), np.array([0]))


def test_base_rates_are_weighted_frequencies(votes: Votes) -> None:
    labels = np.full(60, -1)
    labels[:4] = [0, 2, 2, 1]
    weight = np.ones(60)
    weight[1] = 3.0
    fit = BaseRate().fit(votes, labels, weight=weight)
    np.testing.assert_allclose(np.exp(fit(votes))[17], [1 / 6, 1 / 6, 4 / 6], rtol=1e-12)
    smooth = BaseRate(pseudo_count=1.0).fit(votes, labels)
    np.testing.assert_allclose(np.exp(smooth(votes))[0], [2 / 7, 2 / 7, 3 / 7], rtol=1e-12)


def test_base_rates_of_noisy_labels_are_those_of_the_true_ones(votes: Votes) -> None:
    labels = np.repeat([0, 1, 2], [6, 18, 36])
    several, noisy_labels, weight = every_possible_noisy_label(votes, labels, 0.2)
    with_noise = BaseRate(label_noise=0.2).fit(several, noisy_labels, weight=weight)
    np.testing.assert_allclose(np.exp(with_noise.first["log_rates"]), [0.1, 0.3, 0.6], atol=1e-9)


@pytest.mark.parametrize("loss", [absolute_loss(3), zero_one_loss(3)])
def test_its_bayes_action_is_the_best_constant(votes: Votes, loss: np.ndarray) -> None:
    rng = np.random.default_rng(0)
    for _ in range(10):
        labels = rng.choice(3, 60, p=rng.dirichlet(np.ones(3)))
        action = int(bayes_action(BaseRate().fit(votes, labels)(votes), loss)[0])
        assert loss[action, labels].mean() == pytest.approx(loss[:, labels].mean(1).min())
