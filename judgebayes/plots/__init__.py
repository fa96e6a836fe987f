"""Figures from tidy tables and arrays; functions return figures and do not show them.

Nothing is computed here.
This package may not import `report` or any package after it.
"""

from judgebayes.plots.calibration import accuracy_coverage, coverage_panels, reliability_diagrams
from judgebayes.plots.decisions import confusion_matrices, decision_regions, heat_map, risk_by_share
from judgebayes.plots.judges import judge_map
from judgebayes.plots.majority import distributions, error_curves
from judgebayes.plots.posteriors import chain_ranks, forest, ranks
from judgebayes.plots.series import bars, curves, densities, intervals, scatter
from judgebayes.plots.style import colour

__all__ = [
    "accuracy_coverage",
    "bars",
    "chain_ranks",
    "colour",
    "confusion_matrices",
    "coverage_panels",
    "curves",
    "decision_regions",
    "densities",
    "distributions",
    "error_curves",
    "forest",
    "heat_map",
    "intervals",
    "judge_map",
    "ranks",
    "reliability_diagrams",
    "risk_by_share",
    "scatter",
]
