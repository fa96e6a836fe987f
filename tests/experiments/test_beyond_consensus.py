"""The fourth paper's claims: they hold for the paper's numbers and are lost by wrong ones."""

import numpy as np
import pytest

from judgebayes.experiments.beyond_consensus import fig6
from judgebayes.experiments.beyond_consensus.common import MARGIN, equal
from judgebayes.experiments.claims import Claim

VETO = np.array([0.028, 0.021, 0.024, 0.030, 0.022, 0.026])
"""Errors of an ensemble on six generators."""
OUTCOMES = [  # errors of the regression, outcome
    (VETO - 0.014, "reproduced"),
    (VETO + 0.02, "contradicted"),
    (VETO[::-1] - [0.03, -0.03, 0.03, -0.03, 0.03, -0.03], "uninformative"),
]


@pytest.mark.parametrize(("regression", "outcome"), OUTCOMES)
def test_the_lead_over_the_ensemble_can_be_lost(regression: np.ndarray, outcome: str) -> None:
    (row,) = fig6.leads({"original": (VETO, regression)})
    one = row["claim"]
    assert isinstance(one, Claim)
    assert (one.kind, one.outcome, one.margin) == ("paper", outcome, MARGIN["gain in error"])
    assert row["splits"] == 6


def test_levels_that_share_generators_are_graded_together() -> None:
    rng = np.random.default_rng(0)
    gaps = {str(i): (VETO, VETO - 0.01 + 0.005 * rng.normal(size=6)) for i in range(3)}
    (alone,) = fig6.leads({"0": gaps["0"]})
    together = fig6.leads(gaps)[0]
    narrow, wide = (row["claim"].interval for row in (alone, together))
    assert wide.high - wide.low > narrow.high - narrow.low


def test_a_released_number_is_missed_by_more_than_its_margin() -> None:
    for of, margin in MARGIN.items():
        assert equal(0.5, 0.5 + 0.9 * margin, of)["claim"].outcome == "reproduced"
        assert equal(0.5, 0.5 + 1.1 * margin, of)["claim"].outcome == "contradicted"
