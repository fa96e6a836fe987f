import math

import numpy as np
import pytest
from scipy import stats

from judgebayes.errors import JudgeBayesError
from judgebayes.experiments.betaconform.stopping_rules import (
    QuantileRule,
    VarianceRule,
    WidthRule,
    minimum_labels,
    replay,
)

COUNTS = np.random.default_rng(2).binomial(11, np.random.default_rng(3).beta(3, 1, 200))


def test_eq_11_requires_57_and_117_labels() -> None:
    """FINDINGS: the paper's 56 is an approximation by the derivative; its 51 has no derivation."""
    assert (minimum_labels(0.03), minimum_labels(0.01)) == (57, 117)
    assert round((25 / (2 * 0.03)) ** (2 / 3)) == 56
    for xi in (0.01, 0.03, 0.06):
        r = minimum_labels(xi)
        gap = [25 * ((n - 1) ** -0.5 - n**-0.5) for n in (r, r - 1)]
        assert gap[0] <= xi < gap[1]
    with pytest.raises(JudgeBayesError, match="positive"):
        minimum_labels(0.0)


@pytest.mark.parametrize("epsilon", [0.05, 0.1, 0.2])
@pytest.mark.parametrize("unreachable", ["largest", "wait"])
@pytest.mark.parametrize("expected", [None, 8.0])
def test_the_quantile_rule_matches_eqs_8_to_10(
    epsilon: float, unreachable: str, expected: float | None
) -> None:
    rule = QuantileRule(0.03, epsilon, expected, unreachable, minimum=False)
    before = None
    for r in range(1, 60):
        centre = COUNTS[:r].mean() if expected is None else expected
        scores = sorted(abs(c - centre) for c in COUNTS[:r].tolist())
        rank = math.ceil(round((1 - epsilon) * (r + 1), 9))
        now = scores[min(rank, r) - 1] if rank <= r or unreachable == "largest" else None
        stop = now is not None and before is not None and abs(now - before) <= 0.03
        assert rule.enough(COUNTS[:r], 11) == stop, r
        before = now


def test_the_variance_rule_needs_at_most_a_quarter_over_xi_labels() -> None:
    for n_correct in range(0, 60, 7):
        counts = np.array([11] * n_correct + [0] * (60 - n_correct))
        for r in range(1, 61):
            drawn = np.random.default_rng(n_correct).permutation(counts)[:r]
            good = int((drawn > 5).sum())
            if 0 < good < r:
                variance = stats.beta(good, r - good).var()
                assert VarianceRule(0.03).enough(drawn, 11) == (variance <= 0.03)
                assert VarianceRule(0.1, deviation=True).enough(drawn, 11) == (variance**0.5 <= 0.1)
                if r >= 8:
                    assert VarianceRule(0.03).enough(drawn, 11)
            else:
                assert not VarianceRule(0.03).enough(drawn, 11)


def test_the_width_rule_stops_when_the_interval_is_narrow() -> None:
    rule = WidthRule(width=0.2, least=5)
    orders = np.arange(200)[None]
    stop = int(replay(rule, COUNTS, 11, orders)[0])
    for r, enough in ((stop, True), (stop - 1, False)):
        wrong = (COUNTS[:r] < 6).sum()
        low, high = stats.beta(0.5 + wrong, 0.5 + r - wrong).ppf([0.05, 0.95])
        assert (high - low <= 0.2) == enough
    finite = int(replay(WidthRule(0.2, population=100, least=5), COUNTS, 11, orders)[0])
    assert finite < stop
