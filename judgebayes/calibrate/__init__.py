"""Calibration maps: one file each, and the pipeline that fits them behind an aggregator."""

from judgebayes.calibrate.base import Calibrator, FittedCalibrator
from judgebayes.calibrate.bayesian import BayesianMap
from judgebayes.calibrate.beta import Beta
from judgebayes.calibrate.chain import Chain
from judgebayes.calibrate.identity import Identity
from judgebayes.calibrate.isotonic import Isotonic
from judgebayes.calibrate.pipeline import Calibrated
from judgebayes.calibrate.platt import Platt
from judgebayes.calibrate.temperature import Temperature

__all__ = [
    "BayesianMap",
    "Beta",
    "Calibrated",
    "Calibrator",
    "Chain",
    "FittedCalibrator",
    "Identity",
    "Isotonic",
    "Platt",
    "Temperature",
]
