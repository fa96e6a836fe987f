"""Figures from tidy tables and arrays; functions return figures and do not show them.

Nothing is computed here.
This package may not import `report` or any package after it.
"""

from judgebayes.plots.calibration import reliability_diagrams
from judgebayes.plots.judges import judge_map
from judgebayes.plots.majority import error_curves
from judgebayes.plots.posteriors import chain_ranks, forest
from judgebayes.plots.risk import risk_by_share
from judgebayes.plots.series import curves, intervals
from judgebayes.plots.style import colour

__all__ = [
    "chain_ranks",
    "colour",
    "curves",
    "error_curves",
    "forest",
    "intervals",
    "judge_map",
    "reliability_diagrams",
    "risk_by_share",
]
