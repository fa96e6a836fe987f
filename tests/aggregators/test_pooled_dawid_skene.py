"""Dawid-Skene with pooled judges, for crowds without labels."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import digamma, gammaln

import judgebayes as jb
from judgebayes import NUTS, DawidSkene
from judgebayes.aggregators.dawid_skene import EM
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fast import pooled_dawid_skene
from judgebayes.inference.fast.dawid_skene_em import departures
from judgebayes.votes import Votes, from_dense


def crowd(seed: int, n: int = 300, share: float = 0.92) -> tuple[Votes, np.ndarray]:
    """Return five votes of 40 workers on each item of a set with mostly one class, and the truth."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) > share).astype(int)
    right = rng.beta(6, 2, (40, 2))
    right[:8] = 0.5  # spammers
    index = np.full((n, 40, 1), -1, np.int8)
    for i in range(n):
        for j in rng.choice(40, 5, replace=False):
            vote = rng.random() < right[j, truth[i]]
            index[i, j, 0] = truth[i] if vote else 1 - truth[i]
    return Votes(jnp.asarray(index), None, None, None, 2), truth


@pytest.fixture(scope="module")
def votes() -> Votes:
    """One crowd for most tests, so that its fit is compiled once."""
    return crowd(0)[0]


def none_of(votes: Votes) -> np.ndarray:
    return np.full(votes.n_items, -1)


class Naive:
    """The bound with the judges integrated out, by loops, for two classes and the default prior."""

    def __init__(self, sites: dict[str, np.ndarray]) -> None:
        self.point = np.array(
            [
                sites["mean_ability"],
                sites["log_spread"],
                *sites["shift"],
                *sites["log_concentration"],
            ]
        )
        self.skills = np.linspace(-3, 3, 15)
        self.weights = np.exp(-(self.skills**2) / 2)
        self.weights /= self.weights.sum()

    def alpha(self, x: np.ndarray, z: float) -> np.ndarray:
        right = [1 / (1 + np.exp(-(x[0] + np.exp(x[1]) * z + x[2 + k]))) for k in range(2)]
        rows = np.array([[right[0], 1 - right[0]], [1 - right[1], right[1]]])
        return np.exp(x[4:, None]) * rows

    def by_skill(self, x: np.ndarray, votes: np.ndarray) -> np.ndarray:
        """Return the weight of each skill, times the probability of a judge's votes."""
        each = []
        for z, weight in zip(self.skills, self.weights, strict=True):
            alpha = self.alpha(x, z)
            norm = gammaln(alpha.sum(1)) - gammaln(alpha.sum(1) + votes.sum(1))
            log_p = norm.sum() + (gammaln(alpha + votes) - gammaln(alpha)).sum()
            each.append(weight * np.exp(log_p))
        return np.array(each)

    def value(self, x: np.ndarray, votes: np.ndarray) -> float:
        prior = -((x[0] - 1.4) ** 2 + (x[1] + 0.5) ** 2) / (2 * 0.7**2)
        prior += -(x[2:4] ** 2).sum() / (2 * 0.5**2) - ((x[4:] - np.log(8)) ** 2).sum() / 2
        return sum(np.log(self.by_skill(x, own).sum()) for own in votes) + prior

    def rows(self, votes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the means of a judge's rows, and of their logarithms."""
        share = self.by_skill(self.point, votes)
        share /= share.sum()
        after = [self.alpha(self.point, z) + votes for z in self.skills]
        logs = [digamma(a) - digamma(a.sum(1, keepdims=True)) for a in after]
        means = [a / a.sum(1, keepdims=True) for a in after]
        return np.tensordot(share, means, 1), np.tensordot(share, logs, 1)


def test_it_ends_where_naive_loops_stay(votes: Votes) -> None:
    """The classes are a fixed point, and no description of the crowd has a higher bound."""
    fit = DawidSkene().fit(votes, none_of(votes))
    count = np.asarray(votes.counts(), float)
    naive = Naive({name: np.asarray(x[0]) for name, x in fit.draws.items()})
    p = np.exp(np.asarray(fit(votes)))
    for _ in range(150):
        tally = np.einsum("ik,ijl->jkl", p, count)
        mean, logs = (np.stack(x) for x in zip(*(naive.rows(own) for own in tally), strict=True))
        pi = (p.sum(0) + 1) / (len(p) + 2)
        joint = np.log(pi) + np.einsum("ijl,jkl->ik", count, logs)
        p = np.exp(joint - joint.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
    np.testing.assert_allclose(fit.draws["pi"][0], pi, atol=1e-4)
    np.testing.assert_allclose(fit.draws["confusion"][0], mean, atol=1e-4)
    best = naive.value(naive.point, tally)
    for step in 0.05 * np.eye(6):
        sides = [naive.value(naive.point + sign * step, tally) for sign in (-1, 1)]
        assert max(sides) < best
        assert abs(sides[1] - sides[0]) / 0.1 < 0.02  # the slope


def test_judges_are_pooled_only_without_labels_unless_asked_for() -> None:
    votes, truth = crowd(0)
    pooled = jb.priors.PooledDawidSkene()
    assert isinstance(DawidSkene().fit(votes, none_of(votes)).method.prior, type(pooled))
    assert isinstance(DawidSkene().fit(votes, truth).method.prior, jb.priors.DawidSkene)
    assert "shift" in DawidSkene(prior=pooled).fit(votes, truth).draws
    for own in (jb.priors.DawidSkene(right=2.0), jb.priors.DawidSkene()):
        plain = DawidSkene(prior=own).fit(votes, none_of(votes))
        assert isinstance(plain.method.prior, jb.priors.DawidSkene)
        assert "skill" not in plain.draws
        assert "shift" not in plain.draws


def test_it_is_not_pulled_below_the_majority_where_most_items_have_one_class() -> None:
    pooled_less, plain_less = [], []
    for seed in range(3):
        votes, truth = crowd(seed)
        majority = np.asarray(votes.pooled_counts()).argmax(1)
        answers = [
            np.asarray(DawidSkene(prior=prior).fit(votes, none_of(votes))(votes)).argmax(1)
            for prior in (None, jb.priors.DawidSkene())
        ]
        base = (majority == truth).mean()
        pooled_less.append(base - (answers[0] == truth).mean())
        plain_less.append(base - (answers[1] == truth).mean())
    assert max(pooled_less) <= 0.01
    assert np.mean(pooled_less) < np.mean(plain_less)


def test_steps_raise_the_bound(votes: Votes) -> None:
    methods = DawidSkene(EM(max_steps=3)), DawidSkene(EM(max_steps=9)), DawidSkene()
    values = [
        float(method.fit(votes, none_of(votes)).details["log_posterior"]) for method in methods
    ]
    assert values == sorted(values)
    assert values[-1] > values[0]


def test_a_list_a_matrix_and_compiled_code_agree(votes: Votes) -> None:
    method, labels = DawidSkene(prior=jb.priors.PooledDawidSkene()), none_of(votes)
    fit = method.fit(votes, labels)
    by_list = method.fit(from_dense(votes), labels)
    np.testing.assert_allclose(by_list(votes), fit(votes), atol=1e-6)
    compiled = jax.jit(lambda v, y: method.fit(v, y)(v))(votes, jnp.asarray(labels))
    np.testing.assert_allclose(compiled, fit(votes), atol=1e-6)
    with pytest.raises(JudgeBayesError, match="is fitted by EM"):
        DawidSkene(NUTS(), prior=jb.priors.PooledDawidSkene()).fit(from_dense(votes), labels)


def test_a_departure_from_the_majority_or_from_another_start_is_told() -> None:
    rng = np.random.default_rng(5)
    index = np.full((200, 9, 1), -1, np.int8)
    truth = rng.integers(0, 2, 200)
    for j, accuracy in enumerate([0.97, 0.97, 0.95, *[0.55] * 6]):
        index[:, j, 0] = np.where(rng.random(200) < accuracy, truth, 1 - truth)
    votes = Votes(jnp.asarray(index), None, None, None, 2)
    fit = DawidSkene().fit(votes, none_of(votes))
    answers = np.asarray(fit(votes)).argmax(1)
    majority = np.asarray(votes.pooled_counts()).argmax(1)
    share = (answers != majority).mean()
    assert share > 0.05
    assert float(fit.details["off_majority"]) == pytest.approx(share, abs=0.02)
    assert "against the majority" in fit.words()[0]
    agreed = DawidSkene().fit(votes.of_judges([0, 1, 2]), none_of(votes))
    assert agreed.words() == []


@in_float64
def test_departures_are_shares_of_items_with_weight(votes: Votes) -> None:
    """Five items of two classes: one has weight 0, one a tie."""
    count = np.array([[2, 0], [2, 0], [0, 2], [1, 1], [2, 0]], float)
    first, second = np.array([0.9, 0.2, 0.1, 0.9, 0.9]), np.array([0.9, 0.9, 0.1, 0.1, 0.9])
    expected = np.stack([first, 1 - first, second, 1 - second])
    weight = jnp.asarray([1.0, 1.0, 1.0, 1.0, 0.0])
    best = jnp.asarray(0)
    shares = departures(jnp.asarray(expected), best, jnp.asarray(count), weight)
    assert float(shares["off_majority"]) == pytest.approx(1 / 3)
    assert float(shares["off_other_start"]) == pytest.approx(2 / 4)
    fit = DawidSkene().fit(votes, none_of(votes))
    departed = shares | {"off_majority": jnp.asarray(0.0)}
    sentences = replace(fit, details=departed).words()
    assert len(sentences) == 1
    assert "Another start" in sentences[0]
    assert "50%" in sentences[0]


def test_reliability_is_within_bounds_and_narrows_with_votes(votes: Votes) -> None:
    fit = DawidSkene().fit(votes, none_of(votes))
    mean, low, high = fit.reliability()
    assert ((low < mean) & (mean < high)).all()


@in_float64
def test_the_priors_votes_are_those_of_a_beta_with_its_mean_and_variance() -> None:
    rng = np.random.default_rng(8)
    log_c = np.log([6.0, 20.0])
    of_class = jnp.asarray([0.3, -0.4]), jnp.asarray(log_c)
    start = pooled_dawid_skene.begin(jnp.log(jnp.asarray([0.5, 0.5])), jb.priors.PooledDawidSkene())
    description = start._replace(shift=of_class[0], log_concentration=of_class[1])
    skill = np.clip(rng.normal(size=(400_000, 1)), -3, 3)
    right = 1 / (1 + np.exp(-(1.4 + np.exp(-0.5) * skill + np.asarray(of_class[0]))))
    drawn = rng.beta(np.exp(log_c) * right, np.exp(log_c) * (1 - right))
    expected = drawn.mean(0) * (1 - drawn.mean(0)) / drawn.var(0) - 1
    np.testing.assert_allclose(pooled_dawid_skene.pseudo_votes(description), expected, rtol=0.02)
