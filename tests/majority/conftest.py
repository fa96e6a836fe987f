import numpy as np
import pytest

from judgebayes.majority import Counts, counts_of


@pytest.fixture(scope="session")
def easy_and_hard() -> Counts:
    """Sixty items with up to 7 votes, some of them fewer, some unlabelled."""
    rng = np.random.default_rng(4)
    hard = rng.random(60) < 0.3
    chance = np.where(hard, rng.beta(1, 3, 60), rng.beta(9, 1, 60))
    given = np.where(np.arange(60) % 9 == 0, 5, 7)
    correct = rng.binomial(given, chance)
    correct[::10] = -1
    return counts_of(correct, given)
