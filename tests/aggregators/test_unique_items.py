"""Merging of identical items into one item with their summed weight."""

from collections import Counter

import jax
import numpy as np
import pytest
from panels import judged

from judgebayes import NUTS, DawidSkene
from judgebayes.aggregators.dawid_skene import unique_items
from judgebayes.compiled.float64 import in_float64
from judgebayes.inference.fit import Training, training


@pytest.fixture(scope="module")
def many() -> Training:
    """Few judges on many items, missing votes, repeats, some labels, some weights 0."""
    votes, labels = judged(np.array([0.9, 0.7, 0.6]), 400, samples=2, missing=0.2, seed=3)
    some_labels = np.where(np.arange(400) % 3 == 0, labels, -1)
    weight = np.random.default_rng(1).integers(0, 3, 400).astype(float)
    with jax.enable_x64(True):
        return training(votes, some_labels, weight)


def listed(data: Training) -> Counter[tuple[int, ...]]:
    """Weight by votes (in any order of the samples) and label, by a loop over items."""
    counter: Counter[tuple[int, ...]] = Counter()
    for votes, label, weight in zip(
        np.asarray(data.given.index), np.asarray(data.labels), np.asarray(data.weight), strict=True
    ):
        if weight > 0:
            counter[*np.sort(votes).ravel().tolist(), int(label)] += float(weight)
    return counter


@in_float64
def test_every_combination_keeps_its_weight(many: Training) -> None:
    few = unique_items(many)
    assert few.given.n_items < many.given.n_items
    assert listed(few) == listed(many)
    used = np.asarray(few.weight) > 0
    assert len(listed(few)) == used.sum()
    assert (np.asarray(few.given.index)[~used] < 0).all()


@in_float64
def test_the_mode_is_that_of_all_items(many: Training) -> None:
    few = unique_items(many)
    one, other = (DawidSkene().fit(x.given, x.labels, weight=x.weight) for x in (many, few))
    assert float(one.details["log_posterior"]) == pytest.approx(
        float(other.details["log_posterior"]), rel=1e-12
    )
    for a, b in zip(jax.tree.leaves(one.draws), jax.tree.leaves(other.draws), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)


@in_float64
def test_draws_do_not_depend_on_repeated_items(many: Training) -> None:
    sampler = DawidSkene(NUTS(draws=20, warmup=20, chains=2))
    few = unique_items(many)
    one, other = (sampler.fit(x.given, x.labels, weight=x.weight) for x in (many, few))
    for a, b in zip(jax.tree.leaves(one.draws), jax.tree.leaves(other.draws), strict=True):
        np.testing.assert_array_equal(a, b)


def test_distinct_items_are_unchanged() -> None:
    votes, labels = judged(np.full(20, 0.7), 50, seed=4)
    data = training(votes, labels)
    assert unique_items(data) is data


def test_similar_panels_have_one_size() -> None:
    sizes = set()
    for seed in range(5):
        votes, labels = judged(np.full(8, 0.7), 1000, seed=seed)
        sizes.add(unique_items(training(votes, labels)).given.n_items)
    assert len(sizes) <= 2
