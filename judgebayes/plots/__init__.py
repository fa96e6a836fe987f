"""Figures from tidy tables and arrays, returned and not shown.

Nothing is computed here.
"""

from judgebayes.plots.figures import (
    accuracy_coverage,
    bars,
    chain_ranks,
    colour,
    confusion_matrices,
    coverage_panels,
    curves,
    decision_regions,
    densities,
    distributions,
    error_curves,
    forest,
    heat_map,
    intervals,
    judge_map,
    ranks,
    reliability_diagrams,
    scatter,
)

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
    "scatter",
]
