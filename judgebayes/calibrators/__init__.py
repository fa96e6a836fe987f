"""Calibration maps, one file each, and conformal prediction sets.

This package may not import `aggregators` or any package after it.
"""

from judgebayes.calibrators.bayesian import BayesianMap
from judgebayes.calibrators.conformal import (
    FittedConformal,
    SplitConformal,
    coverage,
    coverage_law,
)
from judgebayes.calibrators.isotonic import Isotonic
from judgebayes.calibrators.maps import Beta, Identity, Platt, Temperature

__all__ = [
    "BayesianMap",
    "Beta",
    "FittedConformal",
    "Identity",
    "Isotonic",
    "Platt",
    "SplitConformal",
    "Temperature",
    "coverage",
    "coverage_law",
]
