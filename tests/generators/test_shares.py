"""The share of a generator's items: against simulation, and from no label to all."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom, norm
from strong_judges import GENERATORS, ITEMS, World, world

from judgebayes.generators import SharePosterior, shares
from judgebayes.generators.clusters import Clusters
from judgebayes.generators.item_posterior import Items, quantiles, tail_probability
from judgebayes.generators.own_labels import item_scores
from judgebayes.votes import Votes
from judgebayes.votes.columns import certain

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
def unlabelled(drawn: World, votes: Votes, three: np.ndarray) -> SharePosterior:
    """The fit without a label of the other generators."""
    return shares(votes, three, drawn.generator, GENERATORS)


def some(drawn: World, labels: np.ndarray, k: int, place: int, seed: int) -> np.ndarray:
    """Return the labels, with those of k items of a generator; more k add to fewer."""
    own = np.random.default_rng(seed).permutation(np.flatnonzero(drawn.generator == place))[:k]
    known = labels.copy()
    known[own] = drawn.label[own]
    return known


@pytest.fixture(scope="module")
def twenty(drawn: World, votes: Votes, three: np.ndarray) -> SharePosterior:
    """The fit with 20 labels of one of the other generators."""
    return shares(votes, some(drawn, three, 20, PLACE, 0), drawn.generator, GENERATORS)


def mixture_of(fit: SharePosterior, place: int) -> tuple:
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


# --- from no label to all -------------------------------------------------------------------------


def test_without_a_label_it_is_the_panels_posterior_and_the_chance_of_items(
    unlabelled: SharePosterior,
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


def test_labels_narrow_the_interval_and_never_widen_it(
    drawn: World,
    votes: Votes,
    three: np.ndarray,
    unlabelled: SharePosterior,
    twenty: SharePosterior,
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
    drawn: World, votes: Votes, three: np.ndarray, unlabelled: SharePosterior
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


# --- draws ----------------------------------------------------------------------------------------


# --- little, bad or extreme input -----------------------------------------------------------------
