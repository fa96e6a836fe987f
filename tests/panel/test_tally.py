"""Properties of all diagnostics: any item order, and errors for wrong lengths."""

import numpy as np
import pytest
from diagnosed import ITEMS, as_votes

from judgebayes.errors import JudgeBayesError
from judgebayes.panel.diagnostics import diagnose, panel_curve
from judgebayes.panel.judges import judge_table, residual_correlation, tally_of


def test_unlabelled_items_and_item_order_change_nothing(
    index: np.ndarray, labels: np.ndarray
) -> None:
    some = np.where(np.arange(ITEMS) % 3 == 0, -1, labels)
    labelled = np.flatnonzero(some >= 0)
    mixed = np.random.default_rng(0).permutation(labelled)
    a = residual_correlation(tally_of(as_votes(index), some))
    b = residual_correlation(tally_of(as_votes(index[mixed]), some[mixed]))
    np.testing.assert_allclose(a, b)
    np.testing.assert_allclose(
        panel_curve(as_votes(index), some), panel_curve(as_votes(index[mixed]), some[mixed])
    )


def test_bad_requests_are_errors(index: np.ndarray, labels: np.ndarray) -> None:
    with pytest.raises(JudgeBayesError, match=r"the shape must be \(240,\)"):
        diagnose(as_votes(index), labels[:10])
    with pytest.raises(JudgeBayesError, match="2 names were given for 6 judges"):
        judge_table(as_votes(index), labels, ["a", "b"])
