"""The curve over panels: its scores against counts by hand, its map against SciPy's."""

import numpy as np
import pytest
from diagnosed import ITEMS, as_votes
from scipy import optimize

from judgebayes.panel import saturation
from judgebayes.panel.saturation import panel_curve
from judgebayes.panel.tally import tally_of


def test_scores_leave_their_own_item_out(index: np.ndarray, labels: np.ndarray) -> None:
    found = saturation._left_out(index[..., None], tally_of(as_votes(index), labels))
    for i in (0, 17, 100):
        rest = np.arange(ITEMS) != i
        for j in range(6):
            if index[i, j] < 0:
                assert found[i, j] == 0
                continue
            cast = rest & (index[:, j] >= 0)
            right = (index[cast, j] == labels[cast]).sum()
            odds = np.log((1 + right) / (1 + cast.sum() - right))
            assert found[i, j] == pytest.approx(odds if index[i, j] == 1 else -odds)


def test_the_platt_map_of_the_curve_is_at_scipys_minimum(
    index: np.ndarray, labels: np.ndarray
) -> None:
    score = saturation._left_out(index[..., None], tally_of(as_votes(index), labels))
    x = score.sum(1, keepdims=True)
    sign = 2 * labels - 1

    def loss(p: np.ndarray) -> float:
        z = p[0] * x[:, 0] / x.std() + p[1]
        return float(np.logaddexp(0, -sign * z).mean() + 0.5 * saturation.WEAK_PRIOR * p[0] ** 2)

    least = optimize.minimize(loss, [0.0, 0.0], tol=1e-12)
    mine = saturation._platt_nll(x, labels).mean()
    p = least.x
    theirs = np.logaddexp(0, -sign * (p[0] * x[:, 0] / x.std() + p[1])).mean()
    assert mine == pytest.approx(theirs, abs=1e-6)


def test_a_curve_falls_where_judges_are_independent(index: np.ndarray, labels: np.ndarray) -> None:
    curve = panel_curve(as_votes(index), labels)
    assert curve["judges"].tolist() == [1, 2, 3, 6]
    assert (np.diff(curve["nll"]) < 0).all()
    assert curve["saved"].iloc[-1] == 0
    np.testing.assert_allclose(curve["saved"], curve["nll"] - curve["nll"].iloc[-1])
