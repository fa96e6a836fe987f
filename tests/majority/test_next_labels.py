"""Which items to label next: against a naive twin, floors, and mirror images."""

import numpy as np
import pytest

from judgebayes.majority import SplitCurve, Splits, losses, next_labels


@pytest.fixture(scope="module")
def splits() -> Splits:
    rng = np.random.default_rng(5)
    ones = rng.choice(6, 120, p=[0.3, 0.1, 0.1, 0.1, 0.1, 0.3])
    truth = np.where(rng.random(120) < 0.8, ones > 2, ones <= 2).astype(int)
    return Splits(
        np.stack([5 - ones, ones], axis=1), np.where(np.arange(120) < 12, truth, -1), (0, 1)
    )


def test_the_first_choice_has_the_largest_decrease_by_its_formula(splits: Splits) -> None:
    fit = SplitCurve().fit(splits)
    chosen = next_labels(fit, splits, 1, (5,), floor=0.0)
    probs, loss = fit.probs(splits), losses(splits, 5)
    mean_loss = (probs * loss).sum(-1).mean(1)
    gain = np.zeros(len(splits.labels))
    for item in range(len(gain)):
        for label in range(2):
            p = probs[:, item, label]
            gain[item] += np.cov(mean_loss, p, bias=True)[0, 1] ** 2 / p.mean()
    gain[splits.labelled] = -1
    assert gain[chosen[0]] == pytest.approx(gain.max(), rel=1e-6)


def test_floors_keep_every_margin(splits: Splits) -> None:
    fit = SplitCurve().fit(splits)
    margins = np.abs(splits.given[:, 0] - splits.given[:, 1])
    chosen = next_labels(fit, splits, 40, (5,), floor=1.0)
    known = np.concatenate([np.flatnonzero(splits.labelled), chosen])
    for margin in np.unique(margins):
        share = (margins == margin).mean()
        assert (margins[known] == margin).mean() > 0.6 * share


def test_which_side_is_named_first_does_not_change_the_choice(splits: Splits) -> None:
    """Where sides are arbitrary, an item and its mirror image are chosen alike."""
    turn = np.arange(120) % 2 == 1
    mirrored = Splits(
        np.where(turn[:, None], splits.given[:, ::-1], splits.given),
        np.where(turn & splits.labelled, 1 - splits.labels, splits.labels),
        (0, 1),
    )
    method = SplitCurve(by_class=False)
    first, second = (
        next_labels(method.fit(each), each, 20, (5,), seed=3) for each in (splits, mirrored)
    )
    np.testing.assert_array_equal(
        np.abs(splits.given[first, 0] - splits.given[first, 1]),
        np.abs(splits.given[second, 0] - splits.given[second, 1]),
    )
