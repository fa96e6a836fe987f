"""Youden indices of judges and panels, and the guards that use them."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from judgebayes.generators import PrecisionCounts, YoudenIndex, judge_youden, panel_youden
from judgebayes.generators.own_labels import LEAST, REVERSED, SHIFT
from judgebayes.generators.systems import has_youden_index


def counts_of(tpr: np.ndarray, fpr: np.ndarray, n: float = 200.0) -> PrecisionCounts:
    """Return two generators of which a third of the items is invalid; rates by judge."""
    cells = np.full((2, len(tpr)), n)
    zero = 0 * cells
    parts = (zero, zero, 2 * cells * tpr, 2 * cells, cells * fpr, cells)
    items = (np.full(2, 2 * n), np.full(2, n), np.zeros(2))
    return PrecisionCounts(*(jnp.asarray(a) for a in (*parts, *items)))


@pytest.mark.parametrize("bound", [-0.1, 0.0, 0.05])
@pytest.mark.parametrize("estimate", [-0.4, -0.1, 0.0, 0.06, 0.5])
def test_the_posterior_is_that_of_quadrature(bound: float, estimate: float) -> None:
    def density(j: float) -> float:
        prior = REVERSED if j < 0 else 1 - REVERSED
        return float(prior * norm.pdf(estimate, j, 0.08))

    ends = [quad(density, *part)[0] for part in ((-1, min(bound, 0)), (0, max(bound, 0)))]
    total = quad(density, -1, 0)[0] + quad(density, 0, 1)[0]
    ours = YoudenIndex(np.asarray(estimate), np.asarray(0.08)).below(bound)
    assert float(ours) == pytest.approx(sum(ends) / total, rel=1e-6)


def test_estimate_and_deviation_are_those_of_the_formula() -> None:
    counts = counts_of(np.array([0.9]), np.array([0.3]))
    rates = [(2 * 360 + 0.5) / 801, (2 * 60 + 0.5) / 401]
    variance = sum(
        p * (1 - p) / (n + 2) + (SHIFT * p * (1 - p)) ** 2 / 2
        for p, n in zip(rates, (800, 400), strict=True)
    )
    each = judge_youden(counts)
    assert float(each.estimate[0]) == pytest.approx(rates[0] - rates[1])
    assert float(each.deviation[0]) == pytest.approx(np.sqrt(variance))


def test_rogan_gladen_needs_a_youden_index_that_is_surely_above_the_least() -> None:
    """The guard refuses where the 90 % interval of the divisor has values below .05."""
    gaps = np.arange(0.0, 0.4, 0.005)
    each = [counts_of(np.full(3, 0.6 + gap), np.full(3, 0.6)) for gap in gaps]
    allowed = np.array([has_youden_index(counts) for counts in each])
    first = int(np.argmax(allowed))
    assert (allowed == (np.arange(len(gaps)) >= first)).all()
    below = [float(panel_youden(counts).below(LEAST)) for counts in each[first - 1 : first + 1]]
    assert below[1] < 0.05 <= below[0]
    assert 0.1 < gaps[first] < 0.25
    assert not has_youden_index(counts_of(np.array([0.8]), np.array([0.3]), n=0.0))


def test_judges_without_knowledge_are_hardly_ever_called_reversed() -> None:
    """In at most 5 % of panels of five judges, though their rates differ between generators."""
    rng = np.random.default_rng(0)
    alarms = []
    for _ in range(400):
        logit = rng.normal(0.8, 0.5, 5) + rng.normal(0, 0.2, (3, 1))
        rate = 1 / (1 + np.exp(-logit - rng.normal(0, 0.1, (3, 5))))
        valid = np.repeat(rng.binomial(150, rng.uniform(0.6, 0.9, 3))[:, None], 5, 1)
        invalid = 150 - valid
        cells = (0 * rate, 0 * rate, rng.binomial(valid, rate), valid)
        more = (rng.binomial(invalid, rate), invalid, valid[:, 0], invalid[:, 0], np.zeros(3))
        counts = PrecisionCounts(*(jnp.asarray(a, float) for a in (*cells, *more)))
        alarms.append((judge_youden(counts).below(0.0) >= 0.95).any())
    assert np.mean(alarms) <= 0.05
    reversed_one = judge_youden(counts_of(np.array([0.3, 0.8]), np.array([0.7, 0.3]), n=30.0))
    assert (reversed_one.below(0.0) >= 0.95).tolist() == [True, False]
