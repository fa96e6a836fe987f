"""These items or more items like them, in groups or independent."""

import numpy as np
import pytest
from scipy.stats import beta
from strong_judges import GENERATORS, ITEMS, World, world

from judgebayes.generators import SharePosterior, for_more_items, shares
from judgebayes.generators.clusters import (
    Clusters,
    correlation_between,
    correlation_within,
    residuals,
)


@pytest.fixture(scope="module")
def drawn() -> World:
    return world(0)


@pytest.fixture(scope="module")
def labels(drawn: World) -> np.ndarray:
    """All labels of three generators, and 40 of a fourth."""
    known = np.where(drawn.generator < 3, drawn.label, -1)
    known[3 * ITEMS : 3 * ITEMS + 40] = drawn.label[3 * ITEMS : 3 * ITEMS + 40]
    return known


@pytest.fixture(scope="module")
def these(drawn: World, labels: np.ndarray) -> SharePosterior:
    return shares(drawn.votes, labels, drawn.generator, GENERATORS)


@pytest.fixture(scope="module")
def more(drawn: World, labels: np.ndarray) -> SharePosterior:
    return shares(drawn.votes, labels, drawn.generator, GENERATORS, target="more")


def in_groups(rng: np.random.Generator, sizes: np.ndarray) -> np.ndarray:
    """Return labels whose probability, .2 or .8, belongs to their group."""
    return (rng.random(sizes.sum()) < np.repeat(rng.choice([0.2, 0.8], len(sizes)), sizes)).astype(
        int
    )


# --- groups ---------------------------------------------------------------------------------------


def test_the_design_effect_is_the_inflation_of_the_variance_of_a_mean() -> None:
    rng = np.random.default_rng(0)
    sizes = np.array([1, 2, 3, 10] * 5)
    group = np.repeat(np.arange(len(sizes)), sizes)
    means = np.array([in_groups(rng, sizes).mean() for _ in range(20_000)])
    inflation = means.var() / (0.25 / sizes.sum())
    # The correlation of two labels of a group: the variance of their probability, .09, over .25.
    effect = Clusters(group, 0.36).design_effect(np.ones(len(group), bool))
    assert effect == pytest.approx(inflation, rel=0.03)
    few = group == 3
    assert Clusters(group, 0.36).design_effect(few) == pytest.approx(1 + 0.36 * 9)
    assert Clusters(group, 0.36).design_effect(group < 0) == 1


def test_the_correlation_within_groups_is_found_and_absent_where_it_cannot_be() -> None:
    rng = np.random.default_rng(1)
    sizes = np.full(800, 4)
    group, generator = np.repeat(np.arange(800), 4), np.tile([0, 0, 1, 1], 800)
    y = in_groups(rng, sizes)
    of_labels = residuals(np.zeros(3200), y, generator, 2)
    assert correlation_within(of_labels, y, generator, group) == pytest.approx(0.36, abs=0.05)
    # Two generators share their groups: the sums of two items have the correlation .36 / .68.
    between = correlation_between(of_labels, group, generator, 2)
    assert between[0, 1] == pytest.approx(0.36 / 0.68, abs=0.06)
    np.testing.assert_allclose(np.diag(between), 1)
    alone = np.arange(3200)
    assert correlation_within(of_labels, y, generator, alone) == 0
    shuffled = rng.permutation(y)
    independent = residuals(np.zeros(3200), shuffled, generator, 2)
    assert correlation_within(independent, shuffled, generator, group) < 0.06
    assert (residuals(np.zeros(3200), np.full(3200, -1), generator, 2) == 0).all()


# --- targets --------------------------------------------------------------------------------------


def width(ends: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    return np.subtract(*ends[::-1])


def test_more_items_are_never_known_and_widen_what_labels_say(
    drawn: World, these: SharePosterior, more: SharePosterior
) -> None:
    assert (width(these.interval())[:3] == 0).all()
    # Labels of all items: about the interval of a binomial share, which the prior narrows a little.
    k = drawn.truth[:3] * ITEMS
    binomial = width(
        (beta.ppf(0.05, k + 0.5, ITEMS - k + 0.5), beta.ppf(0.95, k + 0.5, ITEMS - k + 0.5))
    )
    ratio = width(more.interval())[:3] / binomial
    assert ((ratio > 0.7) & (ratio < 1.1)).all()
    np.testing.assert_allclose(more.estimate(), these.estimate(), atol=0.02)
    assert (width(more.interval())[3:] > 0.02).all()
    np.testing.assert_array_equal(more.held_out, these.held_out)


def test_groups_widen_intervals_and_independent_items_in_groups_do_not(
    drawn: World, labels: np.ndarray, more: SharePosterior
) -> None:
    order = np.argsort(drawn.label + 2 * drawn.generator, kind="stable")
    alike = np.empty(len(labels), int)
    alike[order] = np.arange(len(labels)) // 10  # ten items of a generator with the same label
    mixed = np.random.default_rng(3).permutation(len(labels)) // 10

    def fit(groups: np.ndarray) -> SharePosterior:
        return shares(
            drawn.votes, labels, drawn.generator, GENERATORS, target="more", groups=groups
        )

    fits = more, fit(alike), fit(mixed)
    assert all(np.isfinite(of.sample(500)).all() for of in fits)
    alone, wide, same = (width(of.interval()) for of in fits)
    assert (wide[:3] > 1.8 * alone[:3]).all()
    np.testing.assert_allclose(same[:3], alone[:3], rtol=0.1)


def test_a_known_share_has_jeffreys_posterior_among_more_items(
    drawn: World, labels: np.ndarray, these: SharePosterior
) -> None:
    more = for_more_items(these, labels, drawn.generator, GENERATORS)
    draws = more.sample(20_000)
    for place in range(3):
        k = drawn.truth[place] * ITEMS
        law = beta(k + 0.5, ITEMS - k + 0.5)
        expected = law.ppf([0.05, 0.5, 0.95])
        np.testing.assert_allclose(
            np.quantile(draws[:, place], [0.05, 0.5, 0.95]), expected, atol=0.002
        )
    np.testing.assert_array_equal(draws[:, 5], these.sample(20_000)[:, 5])
    one_group_each = for_more_items(
        these, labels, drawn.generator, GENERATORS, groups=np.arange(len(labels))
    )
    np.testing.assert_allclose(one_group_each.effective, more.effective)
