"""`sample` against `log_prob`: probabilities sum to one, and samples have these frequencies."""

import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro.distributions import Distribution
from scipy import stats

from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.beyond_consensus.cell_votes import CellVotes, student_deviations
from judgebayes.experiments.beyond_consensus.generator_counts import Hypergeometric
from judgebayes.models.distributions import (
    LEAST,
    CoinVotes,
    ConfusionVotes,
    CorrectVotes,
    LeaningVotes,
)
from judgebayes.models.shared_difficulty import DifficultyVotes, log_vote_table

DRAWS = 40_000
RNG = np.random.default_rng(0)
with np.errstate(divide="ignore"):
    LOG_CLASS = np.log(np.array([[0.2, 0.5, 0.3], [1.0, 0.0, 0.0]]))
CAST = jnp.array([[[True, True], [True, False]], [[True, False], [True, True]]])
CONFUSION = RNG.dirichlet(np.ones(3), (2, 3))


def confusion() -> Distribution:
    return ConfusionVotes(jnp.asarray(LOG_CLASS), jnp.log(jnp.asarray(CONFUSION)), CAST)


def coin() -> Distribution:
    right = jnp.array([0.8, 0.3])
    return CoinVotes(jnp.asarray(LOG_CLASS), jnp.log(right), jnp.log1p(-right), CAST)


def coin_by_item() -> Distribution:
    right = jnp.array([[0.8, 0.3], [0.5, 0.9]])
    return CoinVotes(jnp.asarray(LOG_CLASS), jnp.log(right), jnp.log1p(-right), CAST)


def leaning(points: int, tau: float) -> Distribution:
    log_class = jnp.log(jnp.array([[0.3, 0.7], [0.6, 0.4]]))
    base = jnp.array([[-0.5, 0.2, 0.0], [1.5, 0.8, 2.0]])
    shift = jnp.array([[0.1, -0.4], [0.3, 0.0]])
    cast = jnp.array([[True, True, False], [True, True, True]])[..., None]
    return LeaningVotes(log_class, base, shift, jnp.asarray(tau), jnp.array([0, 1]), cast, points)


PANELS: dict[str, Callable[[], Any]] = {
    "confusion": confusion,
    "coin": coin,
    "coin by item": coin_by_item,
    "leaning": lambda: leaning(61, 0.8),
    "independent": lambda: leaning(1, 0.0),
}


def every_vote(panel: Any) -> list[np.ndarray]:
    """Return all possible votes of a panel, the same on both items where both have votes."""
    n_classes = panel.log_class.shape[1]
    shape = panel.cast.shape[1:]
    return [
        np.reshape(v, shape) for v in itertools.product(range(n_classes), repeat=np.prod(shape))
    ]


@pytest.mark.parametrize("name", PANELS)
@in_float64
def test_vote_probabilities_sum_to_one_and_match_samples(name: str) -> None:
    panel = PANELS[name]()
    samples = np.asarray(panel.sample(jax.random.key(1), (DRAWS,)))
    cast = np.asarray(panel.cast)
    np.testing.assert_array_equal(samples < 0, np.broadcast_to(~cast, samples.shape))
    log_prob = jax.jit(panel.log_prob)
    for item in range(2):
        values = np.unique([np.where(cast[item], v, -1) for v in every_vote(panel)], axis=0)
        both = np.full((len(values), *cast.shape), -1)
        both[:, item] = values
        probs = np.exp(np.asarray(log_prob(jnp.asarray(both)))[:, item])
        assert probs.sum() == pytest.approx(1, abs=1e-6)
        at = (samples[:, None, item] == values).all(axis=tuple(range(2, values.ndim + 1)))
        counts = at.sum(0)
        assert counts.sum() == DRAWS
        possible = probs > 0
        assert counts[~possible].sum() == 0
        frequent = possible & (probs * DRAWS > 5)
        frequencies, expected = counts[frequent], probs[frequent] * DRAWS
        expected *= frequencies.sum() / expected.sum()
        assert stats.chisquare(frequencies, expected).pvalue > 1e-4


@in_float64
def test_the_sums_are_those_of_plain_loops() -> None:
    panel = confusion()
    votes = np.array([[[0, 2], [1, -1]], [[2, -1], [0, 1]]])
    for i, log_prob in enumerate(panel.log_prob(jnp.asarray(votes))):
        total = 0.0
        for k in range(3):
            p = float(np.exp(LOG_CLASS[i, k]))
            for j, s in itertools.product(range(2), range(2)):
                if votes[i, j, s] >= 0:
                    p *= float(CONFUSION[j, k, votes[i, j, s]])
            total += p
        assert float(log_prob) == pytest.approx(np.log(total))


def correct_votes() -> CorrectVotes:
    share = jnp.array([[0.3, 0.7], [0.9, 0.1]])
    mean = jnp.array([[0.25, 0.9], [0.5, 0.8]])
    dispersion = jnp.array([[0.5, 0.1], [2.0, 0.01]])
    return CorrectVotes(share, mean, dispersion, jnp.array([0, 1, 0]), jnp.array([7, 4, 1]), 7)


@in_float64
def test_count_probabilities_sum_to_one_and_match_samples() -> None:
    votes = correct_votes()
    every = np.arange(8)
    probs = np.exp(votes.log_prob(jnp.asarray(every)[:, None] * jnp.ones(3, int)))
    np.testing.assert_allclose(probs.sum(0), 1)
    np.testing.assert_array_equal(votes.log_prob(jnp.array([7, 5, 2]))[1:], [LEAST, LEAST])
    samples = np.asarray(votes.sample(jax.random.key(2), (DRAWS,)))
    for item, given in enumerate((7, 4, 1)):
        counts = np.bincount(samples[:, item], minlength=given + 1)
        expected = DRAWS * probs[: given + 1, item]
        assert stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > 1e-4


@in_float64
def test_one_component_is_scipys_beta_binomial() -> None:
    mean, dispersion = 0.8, 0.2
    one = CorrectVotes(
        *(jnp.array([[x]]) for x in (1.0, mean, dispersion)),
        jnp.zeros(6, int),
        jnp.full(6, 5),
        5,
    )
    wanted = stats.betabinom.logpmf(np.arange(6), 5, mean / dispersion, (1 - mean) / dispersion)
    np.testing.assert_allclose(one.log_prob(jnp.arange(6)), wanted, rtol=1e-10)


@in_float64
def test_the_hypergeometric_is_scipys_and_matches_samples() -> None:
    total, valid, taken = np.array([20, 8]), np.array([13, 8]), np.array([6, 5])
    own = Hypergeometric(*(jnp.asarray(x) for x in (total, valid, taken)), most=10)
    samples = np.asarray(own.sample(jax.random.key(3), (DRAWS,)))
    for place in range(2):
        exact = stats.hypergeom(total[place], valid[place], taken[place])
        every = [float(own.log_prob(jnp.full(2, x))[place]) for x in range(8)]
        wanted = exact.pmf(np.arange(8))
        np.testing.assert_allclose(np.exp(every), wanted, atol=1e-12)
        counts = np.bincount(samples[:, place], minlength=8)[:8]
        possible = wanted * DRAWS > 5
        assert counts[wanted == 0].sum() == 0
        expected = wanted[possible] * counts[possible].sum() / wanted[possible].sum()
        if possible.sum() > 1:
            assert stats.chisquare(counts[possible], expected).pvalue > 1e-4


@pytest.mark.parametrize("scale", [1e3, 1e10, 1e27])
def test_votes_of_extreme_judges_have_no_log_probability_above_zero(scale: float) -> None:
    # A difference of large numbers did have, and a sampler's chain got stuck there.
    rng = np.random.default_rng(0)
    votes = jnp.asarray(rng.integers(-1, 2, (24, 3)))[..., None]
    base, shift = (jnp.asarray(np.sqrt(scale) * rng.normal(size=(2, n))) for n in (3, 2))
    half = jnp.full((24, 2), jnp.log(0.5))
    distribution = LeaningVotes(
        half, base, shift, jnp.asarray(scale), jnp.arange(24) % 2, votes >= 0, 15
    )
    assert (np.asarray(distribution.log_prob_by_class(votes)) <= 1e-9).all()


def difficulty() -> Distribution:
    table = log_vote_table(jnp.array([[1.0, 0.2], [0.5, -0.3]]), 0.7, 3, symmetric=True)
    return DifficultyVotes(jnp.asarray(LOG_CLASS), table, CAST)


def cell_votes(log_odds: jax.Array | None) -> Distribution:
    total = jnp.array([[[5.0, 4, 9], [3, 2, 0]]])
    logits = jnp.array([[[1.0, -0.5, 0.3], [0.2, 0.1, 0.0]]])
    return CellVotes(total, logits, jnp.array(0.4), student_deviations(4.0), log_odds)


EVERY: dict[str, Callable[[], Any]] = {
    **PANELS,
    "difficulty": difficulty,
    "cells": lambda: cell_votes(None),
    "odd cells": lambda: cell_votes(jnp.array([-2.0, -3.0])),
    "correct": correct_votes,
    "hypergeometric": lambda: Hypergeometric(jnp.array([20, 8]), jnp.array([13, 8]), 5, most=6),
}


@pytest.mark.parametrize("name", EVERY)
@in_float64
def test_arrays_are_leaves_that_pass_through_jit_and_vmap_and_are_validated(name: str) -> None:
    with numpyro.validation_enabled():
        own = EVERY[name]()
    arrays = {id(x) for x in vars(own).values() if isinstance(x, jax.Array)}
    assert arrays == {id(x) for x in jax.tree.leaves(own)}
    value = jnp.ones(own.shape(), int)
    wanted = np.asarray(own.log_prob(value))
    np.testing.assert_allclose(jax.jit(lambda d: d.log_prob(value))(own), wanted)
    np.testing.assert_allclose(own.log_prob(jnp.stack([value, value])), [wanted, wanted])
    two = jax.tree.map(lambda x: jnp.stack([x, x]), own)
    np.testing.assert_allclose(jax.vmap(lambda d: d.log_prob(value))(two), [wanted, wanted])
    for field, constraint in own.arg_constraints.items():
        if field != "cast":
            assert not np.asarray(constraint(jnp.nan * getattr(own, field))).any()
