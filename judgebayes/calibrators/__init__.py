"""Calibration maps, one file each, and conformal prediction sets.

This package may not import `aggregators` or any package after it.
"""

from judgebayes.calibrators.base import Calibrator, FittedCalibrator
from judgebayes.calibrators.bayesian import BayesianMap
from judgebayes.calibrators.beta import Beta
from judgebayes.calibrators.conformal import (
    CoverageLaw,
    FittedConformal,
    SplitConformal,
    coverage,
    coverage_law,
)
from judgebayes.calibrators.identity import Identity
from judgebayes.calibrators.isotonic import Isotonic
from judgebayes.calibrators.platt import Platt
from judgebayes.calibrators.temperature import Temperature

__all__ = [
    "BayesianMap",
    "Beta",
    "Calibrator",
    "CoverageLaw",
    "FittedCalibrator",
    "FittedConformal",
    "Identity",
    "Isotonic",
    "Platt",
    "SplitConformal",
    "Temperature",
    "coverage",
    "coverage_law",
]
