"""Dawid-Skene without labels on simulated crowds, beside the majority and crowd-kit."""

import numpy as np
import pytest

from judgebayes.experiments.calibrate_dont_curate.audit_crowds import answers, measured
from judgebayes.experiments.calibrate_dont_curate.crowd_worlds import WORLDS


def results(name: str, seed: int) -> dict[str, np.ndarray]:
    """Return accuracy and NLL of every method on one crowd."""
    votes, truth = WORLDS[name].draw(seed)
    return {method: measured(answer(votes), truth).mean(0) for method, answer in answers().items()}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*")  # crowd-kit's calls of pandas
def test_it_is_not_below_the_majority_nor_crowd_kit_on_simulated_crowds() -> None:
    all_results = {name: results(name, seed) for seed, name in enumerate(WORLDS)}
    assert all(r["pooled"][0] >= r["majority"][0] - 0.01 for r in all_results.values())
    if "crowd-kit" not in all_results["balanced"]:
        pytest.skip("crowd-kit is not installed: pip install crowd-kit")
    not_worse = [
        r["pooled"][0] >= r["crowd-kit"][0] and r["pooled"][1] <= r["crowd-kit"][1]
        for r in all_results.values()
    ]
    assert sum(not_worse) >= 9


def test_a_small_crowd_is_answered_at_least_as_well_as_by_the_majority() -> None:
    votes, truth = WORLDS["92 %, spammers"].draw(0)
    methods = answers()
    pooled, majority = (
        measured(methods[name](votes), truth).mean(0) for name in ("pooled", "majority")
    )
    assert pooled[0] > majority[0]
    assert pooled[1] < majority[1]


def test_ties_count_as_a_share_and_zeros_are_scored_as_the_floor() -> None:
    p = np.array([[0.5, 0.5, 0.0], [0.0, 0.9, 0.1], [1.0, 0.0, 0.0]])
    right, nll = measured(p, np.array([0, 2, 1])).T
    np.testing.assert_allclose(right, [0.5, 0.0, 0.0])
    np.testing.assert_allclose(nll, -np.log([0.5, 0.1, 1e-6]))
