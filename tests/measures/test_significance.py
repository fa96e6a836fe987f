from itertools import product

import numpy as np
import pytest
from scipy import stats

from judgebayes.errors import JudgeBayesError
from judgebayes.experiments import significance as tests
from judgebayes.measures import significance as sig


def exact_p(difference: np.ndarray) -> float:
    """The exact permutation test over all sign flips, by brute force."""
    observed = abs(difference.sum())
    flips = np.array(list(product([-1, 1], repeat=len(difference))))
    return float((np.abs(flips @ difference) >= observed - 1e-12).mean())


def test_permutation_test_approaches_the_exact_one() -> None:
    difference = np.random.default_rng(0).normal(0.4, 1, 12)
    p_value = tests.permutation_test(difference, resamples=20_000)
    assert p_value == pytest.approx(exact_p(difference), abs=0.015)


def test_grouped_permutation_flips_groups() -> None:
    difference = np.random.default_rng(1).normal(0.5, 1, 12)
    groups = np.repeat(np.arange(6), 2)
    sums = difference.reshape(6, 2).sum(1)
    p_value = tests.permutation_test(difference, groups, resamples=20_000)
    assert p_value == pytest.approx(exact_p(sums), abs=0.015)


def test_p_values_are_uniform_under_the_null() -> None:
    rng = np.random.default_rng(2)
    p_values = [
        tests.permutation_test(rng.normal(size=30), resamples=199, seed=i) for i in range(400)
    ]
    assert abs(np.mean(np.array(p_values) <= 0.05) - 0.05) < 0.035
    assert abs(np.mean(p_values) - 0.5) < 0.05


def test_split_permutation_pools_the_splits() -> None:
    rng = np.random.default_rng(3)
    items = np.array([rng.permutation(40)[:30] for _ in range(5)])
    better = rng.normal(0.8, 1, 40)[items]
    assert tests.split_permutation_test(better, items) < 0.05
    assert tests.split_permutation_test(np.zeros_like(better), items) == 1.0


def test_padding_is_ignored() -> None:
    rng = np.random.default_rng(4)
    items = np.array([rng.permutation(20)[:12] for _ in range(3)])
    difference = rng.normal(size=items.shape)
    wide = np.pad(items, ((0, 0), (0, 4)), constant_values=-1)
    filled = np.pad(difference, ((0, 0), (0, 4)), constant_values=np.nan)
    assert tests.split_permutation_test(filled, wide) == tests.split_permutation_test(
        difference, items
    )
    np.testing.assert_array_equal(
        sig.item_means(filled, wide, 20), sig.item_means(difference, items, 20)
    )


def test_item_means_are_means_over_the_splits_that_hold_the_item() -> None:
    items = np.array([[0, 2], [2, 1]])
    means = sig.item_means(np.array([[1.0, 2.0], [4.0, 7.0]]), items, 4)
    np.testing.assert_array_equal(means, [1.0, 7.0, 3.0, np.nan])


def test_clustered_interval_without_groups_is_the_ordinary_one() -> None:
    x = np.random.default_rng(5).normal(size=50)
    interval = tests.clustered_interval(x)
    half = 1.959964 * x.std(ddof=1) / np.sqrt(50)
    assert (interval.low, interval.high) == pytest.approx((x.mean() - half, x.mean() + half))


def test_a_level_sets_the_width_of_every_normal_interval() -> None:
    x = np.random.default_rng(5).normal(size=50)
    items = np.tile(np.arange(50), (3, 1))
    for interval_at in (
        lambda level: tests.clustered_interval(x, level=level),
        lambda level: tests.normal_interval(x, level=level),
        lambda level: sig.two_way_interval(
            np.stack([x, x + 1, x]), items, 50, fitted=50, level=level
        ),
    ):
        wide, narrow = (interval_at(level).high - interval_at(level).mean for level in (0.95, 0.9))
        assert wide / narrow == pytest.approx(1.959964 / 1.644854)


def test_a_share_lies_in_its_interval_and_the_beta_posterior_around_it() -> None:
    hits, trials = np.array([0.0, 7.0, 20.0, 0.0]), np.array([20.0, 20.0, 20.0, 0.0])
    low, high = sig.share_interval(hits, trials, level=0.9)
    expected = stats.beta.ppf([[0.05], [0.95]], 1 + hits, 1 + trials - hits)
    np.testing.assert_allclose(low, [0.0, *expected[0, 1:]])
    np.testing.assert_allclose(high, [*expected[1, :2], 1.0, expected[1, 3]])


def test_clustered_intervals_cover_where_pairwise_ones_do_not() -> None:
    rng = np.random.default_rng(6)
    groups = np.repeat(np.arange(40), 5)
    hits = {"clustered": 0, "naive": 0}
    for _ in range(300):
        x = rng.normal(size=40)[groups] + rng.normal(size=200)
        for name, interval in (
            ("clustered", tests.clustered_interval(x, groups)),
            ("naive", tests.clustered_interval(x)),
        ):
            hits[name] += interval.low <= 0 <= interval.high
    assert 0.91 < hits["clustered"] / 300 < 0.985
    assert hits["naive"] / 300 < 0.85


def test_two_way_interval_adds_items_and_splits() -> None:
    rng = np.random.default_rng(7)
    items = np.tile(np.arange(30), (8, 1))
    values = rng.normal(size=30)[None] + rng.normal(size=(8, 1))
    interval = sig.two_way_interval(values, items, 30, fitted=0)
    by_item = tests.clustered_interval(values.mean(0))
    by_split = tests.normal_interval(values.mean(1))
    squares = ((by_item.high - by_item.low) ** 2 + (by_split.high - by_split.low) ** 2) ** 0.5
    assert interval.high - interval.low == pytest.approx(squares)
    assert interval.mean == pytest.approx(values.mean())
    # All items in question are these: only the splits vary.
    known = sig.two_way_interval(values, items, 30, fitted=30, unseen=0.0)
    assert known.high - known.low == pytest.approx(by_split.high - by_split.low)


def test_bootstrap_interval_agrees_with_the_normal_one_on_many_values() -> None:
    x = np.random.default_rng(8).normal(size=400)
    boot, normal = tests.bootstrap_interval(x), tests.normal_interval(x)
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
    assert tests.top_cluster(errors, items) == ["best", "same"]


def test_nothing_to_compare_raises_an_error() -> None:
    with pytest.raises(JudgeBayesError, match="every value is missing"):
        tests.permutation_test(np.array([np.nan, np.nan]))
    with pytest.raises(JudgeBayesError, match="at least two"):
        tests.clustered_interval(np.ones(4), np.zeros(4, int))


def naive_max_t(differences: np.ndarray, resamples: int) -> tuple[np.ndarray, np.ndarray]:
    """The paper's description: normals with the empirical correlation of the centred differences."""
    t = differences.mean(0) / (differences.std(0, ddof=1) / np.sqrt(len(differences)))
    correlation = np.corrcoef(differences.T)
    rng = np.random.default_rng(1)
    draws = rng.multivariate_normal(np.zeros(len(t)), correlation, resamples)
    return t, np.abs(draws).max(1)


def test_max_t_is_the_largest_of_correlated_normals() -> None:
    rng = np.random.default_rng(10)
    shared = rng.normal(size=(100, 1))
    differences = shared + 0.5 * rng.normal(size=(100, 6)) + 0.1
    result = tests.max_t_test(differences, resamples=20_000)
    t, largest = naive_max_t(differences, 20_000)
    np.testing.assert_allclose(result.t, t)
    assert result.statistic == pytest.approx(np.abs(t).max())
    assert result.critical == pytest.approx(np.quantile(largest, 0.95), abs=0.05)
    assert result.p_value == pytest.approx((largest >= np.abs(t).max()).mean(), abs=0.01)
    assert result.critical < stats.norm.isf(0.05 / 2 / 6)  # Bonferroni's
    assert result.p_value == pytest.approx(result.adjusted.min())


def test_max_t_holds_its_level_over_all_budgets() -> None:
    rng = np.random.default_rng(11)
    null = [rng.normal(size=(80, 1)) + rng.normal(size=(80, 5)) for _ in range(300)]
    joint = [tests.max_t_test(d, resamples=400, seed=i) for i, d in enumerate(null)]
    assert abs(np.mean([result.p_value <= 0.05 for result in joint]) - 0.05) < 0.04
    assert np.mean([(np.abs(result.t) > 1.96).any() for result in joint]) > 0.09


def test_one_sided_max_t_depends_on_the_direction() -> None:
    worse = np.random.default_rng(12).normal(-1, 1, (60, 3))
    assert tests.max_t_test(worse, two_sided=False, resamples=999).p_value > 0.9
    assert tests.max_t_test(worse, resamples=999).p_value < 0.01


def test_grouped_max_t_is_that_of_the_group_sums() -> None:
    rng = np.random.default_rng(13)
    groups = np.repeat(np.arange(30), 4)
    differences = np.repeat(rng.normal(0.2, 1, (30, 2)), 4, axis=0)
    grouped = tests.max_t_test(differences, groups, resamples=2000)
    single = tests.max_t_test(differences[::4], resamples=2000)
    np.testing.assert_allclose(grouped.t, single.t)
    assert grouped.critical == pytest.approx(single.critical)
    assert (np.abs(tests.max_t_test(differences).t) > np.abs(grouped.t)).all()


def test_equivalence_is_two_one_sided_t_tests() -> None:
    x = np.random.default_rng(14).normal(0.01, 0.2, 60)
    result = tests.equivalence_test(x, 0.08)
    sides = (
        stats.ttest_1samp(x, -0.08, alternative="greater").pvalue,
        stats.ttest_1samp(x, 0.08, alternative="less").pvalue,
    )
    assert result.p_value == pytest.approx(max(sides))
    low, high = stats.ttest_1samp(x, 0).confidence_interval(0.9)
    assert result.interval == pytest.approx((x.mean(), low, high))
    within = result.interval.low > -0.08 and result.interval.high < 0.08
    assert within == (result.p_value < 0.05)


def test_equivalence_is_rarely_found_at_the_margin() -> None:
    rng = np.random.default_rng(15)
    p_values = [tests.equivalence_test(rng.normal(0.1, 0.3, 50), 0.1).p_value for _ in range(500)]
    assert abs(np.mean(np.array(p_values) < 0.05) - 0.05) < 0.03


def test_impossible_joint_and_equivalence_tests_raise_errors() -> None:
    with pytest.raises(JudgeBayesError, match="finite difference at every budget"):
        tests.max_t_test(np.array([[1.0, np.nan], [1.0, 2.0]]))
    with pytest.raises(JudgeBayesError, match="at least two units"):
        tests.max_t_test(np.ones((1, 2)))
    with pytest.raises(JudgeBayesError, match="must be a number above 0"):
        tests.equivalence_test(np.ones(4), 0.0)


def test_defaults_are_those_used_for_the_numbers_of_the_papers() -> None:
    rng = np.random.default_rng(20)
    x, wide = rng.normal(0.3, 1, 12), rng.normal(0.3, 1, (3, 12))
    items = np.tile(np.arange(12), (3, 1))
    many = {"resamples": 10_000, "seed": 0}
    few = {"resamples": 100, "seed": 0}
    for by_default, explicit in (
        (tests.normal_interval(x), tests.normal_interval(x, level=0.95)),
        (sig.share_interval(x**2, x**2 + 1), sig.share_interval(x**2, x**2 + 1, level=0.95)),
        (
            tests.bootstrap_interval(x),
            tests.bootstrap_interval(x, level=0.95, resamples=2000, seed=0),
        ),
        (tests.clustered_interval(x), tests.clustered_interval(x, level=0.95)),
        (
            sig.two_way_interval(wide, items, 12, fitted=4),
            sig.two_way_interval(wide, items, 12, fitted=4, level=0.95, unseen=1.0),
        ),
        (tests.max_t_test(wide.T), tests.max_t_test(wide.T, level=0.05, two_sided=True, **many)),
        (tests.equivalence_test(x, 0.5), tests.equivalence_test(x, 0.5, level=0.05)),
        (tests.permutation_test(x), tests.permutation_test(x, **many)),
        (
            tests.split_permutation_test(wide, items),
            tests.split_permutation_test(wide, items, **few),
        ),
    ):
        np.testing.assert_equal(by_default, explicit)


def test_one_split_has_a_mean_and_no_interval() -> None:
    interval = tests.normal_interval(np.array([0.3]))
    assert interval.mean == 0.3
    assert np.isnan([interval.low, interval.high]).all()
    x = np.arange(6.0)
    two_way = sig.two_way_interval(x[None], np.arange(6)[None], 6, fitted=6)
    assert two_way == pytest.approx(tests.clustered_interval(x))


def test_two_splits_have_an_interval() -> None:
    half = 1.959964 * 0.1 / np.sqrt(2)  # values 0.2 apart: their SD is 0.1 times root 2
    interval = tests.normal_interval(np.array([0.2, 0.4]))
    assert (interval.mean, interval.low, interval.high) == pytest.approx(
        (0.3, 0.3 - half * 2**0.5, 0.3 + half * 2**0.5)
    )


def test_the_interval_of_a_share_of_0_or_1_includes_it() -> None:
    low, high = sig.share_interval(np.array([0.0, 1.0]), np.array([1.0, 1.0]), level=0.9)
    # Beta(1, 2) and Beta(2, 1): distribution functions 1 - (1 - x)^2 and x^2.
    np.testing.assert_allclose(low, [0.0, 0.05**0.5])
    np.testing.assert_allclose(high, [1 - 0.05**0.5, 1.0])


def test_bootstrap_interval_is_that_of_a_loop_over_resamples() -> None:
    x = np.random.default_rng(21).normal(size=7)
    rows = np.random.default_rng(3).integers(0, 7, (50, 7))
    means = [sum(x[i] for i in row) / 7 for row in rows]
    expected = (x.mean(), np.quantile(means, 0.1), np.quantile(means, 0.9))
    interval = tests.bootstrap_interval(x, level=0.8, resamples=50, seed=3)
    assert interval == pytest.approx(expected, rel=1e-12)


def naive_clustered(x: np.ndarray, groups: np.ndarray) -> tuple[float, float, int]:
    """Mean, standard error and degrees of freedom by a loop over the groups, without NaN."""
    use = ~np.isnan(x)
    x, groups = x[use], groups[use]
    named = sorted(set(groups))
    squares = sum(sum(v - x.mean() for v in x[groups == g]) ** 2 for g in named)
    freedom = len(named) - 1
    return x.mean(), np.sqrt(len(named) / freedom * squares) / len(x), freedom


def uneven() -> tuple[np.ndarray, np.ndarray]:
    """Nine items, one missing, in three groups of different sizes and arbitrary names."""
    x = np.append(np.random.default_rng(22).normal(0.1, 0.3, 8), np.nan)
    return x, np.array([9, 2, 2, 5, 9, 2, 9, 9, 7])


def test_grouped_intervals_and_equivalence_are_loops_over_uneven_groups() -> None:
    x, groups = uneven()
    mean, error, freedom = naive_clustered(x, groups)
    z, t = stats.norm.isf(0.1), stats.t.isf(0.1, freedom)
    interval = tests.clustered_interval(x, groups, level=0.8)
    assert interval == pytest.approx((mean, mean - z * error, mean + z * error), rel=1e-12)
    result = tests.equivalence_test(x, 0.2, groups, level=0.1)
    assert result.interval == pytest.approx((mean, mean - t * error, mean + t * error), rel=1e-12)
    ends = stats.t.sf([(0.2 + mean) / error, (0.2 - mean) / error], freedom)
    assert result.p_value == pytest.approx(max(ends), rel=1e-9)
    mirrored = tests.equivalence_test(-x, 0.2, groups, level=0.1)
    assert mirrored.p_value == pytest.approx(result.p_value, rel=1e-9)


def test_grouped_two_way_interval_is_the_two_errors_of_loops() -> None:
    rng = np.random.default_rng(23)
    values, items = rng.normal(size=(2, 4)), np.array([[0, 1, 2, -1], [4, 2, 0, 5]])
    values[1] += 3  # splits vary more than items alone allow
    groups = np.array([1, 1, 3, 0, 3, 0])
    means = np.array(
        [values[items == i].mean() if (items == i).any() else np.nan for i in range(6)]
    )
    mean, by_item, _ = naive_clustered(means, groups)
    of_splits = np.var([values[0, :3].mean(), values[1].mean()], ddof=1)
    of_fits = 2 / (2 + 3.5) * max(0.0, of_splits - 2 / 3.5 * by_item**2)
    assert of_fits > 0
    half = stats.norm.isf(0.05) * np.sqrt(by_item**2 + of_fits + of_splits / 2)
    interval = sig.two_way_interval(values, items, 6, groups, fitted=2, level=0.9)
    assert interval == pytest.approx((mean, mean - half, mean + half), rel=1e-12)


@pytest.mark.parametrize("two_sided", [True, False])
def test_grouped_max_t_is_two_loops_over_uneven_groups(two_sided: bool) -> None:
    x, groups = uneven()
    x, groups = x[:8], groups[:8]
    d = np.stack([x, -(x**2), x + 0.4], 1)
    named = sorted(set(groups))
    own, null_t = [], []
    normals = np.random.default_rng(5).standard_normal((40, len(named)))
    for column in d.T:
        mean, error, _ = naive_clustered(column, groups)
        sums = [sum(column[groups == g] - mean) for g in named]
        own.append(mean / error)
        null_t.append(normals @ sums / np.linalg.norm(sums))
    t, null_t = np.array(own), np.array(null_t)
    size = abs if two_sided else np.array
    largest = size(null_t).max(0)
    result = tests.max_t_test(d, groups, level=0.2, two_sided=two_sided, resamples=40, seed=5)
    np.testing.assert_allclose(result.t, t, rtol=1e-12)
    assert result.statistic == pytest.approx(size(t).max())
    assert result.critical == pytest.approx(np.quantile(largest, 0.8))
    above = [sum(value >= limit for value in largest) for limit in size(t)]
    assert result.p_value == (1 + min(above)) / 41
    assert result.adjusted.tolist() == [(1 + count) / 41 for count in above]


def test_a_difference_that_never_varies_is_no_evidence_in_a_joint_test() -> None:
    always = np.random.default_rng(24).normal(size=(20, 2)) * [0, 1] + [3, 0]
    result = tests.max_t_test(always, resamples=99)
    assert result.t[0] == 0
    assert result.adjusted[0] == 1
    nothing = tests.max_t_test(np.zeros((2, 3)), resamples=99)
    assert nothing.p_value == 1
    assert nothing.adjusted.tolist() == [1, 1, 1]


def naive_exceedances(sums: list[float], flips: np.ndarray) -> int:
    """The number of sign flips of the nonzero sums with a total at least as far from 0."""
    own = [s for s in sums if s != 0]
    totals = [sum(s if up else -s for s, up in zip(own, row, strict=True)) for row in flips]
    return sum(abs(total) >= abs(sum(own)) - 1e-9 for total in totals)


def test_split_permutation_is_a_loop_over_splits_groups_and_flips() -> None:
    rng = np.random.default_rng(25)
    items = np.array([[0, 3, 1, 5, -1], [4, 2, 0, 3, 5]])
    groups = np.array([2, 0, 2, 4, 1, 1])
    d = rng.integers(-2, 3, items.shape).astype(float)  # whole numbers: ties, and sums of 0
    d[0, 0], d[0, 4], d[1, 1] = 1.0, 1.0, np.nan
    for g, seed in ((groups, 6), (np.arange(6), 7)):
        flips, exceed = np.random.default_rng(seed), 0
        for s in range(2):
            sums = [
                sum(
                    d[s, i]
                    for i in range(5)
                    if items[s, i] >= 0 and g[items[s, i]] == name and np.isfinite(d[s, i])
                )
                for name in range(g.max() + 1)
            ]
            count = sum(value != 0 for value in sums)
            exceed += naive_exceedances(sums, flips.integers(0, 2, (30, count), dtype=np.int8))
        given = None if g is not groups else groups
        p_value = tests.split_permutation_test(d, items, given, resamples=30, seed=seed)
        assert p_value == (1 + exceed) / 61


def test_no_difference_and_the_largest_one_have_their_counted_p_values() -> None:
    assert tests.permutation_test(np.zeros(5), resamples=9) == 1
    assert (
        tests.permutation_test(np.ones(50), resamples=99) == 1 / 100
    )  # 2^-49: no other flip is as extreme
    x = np.arange(-1.0, 7)  # a 0 and a 1 among them
    flips = np.random.default_rng(4).integers(0, 2, (60, 7), dtype=np.int8)
    p_value = tests.permutation_test(x, resamples=60, seed=4)
    assert p_value == (1 + naive_exceedances(list(x), flips)) / 61


@pytest.mark.parametrize("scale", [1e-3, 0.1, 1e6 / 3, 1e9 / 7])
def test_rounding_does_not_decide_a_tie_between_flips_at_any_scale(scale: float) -> None:
    x = np.array([1.0, 2, 3, -1, 4, 1, 2, 2])  # whole numbers tie often
    expected = tests.permutation_test(x, resamples=500)
    assert tests.permutation_test(x * scale, resamples=500) == expected
    assert tests.permutation_test(x[::-1] * scale, resamples=2000) == pytest.approx(
        exact_p(x), abs=0.05
    )


@pytest.mark.parametrize("options", [{"resamples": 50, "seed": 2}, {}])
def test_a_method_that_differs_exactly_at_the_level_still_joins_the_top_cluster(
    options: dict[str, int],
) -> None:
    rng = np.random.default_rng(26)
    items = np.tile(np.arange(20), (2, 1))
    base = rng.normal(size=(2, 20))
    errors = {"b": base + rng.normal(0.3, 1, (2, 20)), "a": base}
    settings = {"resamples": 100, "seed": 0} | options  # the defaults are the protocol's
    p = tests.split_permutation_test(errors["b"] - errors["a"], items, **settings)
    assert 0.02 < p < 1
    assert tests.top_cluster(errors, items, level=p, **options) == ["a", "b"]
    assert tests.top_cluster(errors, items, level=p + 1e-9, **options) == ["a"]
