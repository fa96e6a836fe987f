"""How much less labels of a few groups say about a majority vote's error."""

import numpy as np
import pytest

from judgebayes.errors import JudgeBayesError
from judgebayes.majority import Thinning, counts_of, design_effect


def test_copies_of_an_item_say_what_the_item_says() -> None:
    rng = np.random.default_rng(0)
    correct = rng.binomial(5, rng.beta(3, 1, 200))
    copied = counts_of(np.repeat(correct, 4), 5)
    effect = design_effect(copied, np.repeat(np.arange(200), 4), (1, 3, 5))
    # Student's quantiles at 199 and 799 degrees of freedom, and n / (n - 1), differ a little.
    assert effect == pytest.approx(4, rel=0.02)
    once = Thinning().fit(counts_of(correct, 5)).curve((3,))
    again = Thinning().fit(copied, weight=np.full(800, 1 / effect)).curve((3,))
    assert again.low[0] == pytest.approx(once.low[0], abs=2e-3)
    assert again.high[0] == pytest.approx(once.high[0], abs=2e-3)


def test_it_is_at_least_one_and_ignores_unlabelled_items_and_sizes_beyond() -> None:
    rng = np.random.default_rng(1)
    correct = rng.binomial(5, 0.7, 100)
    alone = design_effect(counts_of(correct, 5), np.arange(100), (1, 3, 5))
    assert alone == pytest.approx(1)
    group = np.arange(100) // 5
    labelled = counts_of(np.where(np.arange(100) < 50, correct, -1), 5)
    some = design_effect(labelled, group, (3, 9))
    assert some == pytest.approx(design_effect(counts_of(correct[:50], 5), group[:50], (3,)))
    assert some >= 1


def test_errors_that_do_not_vary_count_once_per_group_and_one_group_is_refused() -> None:
    right = counts_of(np.full(40, 5), 5)
    group = np.arange(40) // 4
    assert design_effect(right, group, (5,)) > 4
    with pytest.raises(JudgeBayesError, match="Label items of more groups"):
        design_effect(right, np.zeros(40, int), (5,))
