"""The forecast of the loss with more labels."""

import numpy as np
import pytest

from judgebayes import JudgeBayesError
from judgebayes.evaluate.learning_curve import forecast_loss

SIZES, NOW, ITEMS, SPLITS = (20, 40, 80), 100, 100, 20


def held_out(rng: np.random.Generator) -> np.ndarray:
    """Return the held-out items of each split: each item in a fifth of the splits."""
    folds = [rng.permutation(ITEMS).reshape(5, -1) for _ in range(SPLITS // 5)]
    return np.concatenate(folds)


def test_a_curve_without_noise_is_continued() -> None:
    """f(n) = 0.3 + 4 / n on every item: c = 1 is on the grid."""
    items = held_out(np.random.default_rng(0))
    losses = [np.full(items.shape, 0.3 + 4 / n) for n in SIZES]
    two, four = forecast_loss(losses, items, SIZES, NOW, [200, 400], n_items=ITEMS)
    assert two.loss.mean == pytest.approx(0.32, abs=2e-4)
    assert four.loss.mean == pytest.approx(0.31, abs=2e-4)
    assert two.gain.mean == pytest.approx(0.02, abs=2e-4)
    assert (two.labels, four.labels) == (200, 400)


@pytest.mark.parametrize("rate", [0.5, 1.0])
def test_intervals_cover_the_curve(rate: float) -> None:
    """Items of different difficulty, fits of different luck: 80 % intervals cover in 74 to 90 %."""
    truth = 0.4 + 0.08 * (2.0) ** -rate
    replays, covered, gains = 400, 0, 0
    for seed in range(replays):
        rng = np.random.default_rng(seed)
        items = held_out(rng)
        hard = rng.gamma(2.0, 1 / 2, ITEMS)
        losses = []
        for n in SIZES:
            fit = rng.normal(0, 0.1 / np.sqrt(n), (SPLITS, 1))
            own = 0.4 + 0.08 * (n / NOW) ** -rate
            losses.append(np.maximum(hard[items] * (own + fit), 1e-3))
        (at,) = forecast_loss(losses, items, SIZES, NOW, [200], n_items=ITEMS, seed=seed)
        covered += at.loss.low <= truth <= at.loss.high
        gains += at.gain.low <= at.gain.mean <= at.gain.high and at.gain.low >= 0
    assert 0.74 <= covered / replays <= 0.90
    assert gains == replays


def test_groups_widen_the_interval() -> None:
    """Ten copies of each of ten items are worth ten items."""
    rng = np.random.default_rng(2)
    items, groups = held_out(rng), np.arange(ITEMS) // 10
    hard = rng.gamma(2.0, 0.2, 10)[groups]
    losses = [hard[items] + 1 / n for n in SIZES]
    (alone,) = forecast_loss(losses, items, SIZES, NOW, [200], n_items=ITEMS)
    (grouped,) = forecast_loss(losses, items, SIZES, NOW, [200], n_items=ITEMS, groups=groups)
    ratio = (grouped.loss.high - grouped.loss.low) / (alone.loss.high - alone.loss.low)
    assert ratio == pytest.approx(np.sqrt(10), rel=0.15)


def test_what_cannot_be_continued_is_refused() -> None:
    """One size, or an infinite loss."""
    items = held_out(np.random.default_rng(0))
    losses = [np.full(items.shape, 0.3)] * 3
    with pytest.raises(JudgeBayesError, match="two sizes or more; there is 1"):
        forecast_loss(losses[:1], items, SIZES[:1], NOW, [200], n_items=ITEMS)
    losses[0] = np.full(items.shape, np.inf)
    with pytest.raises(JudgeBayesError, match="certain and wrong"):
        forecast_loss(losses, items, SIZES, NOW, [200], n_items=ITEMS)
