"""Labels that may be wrong, in counts and in the share of valid items."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit

from judgebayes.generators import count_votes, expected_counts, expected_validity, shares
from judgebayes.generators.clusters import Clusters
from judgebayes.generators.item_posterior import Items, quantiles
from judgebayes.votes import Votes
from judgebayes.votes.columns import Evidence, certain

LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])


@pytest.fixture(scope="module")
def world() -> tuple[Votes, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    generator = np.repeat(np.arange(3), 120)
    valid = (rng.random(360) < np.array([0.8, 0.7, 0.6])[generator]).astype(int)
    right = rng.random((360, 3)) < np.where(valid == 1, 0.9, 0.6)[:, None]
    index = np.where(right, valid[:, None], 1 - valid[:, None])
    return Votes(jnp.asarray(index[..., None], jnp.int8), None, None, None, 2), valid, generator


def test_expected_counts_of_certain_labels_are_counts(
    world: tuple[Votes, np.ndarray, np.ndarray],
) -> None:
    votes, valid, generator = world
    labels = np.where(np.arange(360) % 3 == 0, -1, valid)
    exact = count_votes(votes, labels, generator, 3)
    expected = expected_counts(votes, np.where(labels < 0, np.nan, labels), generator, 3)
    for name in vars(exact):
        np.testing.assert_array_equal(getattr(exact, name), getattr(expected, name), err_msg=name)


def test_certain_evidence_gives_what_labels_give(
    world: tuple[Votes, np.ndarray, np.ndarray],
) -> None:
    votes, valid, generator = world
    labels = np.where(generator == 2, -1, valid)
    by_labels = shares(votes, labels, generator, 3)
    by_evidence = shares(votes, labels, generator, 3, evidence=certain(labels))
    np.testing.assert_allclose(by_evidence.ends, by_labels.ends, atol=1e-6)
    low, high = by_labels.interval()
    assert (high - low)[:2] == pytest.approx(0)
    doubtful = Evidence(np.array([0.0, -3.0, 3.0])[labels + 1][None], (1.0,))
    fit = shares(votes, labels, generator, 3, evidence=doubtful)
    low, high = fit.interval()
    assert (high - low)[:2].min() > 0.01
    draws = fit.sample(500)
    assert draws[:, :2].std(0).min() > 0.004  # a generator with all labels is drawn too


def test_the_share_of_a_few_items_by_enumeration() -> None:
    odds, node = 0.4, np.array([2.0, 2.0, -2.0, 0.0, np.inf])
    rng = np.random.default_rng(0)
    node = np.tile(node, 12)
    mixture = (jnp.array([1.0]), jnp.array([odds]), jnp.array([0.5]))
    items = Items(np.zeros(60), Evidence(node[None], (1.0,)), Clusters(np.arange(60), 0.0))
    got = quantiles(items, mixture, LEVELS, "these")
    offset = rng.normal(
        odds, 0.5, 200_000
    )  # the score is 0, so the offset is the logit of the share
    p = expit(offset)
    chance = expit(offset[:, None] + node[:5])
    each = np.prod([p * np.exp(v) + 1 - p for v in (2.0, 2.0, -2.0)], axis=0) * p
    weight = each**12
    drawn = rng.binomial(12, chance).sum(1) / 60
    chosen = rng.choice(drawn, 50_000, p=weight / weight.sum())
    # The sum of the items is taken as normal.
    np.testing.assert_allclose(got, np.quantile(chosen, LEVELS), atol=0.012)


def test_expected_validity_uses_votes_and_the_generator(
    world: tuple[Votes, np.ndarray, np.ndarray],
) -> None:
    votes, valid, generator = world
    rng = np.random.default_rng(1)
    given = np.where(rng.random(360) < 0.2, 1 - valid, valid)
    evidence = Evidence(np.where(given == 1, 1.0, -1.0)[None] * np.log(4), (1.0,))
    p = expected_validity(votes, given, evidence, generator)
    plain = expit(evidence.nodes[0])
    assert np.abs(p - valid).mean() < np.abs(plain - valid).mean()
    by_generator = [p[generator == g].mean() - valid[generator == g].mean() for g in range(3)]
    assert np.abs(by_generator).max() < 0.08
    few = expected_validity(votes, np.where(np.arange(360) < 5, given, -1), evidence, generator)
    assert np.isfinite(few[:5]).all()
    assert np.isnan(few[5:]).all()
