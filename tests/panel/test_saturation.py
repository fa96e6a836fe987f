"""The saturation curve: its scores against hand counts, its Platt map against SciPy's."""

import numpy as np
import pytest
from diagnosed import ITEMS, as_votes
from scipy import optimize

from judgebayes.panel import diagnostics
from judgebayes.panel.diagnostics import panel_curve
from judgebayes.panel.judges import tally_of


def test_scores_leave_their_own_item_out(index: np.ndarray, labels: np.ndarray) -> None:
    scores = diagnostics._leave_one_out_scores(index[..., None], tally_of(as_votes(index), labels))
    for i in (0, 17, 100):
        rest = np.arange(ITEMS) != i
        for j in range(6):
            if index[i, j] < 0:
                assert scores[i, j] == 0
                continue
            cast = rest & (index[:, j] >= 0)
            right = (index[cast, j] == labels[cast]).sum()
            odds = np.log((1 + right) / (1 + cast.sum() - right))
            assert scores[i, j] == pytest.approx(odds if index[i, j] == 1 else -odds)


def test_the_platt_map_of_the_curve_matches_scipys_minimum(
    index: np.ndarray, labels: np.ndarray
) -> None:
    score = diagnostics._leave_one_out_scores(index[..., None], tally_of(as_votes(index), labels))
    x = score.sum(1, keepdims=True)
    sign = 2 * labels - 1

    def loss(p: np.ndarray) -> float:
        z = p[0] * x[:, 0] / x.std() + p[1]
        return float(np.logaddexp(0, -sign * z).mean() + 0.5 * diagnostics.WEAK_PRIOR * p[0] ** 2)

    scipy_fit = optimize.minimize(loss, [0.0, 0.0], tol=1e-12)
    ours = diagnostics._platt_nll(x, labels).mean()
    p = scipy_fit.x
    theirs = np.logaddexp(0, -sign * (p[0] * x[:, 0] / x.std() + p[1])).mean()
    assert ours == pytest.approx(theirs, abs=1e-6)


def test_a_curve_falls_where_judges_are_independent(index: np.ndarray, labels: np.ndarray) -> None:
    curve = panel_curve(as_votes(index), labels)
    assert curve["judges"].tolist() == [1, 2, 3, 6]
    assert (np.diff(curve["nll"]) < 0).all()
    assert curve["saved"].iloc[-1] == 0
    np.testing.assert_allclose(curve["saved"], curve["nll"] - curve["nll"].iloc[-1])
