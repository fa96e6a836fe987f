"""The counts in the third paper's experiments."""

import numpy as np
import pytest

from judgebayes.experiments.betaconform.common import DataSet
from judgebayes.experiments.betaconform.table2 import ELSEWHERE, harm, reach_from_elsewhere
from judgebayes.experiments.betaconform.transfers import REACHES, Target, limit

RUNS = 30


def target(source: str, harmful_from: float) -> tuple[Target, dict[str, np.ndarray]]:
    """Return margins of about 5 points: 4 higher from a reach on, 1 lower below it."""
    noise = np.random.default_rng(0).normal(size=RUNS)
    by_method = {"mixture-map": 5 + noise}
    for reach in REACHES:
        by_method[limit(reach)] = 5 + noise + (4.0 if reach >= harmful_from else -1.0)
    data_set = DataSet(source, "all", "judge", np.arange(4), 3)
    return Target(data_set, "", [], None), by_method


def test_harm_counts_targets_beyond_the_interval_of_their_margin() -> None:
    by_target = [target("one", 0.5), target("one", 9.0), target("two", 0.25)]
    assert (harm(by_target, limit(0.1)).beyond, harm(by_target, limit(0.1)).clearly) == (0, 0)
    assert harm(by_target, limit(0.25)).beyond == 1
    half = harm(by_target, limit(0.5))
    assert (half.beyond, half.clearly, half.targets) == (2, 2, 3)
    assert half.largest == pytest.approx(4)
    assert half.mean == pytest.approx(
        5 + (4 - 1 + 4) / 3 + by_target[0][1]["mixture-map"].mean() - 5
    )


def test_a_source_gets_the_largest_reach_that_harms_none_of_the_others() -> None:
    by_target = [target("one", 0.5), target("one", 9.0), target("two", 0.25)]
    chosen = reach_from_elsewhere(by_target)
    assert [each.data_set.dataset for each, _ in chosen] == ["one", "one", "two"]
    # "two" is harmed from 0.25 on, so "one" gets 0.1; "one" from 0.5 on, so "two" gets 0.25.
    for (_, by_method), reach in zip(chosen, (0.1, 0.1, 0.25), strict=True):
        np.testing.assert_array_equal(by_method[ELSEWHERE], by_method[limit(reach)])
    assert harm(chosen, ELSEWHERE).beyond == 1


def test_where_every_reach_harms_the_smallest_is_taken() -> None:
    chosen = reach_from_elsewhere([target("one", 0.0), target("two", 9.0)])
    np.testing.assert_array_equal(chosen[1][1][ELSEWHERE], chosen[1][1][limit(min(REACHES))])
