"""`judgebayes ensemble` with few draws and few simulations, where a test needs only some numbers."""

import pytest

from judgebayes.inference import NormalAtMode

FEW = NormalAtMode(draws=200, weighted=True)
"""Compiles in a fraction of the time of `NUTS`."""


def with_few_draws(patch: pytest.MonkeyPatch) -> None:
    """Sample the mixture with `FEW`, and forecast labels from 8 simulations, of which 4 search."""
    patch.setattr("judgebayes.workflow.ensembling.NUTS", lambda: FEW)
    patch.setattr("judgebayes.workflow.ensemble_estimates.SIMULATIONS", 8)
    patch.setattr("judgebayes.majority.assurance.SEARCH", 4)
