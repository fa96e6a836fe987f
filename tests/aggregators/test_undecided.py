"""Undecided votes: no class to every method, and evidence where their rate differs between labels."""

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from laws.data import base
from laws.families import AGGREGATOR, votes_of
from laws.registry import CASES
from scipy.special import betaln, softmax

import judgebayes as jb
from judgebayes.aggregators.wrapped import ALIKE, STRENGTHS
from judgebayes.votes import MISSING, UNDECIDED, Votes

QUICK = [
    name
    for name, case in CASES.items()
    if case.family is AGGREGATOR and not case.costly and not case.slow_only
]
COSTLY = [name for name, case in CASES.items() if case.family is AGGREGATOR and name not in QUICK]


def answers_without_some(name: str) -> list[np.ndarray]:
    """Return a method's answers with some votes missing, and with the same votes undecided."""
    case = CASES[name]
    data = base(case.n_classes[0]).fit.live()
    some = np.random.default_rng(0).random(data.index.shape) < 0.2
    answers = []
    for nothing in (MISSING, UNDECIDED):
        index = np.where(some, nothing, data.index).astype(np.int8)
        votes = votes_of(data)
        votes = Votes(jnp.asarray(index), votes.score, None, votes.task, votes.n_classes, 3)
        fitted = case.family.fit(case.estimator, (votes, data.labels, data.weight))
        answers.append(np.asarray(case.family.answer(fitted, (votes,))["probabilities"]))
    return answers


@pytest.mark.parametrize("name", QUICK)
def test_an_undecided_vote_is_for_no_class(name: str) -> None:
    missing, undecided = answers_without_some(name)
    np.testing.assert_allclose(undecided, missing, rtol=0, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", COSTLY)
def test_an_undecided_vote_is_for_no_class_to_costly_methods(name: str) -> None:
    missing, undecided = answers_without_some(name)
    np.testing.assert_allclose(undecided, missing, rtol=0, atol=1e-6)


def panel(
    rates: tuple[float, float], n: int = 400, seed: int = 0, judges: int = 5
) -> tuple[Votes, np.ndarray]:
    """Return votes of judges that are undecided at a rate by label, and all labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, n)
    right = rng.random((n, judges)) < 0.7
    index = np.where(right, labels[:, None], 1 - labels[:, None])
    none = rng.random((n, judges)) < np.array(rates)[labels][:, None]
    index = np.where(none, UNDECIDED, index)
    return Votes(jnp.asarray(index[..., None], jnp.int8), None, None, None, 2), labels


def test_rates_are_the_posterior_means_of_a_loop() -> None:
    votes, labels = panel((0.3, 0.1), n=60)
    labels = np.where(np.arange(60) % 3 == 0, MISSING, labels)
    fit = jb.WithUndecided(jb.OneCoin()).fit(votes, labels)
    index = np.asarray(votes.index)[..., 0]
    total = np.array([[(labels == k).sum() for k in (0, 1)]] * 5)
    none = np.array(
        [[((index[:, j] == UNDECIDED) & (labels == k)).sum() for k in (0, 1)] for j in range(5)]
    )
    common = (none.sum(1) + 0.5) / (total.sum(1) + 1)
    log_weight, rates = [], []
    for m in (*STRENGTHS, np.inf):
        log_ml, rate = 0.0, np.zeros((5, 2))
        for j in range(5):
            for k in range(2):
                u, n, r = none[j, k], total[j, k], common[j]
                if np.isinf(m):
                    log_ml += u * np.log(r) + (n - u) * np.log(1 - r)
                    rate[j, k] = r
                else:
                    log_ml += betaln(m * r + u, m * (1 - r) + n - u) - betaln(m * r, m * (1 - r))
                    rate[j, k] = (m * r + u) / (m + n)
        prior = ALIKE if np.isinf(m) else (1 - ALIKE) / len(STRENGTHS)
        log_weight.append(log_ml + np.log(prior))
        rates.append(rate)
    expected = np.tensordot(softmax(log_weight), np.array(rates), 1)
    # JAX computes the beta function to 1e-7.
    np.testing.assert_allclose(np.exp(fit.first["log_undecided"]), expected, rtol=1e-6)
    np.testing.assert_allclose(np.exp(fit.first["log_decided"]), 1 - expected, rtol=1e-6)


def test_probabilities_follow_from_the_rates() -> None:
    votes, labels = panel((0.4, 0.1), n=50)
    fit = jb.WithUndecided(jb.OneCoin()).fit(votes, labels)
    plain = np.asarray(fit.parts["aggregator"](votes))
    rate = np.exp(np.asarray(fit.first["log_undecided"]))
    for item in range(5):
        own = np.exp(plain[item])
        for judge, vote in enumerate(np.asarray(votes.index)[item, :, 0]):
            own = own * (rate[judge] if vote == UNDECIDED else 1 - rate[judge])
        np.testing.assert_allclose(np.exp(fit(votes))[item], own / own.sum(), atol=1e-12)


def test_encoding_and_counting_of_undecided_votes() -> None:
    table = pd.DataFrame(
        {
            "item": [1, 2, 3, 1, 2, 3],
            "judge": list("aaabbb"),
            "vote": ["A", "tie", "B", "B", "[[C]]", None],
        }
    )
    votes, coding = jb.encode(table, undecided=["tie"])
    assert coding.classes.values == ("B", "A")
    assert votes.index[..., 0].tolist() == [[1, 0], [UNDECIDED, UNDECIDED], [0, MISSING]]
    assert coding.undecided.to_dict() == {"a": 1, "b": 1}
    assert coding.missing.to_dict() == {"a": 0, "b": 1}
    judges = jb.judge_table(votes, np.array([1, 0, 0]), coding)
    assert judges["accuracy"].tolist() == [1.0, 0.0]
    assert judges["votes"].tolist() == [2, 1]
    np.testing.assert_allclose(judges["undecided"], [1 / 3, 1 / 2])
    with pytest.raises(jb.JudgeBayesError, match="read as a vote for no class"):
        coding.labels(pd.Series(["tie", "A"], [1, 2]))
