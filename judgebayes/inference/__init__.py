"""Estimation of parameters (minimiser, point estimates, posterior draws) and the declaration of methods.

This package may not import `calibrators` or any package after it.
"""

from judgebayes.inference.laplace import Laplace, NormalAtMode
from judgebayes.inference.nuts import NUTS
from judgebayes.inference.point import DRPS, EM, MAP, MinimumScore
from judgebayes.inference.registry import Traits, aggregator, calibrator, in_files
from judgebayes.inference.status import Status

__all__ = [
    "DRPS",
    "EM",
    "MAP",
    "NUTS",
    "Laplace",
    "MinimumScore",
    "NormalAtMode",
    "Status",
    "Traits",
    "aggregator",
    "calibrator",
    "in_files",
]
