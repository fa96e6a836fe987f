"""The share of a generator's items: against simulation, and from no label to all."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom, kstest, norm, rankdata
from strong_judges import GENERATORS, ITEMS, World, world

from judgebayes.errors import JudgeBayesError
from judgebayes.generators import FittedShares, shares
from judgebayes.generators.clusters import Clusters
from judgebayes.generators.item_posterior import Items, quantiles, tail_probability
from judgebayes.generators.own_labels import item_scores
from judgebayes.generators.uncertain import FEW
from judgebayes.votes import Votes
from judgebayes.votes.evidence import certain

PLACE = 5
"""The generator that is labelled in part."""
LEVELS = norm.cdf(np.linspace(-5, 5, 501))


@pytest.fixture(scope="module")
def drawn() -> World:
    return world(0)


@pytest.fixture(scope="module")
def votes(drawn: World) -> Votes:
    return drawn.votes


@pytest.fixture(scope="module")
def three(drawn: World) -> np.ndarray:
    """All labels of three generators."""
    return np.where(drawn.generator < 3, drawn.label, -1)


@pytest.fixture(scope="module")
def unlabelled(drawn: World, votes: Votes, three: np.ndarray) -> FittedShares:
    """The fit without a label of the other generators."""
    return shares(votes, three, drawn.generator, GENERATORS)


def some(drawn: World, labels: np.ndarray, k: int, place: int, seed: int) -> np.ndarray:
    """Return the labels, with those of k items of a generator; more k add to fewer."""
    own = np.random.default_rng(seed).permutation(np.flatnonzero(drawn.generator == place))[:k]
    known = labels.copy()
    known[own] = drawn.label[own]
    return known


@pytest.fixture(scope="module")
def twenty(drawn: World, votes: Votes, three: np.ndarray) -> FittedShares:
    """The fit with 20 labels of one of the other generators."""
    return shares(votes, some(drawn, three, 20, PLACE, 0), drawn.generator, GENERATORS)


def mixture_of(fit: FittedShares, place: int) -> tuple:
    """Return the prior of a generator without labels: weights, means and spreads."""
    panel = fit.panel
    return panel.weight, panel.mean[:, place], panel.covariance[:, place, place] ** 0.5


def these_items(scores: np.ndarray, labels: np.ndarray, mixture: tuple) -> np.ndarray:
    """Return the quantiles of the share among these items, which are independent."""
    items = Items(scores, certain(labels), Clusters(np.arange(len(labels)), 0.0))
    return quantiles(items, mixture, LEVELS, "these")


def width(ends: np.ndarray) -> float:
    low, high = np.interp([0.05, 0.95], LEVELS, ends)
    return float(high - low)


# --- simulation -----------------------------------------------------------------------------------


def by_simulation(
    scores: np.ndarray, labels: np.ndarray, mixture: tuple, draws: int = 100_000
) -> np.ndarray:
    """Return the probability of each number of valid items, by draws weighted by the labels."""
    rng = np.random.default_rng(8)
    which = rng.choice(len(mixture[0]), draws, p=mixture[0])
    aim = 1 / (1 + np.exp(-rng.normal(mixture[1][which], mixture[2][which])))
    # The offset at which the mean probability of the items is that share: by a table.
    table = np.linspace(-30, 30, 60_001)
    means = np.mean([1 / (1 + np.exp(-score - table)) for score in scores], 0)
    offset = np.interp(aim, means, table)
    log_weight, valid = np.zeros(draws), np.full(draws, (labels == 1).sum())
    for score, label in zip(scores, labels, strict=True):
        p = 1 / (1 + np.exp(-score - offset))
        if label >= 0:
            log_weight += np.log(p if label == 1 else 1 - p)
        else:
            valid += rng.random(draws) < p
    weight = np.exp(log_weight - log_weight.max())
    assert weight.sum() ** 2 / (weight**2).sum() > 10_000
    return np.bincount(valid, weight, len(scores) + 1) / weight.sum()


@pytest.mark.parametrize("known", [0, 6, 24])
@pytest.mark.parametrize("spread", [0.0, 2.0])
def test_quantiles_are_those_of_weighted_simulation(known: int, spread: float) -> None:
    rng = np.random.default_rng(known)
    scores = spread * rng.normal(size=40) + 0.3
    labels = (rng.random(40) < 1 / (1 + np.exp(-scores))).astype(int)
    labels[known:] = -1
    mixture = np.array([0.6, 0.4]), np.array([0.8, -0.4]), np.array([1.0, 1.5])
    ends = these_items(scores, labels, tuple(jnp.asarray(part) for part in mixture))
    counted = by_simulation(scores, labels, mixture).cumsum()
    # Ours are continuous: between two numbers of items, the probability of at most the lower one.
    between = (np.arange(40) + 0.5) / 40
    possible = (counted > 1e-4) & (counted < 1 - 1e-4)
    ours = np.interp(between, ends, LEVELS)
    np.testing.assert_allclose(ours[possible[:-1]], counted[:-1][possible[:-1]], atol=0.01)
    for level in (0.05, 0.25, 0.5, 0.75, 0.95):
        whole = np.searchsorted(counted, [level - 0.01, level + 0.01]) / 40
        assert whole[0] - 0.5 / 40 <= np.interp(level, LEVELS, ends) <= whole[1] + 0.5 / 40


# --- labels that contradict the prior -------------------------------------------------------------

ONE_SPREAD = (np.array([1.0]), np.array([0.8]), np.array([0.7]))


def tail_of(labels: np.ndarray, groups: np.ndarray | None = None, rho: float = 0.0) -> float:
    """Return the tail probability of labels of items that are alike."""
    of_item = np.arange(len(labels)) if groups is None else groups
    return tail_probability(
        Items(np.zeros(len(labels)), certain(labels), Clusters(of_item, rho)), ONE_SPREAD
    )


@pytest.mark.parametrize("valid", [0, 3, 12])
def test_the_tail_of_labels_is_the_tail_of_their_number(valid: int) -> None:
    n, eta = 12, np.linspace(-6, 8, 4001)
    weight = norm.pdf(eta, ONE_SPREAD[1], ONE_SPREAD[2])
    counts = np.arange(n + 1)[:, None]
    chance = binom.pmf(counts, n, 1 / (1 + np.exp(-eta))) @ weight / weight.sum()
    middle = chance[:valid].sum() + chance[valid] / 2
    labels = np.append(np.repeat([1, 0], [valid, n - valid]), np.full(30, -1))
    assert tail_of(labels) == pytest.approx(2 * min(middle, 1 - middle), abs=1e-3)


def test_labels_as_the_prior_has_them_surprise_as_often_as_their_probability_says() -> None:
    rng = np.random.default_rng(4)
    values = []
    for _ in range(300):
        p = 1 / (1 + np.exp(-rng.normal(ONE_SPREAD[1][0], ONE_SPREAD[2][0])))
        values.append(tail_of((rng.random(200) < p).astype(int)))
    assert kstest(values, "uniform").pvalue > 0.01


def test_items_in_groups_surprise_less_and_no_label_not_at_all() -> None:
    labels = np.zeros(40, int)
    assert tail_of(labels) < tail_of(labels, np.arange(40) // 4, 0.5) < 1
    assert np.isnan(tail_of(np.full(40, -1)))


# --- from no label to all -------------------------------------------------------------------------


def test_without_a_label_it_is_the_panels_posterior_and_the_chance_of_items(
    unlabelled: FittedShares,
) -> None:
    rest = slice(3, None)
    panel, ours = unlabelled.panel, unlabelled.interval()
    np.testing.assert_allclose(unlabelled.estimate()[rest], panel.estimate()[rest], atol=0.003)
    low, high = (np.asarray(end) for end in panel.interval())
    middle = unlabelled.estimate()
    chance = 2 * 1.645 * np.sqrt(middle * (1 - middle) / ITEMS)
    wider = (ours[1] - ours[0])[rest]
    assert (wider > (high - low)[rest]).all()
    assert (wider < np.hypot(high - low, chance)[rest]).all()  # that of items without scores


def test_with_all_labels_the_share_is_known(
    drawn: World, votes: Votes, unlabelled: FittedShares
) -> None:
    low, high = unlabelled.interval(0.99)
    for answer in (unlabelled.estimate(), low, high):
        np.testing.assert_allclose(answer[:3], drawn.truth[:3], atol=1e-12)
    everything = shares(votes, drawn.label, drawn.generator, GENERATORS)
    np.testing.assert_allclose(everything.ends, drawn.truth[:, None] + 0 * LEVELS, atol=1e-12)


def test_labels_narrow_the_interval_and_never_widen_it(
    drawn: World, votes: Votes, three: np.ndarray, unlabelled: FittedShares, twenty: FittedShares
) -> None:
    """The prior hides a generator's own labels, so it is that of the fit without them."""
    for place in (3, PLACE):
        own = drawn.generator == place
        widths = []
        for k in (0, 5, 20, 80, ITEMS - 1):
            each = []
            for seed in range(4 if k else 1):
                labels = some(drawn, three, k, place, seed)
                scores = item_scores(votes, labels)[own]
                ends = these_items(scores, labels[own], mixture_of(unlabelled, place))
                each.append(width(ends))
                if (place, k, seed) == (PLACE, 20, 0):
                    np.testing.assert_allclose(twenty.ends[place], ends, atol=1e-9)
                if k == ITEMS - 1:
                    assert np.abs(ends - drawn.truth[place]).max() <= 1 / ITEMS
            widths.append(np.mean(each))
        assert (np.diff(widths) < 0.02 * np.array(widths[:-1])).all()
        assert widths[3] < 0.5 * widths[0]


def test_intervals_cover_the_share(
    drawn: World, votes: Votes, three: np.ndarray, unlabelled: FittedShares
) -> None:
    covered = []
    for seed in range(4):
        for place in (3, 4, PLACE, 6, 7):
            labels = some(drawn, three, 30, place, seed)
            own = drawn.generator == place
            scores = item_scores(votes, labels)[own]
            ends = these_items(scores, labels[own], mixture_of(unlabelled, place))
            low, high = np.interp([0.05, 0.95], LEVELS, ends)
            covered.append(low <= drawn.truth[place] <= high)
    assert np.mean(covered) > 0.8


def test_labels_of_one_generator_leave_the_others_near_where_they_were(
    unlabelled: FittedShares, twenty: FittedShares
) -> None:
    others = np.array([3, 4, 6, 7])
    half = np.subtract(*unlabelled.interval()[::-1])[others] / 2
    moved = np.abs(twenty.estimate() - unlabelled.estimate())[others]
    assert (moved < 0.5 * half).all()
    assert int(twenty.status) == int(unlabelled.status) == 0


# --- draws ----------------------------------------------------------------------------------------


def test_draws_have_the_quantiles_and_the_ranks_of_the_panels(twenty: FittedShares) -> None:
    key, n = jax.random.key(3), 1000
    draws, panels = twenty.draws(n, key), np.asarray(twenty.panel.rate_draws(n, key))
    places = (np.arange(n) + 0.5) / n
    for i in range(GENERATORS):
        expected = np.interp(places, LEVELS, twenty.ends[i])
        np.testing.assert_allclose(np.sort(draws[:, i]), expected, atol=1e-12)
        if i >= 3:
            np.testing.assert_array_equal(rankdata(draws[:, i]), rankdata(panels[:, i]))
    for level in (0.05, 0.5, 0.95):
        empirical = np.quantile(draws, level, axis=0)
        np.testing.assert_allclose(empirical, twenty.quantile(level), atol=0.001)


def test_differences_of_generators_are_reproducible_by_key(twenty: FittedShares) -> None:
    def difference(seed: int | None) -> np.ndarray:
        draws = twenty.draws(500, None if seed is None else jax.random.key(seed))
        return draws[:, PLACE] - draws[:, 4]

    np.testing.assert_array_equal(difference(1), difference(1))
    np.testing.assert_array_equal(difference(None), difference(0))
    assert (difference(1) != difference(2)).mean() > 0.9
    ends = [np.quantile(difference(seed), [0.05, 0.95]) for seed in (1, 2)]
    np.testing.assert_allclose(*ends, atol=0.02)


# --- little, bad or extreme input -----------------------------------------------------------------


def assert_sound(fit: FittedShares) -> None:
    assert np.isfinite(fit.ends).all()
    assert ((fit.ends >= 0) & (fit.ends <= 1)).all()
    assert (np.diff(fit.ends, axis=1) >= 0).all()


def test_few_labels_give_no_score(votes: Votes, drawn: World) -> None:
    for invalid, valid in ((FEW - 1, 100), (100, FEW - 1), (0, 100), (0, 0)):
        known = np.full(votes.n_items, -1)
        known[np.flatnonzero(drawn.label == 0)[:invalid]] = 0
        known[np.flatnonzero(drawn.label == 1)[:valid]] = 1
        assert (item_scores(votes, known) == 0).all()
    known[np.flatnonzero(drawn.label == 0)[:FEW]] = 0
    known[np.flatnonzero(drawn.label == 1)[:FEW]] = 1
    scores = item_scores(votes, known)
    assert scores[drawn.label == 1].mean() > scores[drawn.label == 0].mean() + 1


def test_no_labels_and_labels_of_one_class(votes: Votes, drawn: World, three: np.ndarray) -> None:
    none = shares(votes, np.full(votes.n_items, -1), drawn.generator, GENERATORS)
    assert_sound(none)
    assert (np.subtract(*none.interval()[::-1]) > 0.2).all()
    for label in (0, 1):
        one = shares(votes, np.where(three >= 0, label, -1), drawn.generator, GENERATORS)
        assert_sound(one)
        np.testing.assert_allclose(one.ends[:3], label, atol=1e-12)


def test_generators_of_one_item_and_of_none(votes: Votes, drawn: World, three: np.ndarray) -> None:
    """The share of one item is 0 or 1; a generator without items has the panel's prior."""
    kept = np.flatnonzero((drawn.generator < 6) | (np.arange(votes.n_items) == 6 * ITEMS))
    rest, labels, generator = votes.take(kept), three[kept], drawn.generator[kept]
    fit = shares(rest, labels, generator, GENERATORS)
    assert_sound(fit)
    low, high = fit.interval()
    assert low[6] < 0.05
    assert high[6] > 0.95
    for level in (0.05, 0.5, 0.95):
        panel = float(fit.panel.quantile(level)[7])
        assert fit.quantile(level)[7] == pytest.approx(panel, abs=1e-4)
    labels[-1] = 1
    np.testing.assert_array_equal(shares(rest, labels, generator, GENERATORS).ends[6], 1)


def test_items_without_votes_widen_the_interval(
    drawn: World, three: np.ndarray, unlabelled: FittedShares
) -> None:
    some_cast = drawn.vote.copy()
    some_cast[::2] = -1
    fewer = shares(drawn._replace(vote=some_cast).votes, three, drawn.generator, GENERATORS)
    none_cast = drawn._replace(vote=np.full_like(drawn.vote, -1)).votes
    none = shares(none_cast, three, drawn.generator, GENERATORS)
    widths = [np.subtract(*f.interval()[::-1])[3:] for f in (unlabelled, fewer, none)]
    assert (widths[0] < widths[1]).all()
    assert (widths[1] < widths[2]).all()
    for fit in (fewer, none):
        assert_sound(fit)
        np.testing.assert_allclose(fit.estimate()[:3], drawn.truth[:3], atol=1e-12)
    np.testing.assert_allclose(none.ends[3:], none.ends[[3] * 5], atol=1e-9)


def test_labels_of_another_length_are_reported(votes: Votes, drawn: World) -> None:
    with pytest.raises(JudgeBayesError, match="labels have the shape"):
        shares(votes, drawn.label[:-1], drawn.generator[:-1], GENERATORS)
