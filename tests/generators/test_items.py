"""Fits of the item-level model; tests/models checks its density against brute force."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from judgebayes.errors import JudgeBayesError
from judgebayes.generators.items import ItemLevel
from judgebayes.generators.posterior import FittedGeneratorValidator
from judgebayes.inference import DRPS, MAP, NUTS, NormalAtMode
from judgebayes.votes import Votes

GENERATORS, ITEMS = 3, 40
METHOD = ItemLevel(NormalAtMode(draws=300))


@pytest.fixture(scope="module")
def some(item_votes: Votes, drawn: tuple) -> tuple[Votes, np.ndarray, np.ndarray, np.ndarray]:
    """Three judges on a few items of each generator; the labels of two generators, and all labels."""
    rows = np.concatenate([np.arange(ITEMS) + 300 * g for g in range(GENERATORS)])
    _, label, generator = drawn
    visible_labels = np.where(generator < 2, label, -1)
    few = item_votes.take(rows)
    return replace(few, index=few.index[:, :3]), visible_labels[rows], generator[rows], label[rows]


@pytest.fixture(scope="module")
def fitted(some: tuple) -> FittedGeneratorValidator:
    with jax.enable_x64(True):
        return METHOD.fit(*some[:3], GENERATORS)


@pytest.mark.slow
def test_labelled_generators_are_exact_and_others_covered(
    some: tuple, fitted: FittedGeneratorValidator
) -> None:
    _, _, generator, label = some
    truth = np.bincount(generator, weights=label) / ITEMS
    low, high = (np.asarray(a) for a in fitted.interval())
    assert int(fitted.status) == 0
    np.testing.assert_allclose(np.asarray(fitted.estimate())[:2], truth[:2])
    np.testing.assert_allclose((high - low)[:2], 0, atol=1e-12)
    assert ((low <= truth + 1e-12) & (truth <= high + 1e-12)).all()
    assert (high > low + 0.02)[2:].all()


@pytest.mark.slow
def test_the_mode_alone_is_in_the_middle(some: tuple, fitted: FittedGeneratorValidator) -> None:
    mode = ItemLevel(MAP(starts=1)).fit(*some[:3], GENERATORS)
    assert mode.precision.shape == (1, GENERATORS)
    np.testing.assert_allclose(mode.estimate(), fitted.estimate(), atol=0.03)


def test_bad_votes_and_scores_are_reported(some: tuple, votes: Votes) -> None:
    with pytest.raises(JudgeBayesError, match="one binary vote of each judge"):
        ItemLevel().fit(votes, np.zeros(60, int), np.zeros(60, int), 1)
    with pytest.raises(JudgeBayesError, match="fitted by its likelihood"):
        ItemLevel(DRPS()).fit(*some[:3], GENERATORS)


@pytest.mark.slow
def test_nuts_agrees_with_the_normal(some: tuple, fitted: FittedGeneratorValidator) -> None:
    nuts = ItemLevel(NUTS(draws=500, warmup=500, chains=2)).fit(*some[:3], GENERATORS)
    np.testing.assert_allclose(nuts.estimate(), fitted.estimate(), atol=0.03)
    width = [np.asarray(f.interval()[1] - f.interval()[0])[2:] for f in (nuts, fitted)]
    np.testing.assert_allclose(width[0], width[1], rtol=0.35)
