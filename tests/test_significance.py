from itertools import product

import numpy as np
import pytest

from judgebayes import significance as sig
from judgebayes.errors import JudgeBayesError


def exact_p(difference: np.ndarray) -> float:
    """All sign flips: the brute-force twin of the random permutation test."""
    observed = abs(difference.sum())
    flips = np.array(list(product([-1, 1], repeat=len(difference))))
    return float((np.abs(flips @ difference) >= observed - 1e-12).mean())


def test_permutation_test_approaches_the_exact_one() -> None:
    difference = np.random.default_rng(0).normal(0.4, 1, 12)
    found = sig.permutation_test(difference, resamples=20_000)
    assert found == pytest.approx(exact_p(difference), abs=0.015)


def test_grouped_permutation_flips_groups() -> None:
    difference = np.random.default_rng(1).normal(0.5, 1, 12)
    groups = np.repeat(np.arange(6), 2)
    sums = difference.reshape(6, 2).sum(1)
    found = sig.permutation_test(difference, groups, resamples=20_000)
    assert found == pytest.approx(exact_p(sums), abs=0.015)


def test_p_values_are_uniform_under_the_null() -> None:
    rng = np.random.default_rng(2)
    found = [sig.permutation_test(rng.normal(size=30), resamples=199, seed=i) for i in range(400)]
    assert abs(np.mean(np.array(found) <= 0.05) - 0.05) < 0.035
    assert abs(np.mean(found) - 0.5) < 0.05


def test_split_permutation_pools_the_splits() -> None:
    rng = np.random.default_rng(3)
    items = np.array([rng.permutation(40)[:30] for _ in range(5)])
    better = rng.normal(0.8, 1, 40)[items]
    assert sig.split_permutation_test(better, items) < 0.05
    assert sig.split_permutation_test(np.zeros_like(better), items) == 1.0


def test_filled_places_count_for_nothing() -> None:
    rng = np.random.default_rng(4)
    items = np.array([rng.permutation(20)[:12] for _ in range(3)])
    difference = rng.normal(size=items.shape)
    wide = np.pad(items, ((0, 0), (0, 4)), constant_values=-1)
    filled = np.pad(difference, ((0, 0), (0, 4)), constant_values=np.nan)
    assert sig.split_permutation_test(filled, wide) == sig.split_permutation_test(difference, items)
    np.testing.assert_array_equal(
        sig.item_means(filled, wide, 20), sig.item_means(difference, items, 20)
    )


def test_item_means_are_means_over_the_splits_that_hold_the_item() -> None:
    items = np.array([[0, 2], [2, 1]])
    found = sig.item_means(np.array([[1.0, 2.0], [4.0, 7.0]]), items, 4)
    np.testing.assert_array_equal(found, [1.0, 7.0, 3.0, np.nan])


def test_clustered_interval_without_groups_is_the_ordinary_one() -> None:
    x = np.random.default_rng(5).normal(size=50)
    found = sig.clustered_interval(x)
    half = 1.959964 * x.std(ddof=1) / np.sqrt(50)
    assert (found.low, found.high) == pytest.approx((x.mean() - half, x.mean() + half))


def test_clustered_intervals_cover_where_pairwise_ones_do_not() -> None:
    rng = np.random.default_rng(6)
    groups = np.repeat(np.arange(40), 5)
    hits = {"clustered": 0, "naive": 0}
    for _ in range(300):
        x = rng.normal(size=40)[groups] + rng.normal(size=200)
        for name, interval in (
            ("clustered", sig.clustered_interval(x, groups)),
            ("naive", sig.clustered_interval(x)),
        ):
            hits[name] += interval.low <= 0 <= interval.high
    assert 0.91 < hits["clustered"] / 300 < 0.985
    assert hits["naive"] / 300 < 0.85


def test_two_way_interval_adds_items_and_splits() -> None:
    rng = np.random.default_rng(7)
    items = np.tile(np.arange(30), (8, 1))
    values = rng.normal(size=30)[None] + rng.normal(size=(8, 1))
    found = sig.two_way_interval(values, items, 30)
    by_item = sig.clustered_interval(values.mean(0))
    by_split = sig.normal_interval(values.mean(1))
    squares = ((by_item.high - by_item.low) ** 2 + (by_split.high - by_split.low) ** 2) ** 0.5
    assert found.high - found.low == pytest.approx(squares)
    assert found.mean == pytest.approx(values.mean())


def test_bootstrap_interval_agrees_with_the_normal_one_on_many_values() -> None:
    x = np.random.default_rng(8).normal(size=400)
    boot, normal = sig.bootstrap_interval(x), sig.normal_interval(x)
    assert boot.low == pytest.approx(normal.low, abs=0.02)
    assert boot.high == pytest.approx(normal.high, abs=0.02)


def test_top_cluster_stops_at_the_first_that_differs() -> None:
    rng = np.random.default_rng(9)
    items = np.tile(np.arange(200), (4, 1))
    base = rng.integers(0, 3, (4, 200)).astype(float)
    errors = {
        "same": base,
        "best": np.where(rng.random(base.shape) < 0.01, 0, base),
        "worse": base + (rng.random(base.shape) < 0.5),
        "worst": base + 1,
    }
    assert sig.top_cluster(errors, items) == ["best", "same"]


def test_nothing_to_compare_is_a_sentence() -> None:
    with pytest.raises(JudgeBayesError, match="every value is missing"):
        sig.permutation_test(np.array([np.nan, np.nan]))
    with pytest.raises(JudgeBayesError, match="at least two"):
        sig.clustered_interval(np.ones(4), np.zeros(4, int))
