import math

import numpy as np
import pytest
from panels import judged
from scipy import stats

from judgebayes import OneCoin
from judgebayes.experiments.calibrate_dont_curate.weighted import LogOddsWeighted
from judgebayes.votes import Votes


@pytest.fixture(scope="module")
def panel() -> tuple[Votes, np.ndarray, np.ndarray]:
    """Binary votes of six judges, one below chance, a tenth missing; labels; accuracies."""
    accuracy = np.array([0.95, 0.8, 0.7, 0.6, 0.5, 0.2])
    votes, labels = judged(accuracy, 400, missing=0.1, seed=3)
    return votes, labels, accuracy


def in_plain_python(
    votes: Votes, labels: np.ndarray, log_prior: tuple[float, float]
) -> list[float]:
    """P2 eq 1 in plain Python: the probability of class 1 of every item."""
    index = np.asarray(votes.index)[:, :, 0]
    answers = []
    alpha, beta = [1.0] * index.shape[1], [1.0] * index.shape[1]
    for i, label in enumerate(labels):
        for j, vote in enumerate(index[i]):
            if label >= 0 and vote >= 0:
                if vote == label:
                    alpha[j] += 1
                else:
                    beta[j] += 1
    for row in index:
        logit = log_prior[1] - log_prior[0]
        for j, vote in enumerate(row):
            if vote >= 0:
                logit += (1 if vote == 1 else -1) * math.log(alpha[j] / beta[j])
        answers.append(1 / (1 + math.exp(-logit)))
    return answers


def test_it_is_eq_1_in_plain_python(panel: tuple[Votes, np.ndarray, np.ndarray]) -> None:
    votes, labels, _ = panel
    some = np.where(np.arange(400) % 3 == 0, labels, -1)
    probs = np.exp(OneCoin().fit(votes, some)(votes))[:, 1]
    np.testing.assert_allclose(probs, in_plain_python(votes, some, (0.0, 0.0)), rtol=1e-10)
    ones, n_labelled = int((some == 1).sum()), int((some >= 0).sum())
    prior = (math.log(n_labelled - ones + 1), math.log(ones + 1))
    probs = np.exp(OneCoin(class_prior="labels").fit(votes, some)(votes))[:, 1]
    np.testing.assert_allclose(probs, in_plain_python(votes, some, prior), rtol=1e-10)


def test_intervals_are_beta_quantiles_and_cover(
    panel: tuple[Votes, np.ndarray, np.ndarray],
) -> None:
    votes, labels, accuracy = panel
    fit = OneCoin().fit(votes, labels)
    reliability = fit.reliability(0.99)
    expected = stats.beta(*(np.asarray(fit.first[name]) for name in ("alpha", "beta"))).ppf(0.005)
    np.testing.assert_allclose(reliability.low, expected, rtol=1e-8)
    assert ((reliability.low < accuracy) & (accuracy < reliability.high)).all()


def test_intervals_cover_as_often_as_they_say() -> None:
    accuracy = np.random.default_rng(0).uniform(0.3, 0.95, 400)
    votes, labels = judged(accuracy, 40, seed=1)
    reliability = OneCoin().fit(votes, labels).reliability(0.8)
    covered = ((reliability.low < accuracy) & (accuracy < reliability.high)).mean()
    assert covered == pytest.approx(0.8, abs=4 * math.sqrt(0.16 / 400))


def test_a_known_share_of_wrong_labels_is_corrected_for() -> None:
    accuracy = np.array([0.95, 0.75, 0.6])
    votes, labels = judged(accuracy, 6000, seed=2)
    wrong = np.random.default_rng(3).random(6000) < 0.2
    noisy_labels = np.where(wrong, 1 - labels, labels)
    naive = OneCoin().fit(votes, noisy_labels).reliability()
    with_noise = OneCoin(label_noise=0.2).fit(votes, noisy_labels).reliability(0.999)
    assert naive.mean[0] < 0.8
    assert ((with_noise.low < accuracy) & (accuracy < with_noise.high)).all()


def test_log_odds_smoothed_by_one_are_the_one_coin(
    panel: tuple[Votes, np.ndarray, np.ndarray],
) -> None:
    votes, labels, _ = panel
    np.testing.assert_allclose(
        LogOddsWeighted(smoothing=1.0).fit(votes, labels)(votes),
        OneCoin().fit(votes, labels)(votes),
        atol=1e-12,
    )
