"""Correlated errors against a loop, and the effective number of judges at its extremes."""

import itertools

import numpy as np
import pytest
from diagnosed import as_votes

from judgebayes.panel.judges import effective_judges, residual_correlation, tally_of


def test_correlation_matches_a_loop(index: np.ndarray, labels: np.ndarray) -> None:
    correlation = residual_correlation(tally_of(as_votes(index), labels))
    right = (index == labels[:, None]).astype(float)
    for a, b in itertools.product(range(6), repeat=2):
        both = (index[:, a] >= 0) & (index[:, b] >= 0)
        x, y = right[both, a].copy(), right[both, b].copy()
        for label in (0, 1):
            here = labels[both] == label
            x[here] -= x[here].mean()
            y[here] -= y[here].mean()
        assert correlation[a, b] == pytest.approx((x @ y) / np.sqrt((x @ x) * (y @ y)))


def test_effective_judges_at_its_extremes() -> None:
    assert effective_judges(np.eye(5)) == pytest.approx(5)
    assert effective_judges(np.ones((5, 5))) == pytest.approx(1)
    assert effective_judges(np.full((5, 5), 0.5) + 0.5 * np.eye(5)) == pytest.approx(5 / 3)
    never_varies = np.full((3, 3), np.nan)
    never_varies[:2, :2] = np.eye(2)
    assert effective_judges(never_varies) == pytest.approx(2)
    no_pair = np.where(np.eye(3, dtype=bool), 1.0, np.nan)
    assert np.isnan(effective_judges(no_pair))
