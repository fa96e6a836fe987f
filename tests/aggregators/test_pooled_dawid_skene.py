"""Dawid-Skene with pooled judges, for crowds without labels."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import digamma

import judgebayes as jb
from judgebayes.aggregators import DawidSkene
from judgebayes.aggregators.dawid_skene import EM, _departures
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.inference import NUTS, Status
from judgebayes.inference.fast.sparse_counts import SparseCounts, listed
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


def none_of(votes: Votes) -> np.ndarray:
    return np.full(votes.n_items, -1)


def naive(votes: Votes, steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return pi, the mean rows and the confusion matrices, with loops over judges and classes."""
    count = np.asarray(votes.counts(), float)
    n, n_judges, k = count.shape
    pseudo = np.where(np.eye(k, dtype=bool), 20.0, 5 / (k - 1))
    for_class = count.sum(1)
    p = (for_class + 1 / k) / (for_class.sum(1, keepdims=True) + 1)
    mean, log_c = None, np.full(k, np.log(8.0))
    for _ in range(steps):
        tally = np.zeros((n_judges, k, k))
        for j in range(n_judges):
            for y in range(k):
                tally[j, y] = p[:, y] @ count[:, j]
        if mean is None:
            mean = tally.sum(0) + pseudo
            mean = mean / mean.sum(1, keepdims=True)
        for _ in range(5):
            alpha = np.exp(log_c)[:, None] * mean
            mean = (alpha * (digamma(alpha + tally) - digamma(alpha))).sum(0) + pseudo
            mean = mean / mean.sum(1, keepdims=True)
            alpha, c = np.exp(log_c)[:, None] * mean, np.exp(log_c)
            tables = (alpha * (digamma(alpha + tally) - digamma(alpha))).sum((0, 2))
            slope = (digamma(tally.sum(2) + c) - digamma(c)).sum(0)
            for y in range(k):  # a search by bisection for the maximum in the concentration
                low, high = -10.0, 10.0
                for _ in range(60):
                    x = (low + high) / 2
                    up = tables[y] - np.exp(x) * slope[y] - (x - np.log(8.0)) > 0
                    low, high = (x, high) if up else (low, x)
                log_c[y] = (low + high) / 2
        rows = tally + np.exp(log_c)[:, None] * mean
        pi = (p.sum(0) + 1) / (n + k)
        logs = digamma(rows) - digamma(rows.sum(2, keepdims=True))
        joint = np.log(pi) + np.einsum("ijl,jkl->ik", count, logs)
        p = np.exp(joint - joint.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
    return pi, mean, rows / rows.sum(2, keepdims=True)


def test_it_ends_where_naive_loops_end() -> None:
    votes, _ = crowd(0)
    fit = DawidSkene().fit(votes, none_of(votes))
    assert int(fit.status) == Status.CONVERGED
    pi, mean, confusion = naive(votes, 400)
    np.testing.assert_allclose(fit.draws["pi"][0], pi, atol=1e-4)
    np.testing.assert_allclose(fit.draws["mean_row"][0], mean, atol=1e-3)
    np.testing.assert_allclose(fit.draws["confusion"][0], confusion, atol=1e-3)


def test_judges_are_pooled_only_without_labels_unless_asked_for() -> None:
    votes, truth = crowd(1)
    assert DawidSkene().fit(votes, none_of(votes)).pooled
    assert not DawidSkene().fit(votes, truth).pooled
    asked = (DawidSkene(pooled=True), DawidSkene(prior=jb.priors.PooledDawidSkene()))
    one, two = (method.fit(votes, truth) for method in asked)
    assert one.pooled
    np.testing.assert_array_equal(one(votes), two(votes))
    own = DawidSkene(prior=jb.priors.DawidSkene(right=2.0))
    assert not own.fit(votes, none_of(votes)).pooled
    with pytest.raises(JudgeBayesError, match="pass a judgebayes"):
        replace(own, pooled=True).fit(votes, none_of(votes))
    plain = DawidSkene(pooled=False).fit(votes, none_of(votes))
    assert not plain.pooled
    assert "mean_row" not in plain.draws


def test_it_is_not_pulled_below_the_majority_where_most_items_have_one_class() -> None:
    pooled_less, plain_less = [], []
    for seed in range(3):
        votes, truth = crowd(seed)
        majority = np.asarray(votes.pooled_counts()).argmax(1)
        answers = [
            np.asarray(DawidSkene(pooled=pooled).fit(votes, none_of(votes))(votes)).argmax(1)
            for pooled in (True, False)
        ]
        base = (majority == truth).mean()
        pooled_less.append(base - (answers[0] == truth).mean())
        plain_less.append(base - (answers[1] == truth).mean())
    assert max(pooled_less) <= 0.01
    assert np.mean(pooled_less) < np.mean(plain_less)


def test_every_step_raises_the_bound() -> None:
    votes, _ = crowd(2)
    values = [
        float(DawidSkene(EM(max_steps=steps)).fit(votes, none_of(votes)).log_posterior)
        for steps in (2, 3, 6, 40)
    ]
    assert values == sorted(values)
    assert values[-1] > values[0]


def test_a_list_a_matrix_and_compiled_code_agree() -> None:
    votes, _ = crowd(3)
    method, labels = DawidSkene(pooled=True), none_of(votes)
    fit = method.fit(votes, labels)
    by_list = method.fit(from_dense(votes), labels)
    np.testing.assert_allclose(by_list(votes), fit(votes), atol=1e-6)
    compiled = jax.jit(lambda v, y: method.fit(v, y)(v))(votes, jnp.asarray(labels))
    np.testing.assert_allclose(compiled, fit(votes), atol=1e-6)
    with pytest.raises(JudgeBayesError, match="fitted by EM"):
        DawidSkene(NUTS(), pooled=True).fit(from_dense(votes), labels)


def test_products_of_listed_counts_are_those_of_the_matrix() -> None:
    votes, _ = crowd(4)
    assert listed(votes) is None  # a small matrix
    wide = np.full((400, 180, 2), -1, np.int8)
    rng = np.random.default_rng(0)
    for i in range(399):  # the last item has no votes
        wide[i, rng.choice(180, 3, replace=False), 0] = rng.integers(0, 3, 3)
    wide[0, 0] = 1
    panel = Votes(jnp.asarray(wide), None, None, None, 3)
    as_list = listed(panel)
    assert as_list is not None
    count, dense = SparseCounts(as_list), np.asarray(panel.counts()).reshape(400, -1)
    assert count.shape == dense.shape
    table, rows = rng.normal(size=(540, 4)), rng.normal(size=(5, 400))
    np.testing.assert_allclose(count @ jnp.asarray(table), dense @ table, atol=1e-5)
    np.testing.assert_allclose(jnp.asarray(rows) @ count, rows @ dense, atol=1e-5)


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
    assert float(fit.off_majority) == pytest.approx(share, abs=0.02)
    assert "against the majority" in fit.words()[0]
    agreed = DawidSkene().fit(votes.of_judges([0, 1, 2]), none_of(votes))
    assert agreed.words() == []


@in_float64
def test_departures_are_shares_of_items_with_weight() -> None:
    """Five items of two classes: one has weight 0, one a tie."""
    count = np.array([[2, 0], [2, 0], [0, 2], [1, 1], [2, 0]], float)
    first, second = np.array([0.9, 0.2, 0.1, 0.9, 0.9]), np.array([0.9, 0.9, 0.1, 0.1, 0.9])
    expected = np.stack([first, 1 - first, second, 1 - second])
    weight = jnp.asarray([1.0, 1.0, 1.0, 1.0, 0.0])
    best = jnp.asarray(0)
    shares = _departures(jnp.asarray(expected), best, jnp.asarray(count), weight)
    assert float(shares.majority) == pytest.approx(1 / 3)
    assert float(shares.other_start) == pytest.approx(2 / 4)
    fit = DawidSkene().fit(crowd(6)[0], none_of(crowd(6)[0]))
    sentences = replace(
        fit, off_majority=jnp.asarray(0.0), off_other_start=shares.other_start
    ).words()
    assert len(sentences) == 1
    assert "Another start" in sentences[0]
    assert "50%" in sentences[0]


def test_reliability_is_within_bounds_and_narrows_with_votes() -> None:
    votes, _ = crowd(7)
    fit = DawidSkene().fit(votes, none_of(votes))
    mean, low, high = fit.reliability()
    assert ((low < mean) & (mean < high)).all()
