"""The division of the labelled items between an aggregator and its calibrator, and sweeps of both."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from judgebayes import BaseRate, Calibrated, Identity, Platt, Status, Temperature
from judgebayes.aggregators.wrapped import random_places
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.evaluate.splits import Splits, random_splits
from judgebayes.evaluate.sweeps import evaluate_splits
from judgebayes.inference.fit import training
from judgebayes.measures.scores import labelled_weight
from judgebayes.votes import Votes


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Counting:
    """Naive Bayes on the pooled votes, in closed form: quick to compile, and it overfits slightly."""

    @in_float64
    def fit(
        self, votes: Votes, labels: Any, *, weight: Any = None, key: Any = None
    ) -> "FittedCounting":
        data = training(votes, labels, weight, key)
        member = (
            jax.nn.one_hot(data.labels, 3, dtype=float)
            * labelled_weight(data.labels, data.weight)[:, None]
        )
        class_counts = member.T @ data.given.pooled_counts() + 0.5
        return FittedCounting(
            jnp.log(class_counts / class_counts.sum(1, keepdims=True)),
            jnp.asarray(int(Status.CONVERGED)),
        )


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FittedCounting:
    log_rates: jax.Array
    status: jax.Array

    @in_float64
    def __call__(self, votes: Votes) -> jax.Array:
        return jax.nn.log_softmax(votes.pooled_counts() @ self.log_rates.T)


COUNTING = Counting()
PROTOCOLS: dict[str, dict[str, Any]] = {
    "nested": {"share": 0.7},
    "in-sample": {"share": None},
    "cross-fit": {"cross_fit": 3},
}
protocols = pytest.mark.parametrize("protocol", list(PROTOCOLS))


@pytest.fixture(scope="module")
def parts(labels: np.ndarray) -> Splits:
    return random_splits(60, splits=3, calibration=30, among=np.flatnonzero(labels >= 0))


def places(used: np.ndarray, seed: int = 0) -> np.ndarray:
    return np.asarray(random_places(jnp.asarray(used), jax.random.key(seed)))


def test_the_division_is_a_random_order_of_the_used_items_only() -> None:
    used = np.random.default_rng(0).random(40) < 0.6
    ranks = places(used)
    assert sorted(ranks[used]) == list(range(used.sum()))
    np.testing.assert_array_equal(ranks[used], places(np.ones(used.sum(), bool)))
    padded = np.r_[used, np.zeros(7, bool)]
    np.testing.assert_array_equal(places(padded)[:40][used], ranks[used])
    assert (places(used, 1)[used] != ranks[used]).any()


def halves(labels: np.ndarray, share: float, key: jax.Array) -> tuple[np.ndarray, np.ndarray]:
    used = np.asarray(labels) >= 0
    place = np.asarray(random_places(jnp.asarray(used), jax.random.split(key)[0]))
    own = used & (place < round(share * used.sum()))
    return np.flatnonzero(own), np.flatnonzero(used & ~own)


def test_nested_fits_are_two_fits_on_two_parts(votes: Votes, labels: np.ndarray) -> None:
    key = jax.random.key(3)
    first, second = in_float64(halves)(labels, 0.7, key)
    assert len(first) == 35
    assert len(second) == 15
    aggregator = COUNTING.fit(votes.take(first), labels[first])
    calibrator = Temperature().fit(aggregator(votes.take(second)), labels[second])
    fit = Calibrated(COUNTING, Temperature(), 0.7).fit(votes, labels, key=key)
    np.testing.assert_allclose(fit(votes), calibrator(aggregator(votes)), atol=1e-7)


def test_a_share_of_none_fits_both_on_everything(votes: Votes, labels: np.ndarray) -> None:
    aggregator = COUNTING.fit(votes, labels)
    calibrator = Platt().fit(aggregator(votes), labels)
    fit = Calibrated(COUNTING, Platt(), None).fit(votes, labels)
    np.testing.assert_allclose(fit(votes), calibrator(aggregator(votes)), atol=1e-7)


def test_cross_fitting_calibrates_on_held_out_predictions(votes: Votes, labels: np.ndarray) -> None:
    key = jax.random.key(5)
    used = labels >= 0
    first = in_float64(jax.random.split)(key, 2 + 3)[0]
    fold = np.asarray(in_float64(random_places)(jnp.asarray(used), first)) % 3
    raw = np.zeros((60, 3))
    for which in range(3):
        inside, outside = np.flatnonzero(used & (fold != which)), np.flatnonzero(fold == which)
        fit = COUNTING.fit(votes.take(inside), labels[inside])
        raw[outside] = fit(votes.take(outside))
    calibrator = Temperature().fit(raw, labels)
    fit = Calibrated(COUNTING, Temperature(), cross_fit=3).fit(votes, labels, key=key)
    whole = COUNTING.fit(votes, labels)
    np.testing.assert_allclose(fit(votes), calibrator(whole(votes)), atol=1e-6)


@protocols
def test_unused_items_and_other_code_paths_change_nothing(
    protocol: str, votes: Votes, labels: np.ndarray
) -> None:
    method = Calibrated(COUNTING, Temperature(), **PROTOCOLS[protocol])
    weight = np.ones(60)
    weight[10:25] = 0
    keep = np.flatnonzero((weight > 0) & (labels >= 0))
    key = jax.random.key(1)
    dropped = method.fit(votes.take(keep), labels[keep], key=key)(votes)

    @in_float64
    def compiled() -> jax.Array:
        fit = jax.jit(lambda w: method.fit(votes, jnp.asarray(labels), weight=w, key=key)(votes))
        return fit(jnp.asarray(weight))

    np.testing.assert_allclose(np.exp(compiled()), np.exp(dropped), atol=1e-6)


def test_the_evaluation_labels_do_not_leak(votes: Votes, labels: np.ndarray, parts: Splits) -> None:
    other = labels.copy()
    one_split = Splits(parts.calibration[:1], parts.evaluation[:1])
    other[parts.evaluation[0]] = (labels[parts.evaluation[0]] + 1) % 3
    method = Calibrated(COUNTING, Temperature())
    for fit_on in ("calibration", "all"):
        log_probs = [
            evaluate_splits(method, votes, y, one_split, fit_on=fit_on).log_probs
            for y in (labels, other)
        ]
        np.testing.assert_array_equal(*log_probs)


def test_impossible_protocols_raise_errors(votes: Votes, labels: np.ndarray) -> None:
    with pytest.raises(JudgeBayesError, match=r"share=1\.5; it must be between 0 and 1"):
        Calibrated(BaseRate(), Identity(), 1.5).fit(votes, labels)
    with pytest.raises(JudgeBayesError, match="cross_fit=1; it must be 2 folds"):
        Calibrated(BaseRate(), Identity(), cross_fit=1).fit(votes, labels)
