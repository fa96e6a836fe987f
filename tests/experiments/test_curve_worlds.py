"""The simulated worlds of the split curve: what the split says in each, and how coverage is counted."""

import numpy as np
import pytest

from judgebayes.experiments.betaconform.audit_curve_worlds import _scores, _truth
from judgebayes.experiments.betaconform.curve_worlds import WORLDS
from judgebayes.majority import ErrorCurve

NAMED = {world.name: world for world in WORLDS}


def right_by_margin(name: str) -> tuple[float, float]:
    """Return how often the plurality is right where it is closest and where it is clearest."""
    items = NAMED[name].sample([3], 20_000)
    largest, right = items.given.max(1), items.given.argmax(1) == items.labels
    return right[largest == largest.min()].mean(), right[largest == largest.max()].mean()


def test_the_split_says_much_nothing_or_the_wrong_thing() -> None:
    close, clear = right_by_margin("similar judges")
    assert close < 0.75 < 0.95 < clear
    np.testing.assert_allclose(right_by_margin("split says nothing"), 0.75, atol=0.03)
    np.testing.assert_allclose(right_by_margin("split misleads"), (0.85, 0.25), atol=0.03)


@pytest.mark.parametrize(("name", "error"), [("1 % error", 0.01), ("40 % error", 0.4)])
def test_the_error_is_near_what_the_name_says(name: str, error: float) -> None:
    items = NAMED[name].sample([4], 20_000)
    naive = (items.given.argmax(1) != items.labels).mean()
    np.testing.assert_allclose(naive, error, atol=0.1 * error + 0.002)
    np.testing.assert_allclose(_truth(items, (11,)), naive, atol=1e-12)


def test_an_interval_above_the_truth_is_too_high_and_does_not_cover() -> None:
    size, none = np.array([1, 3]), np.zeros(2, bool)
    curve = ErrorCurve(size, np.array([0.2, 0.2]), np.array([0.1, 0.1]), np.array([0.3, 0.3]), none)
    scores = _scores(curve, np.array([0.05, 0.25]))
    np.testing.assert_allclose(scores, [0.1, 0.2, 0.5, 0.5])
