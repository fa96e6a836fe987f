"""When a simple estimator breaks: conditions to check before its result is used.

Each function takes the same data as the estimator and returns whether the estimate, or its interval, can
be used.
"""

import numpy as np

from judgebayes.arrays import ItemFloats, ItemInts
from judgebayes.generators.counts import PrecisionCounts
from judgebayes.generators.systems import tuned_power
from judgebayes.generators.youden import LEAST, panel_youden

ERROR = 0.05
"""The probability outside either end of a 90 % interval."""
FEW = 5
"""A normal interval of a share needs this many labels of either class."""


def has_youden_index(counts: PrecisionCounts) -> bool:
    """Return whether the labels show that the judges' mean Youden index is at least .05.

    Rogan and Gladen's correction divides by it. It is not identified where the 90 % interval of the
    divisor (`panel_youden`) has values below .05, or where no judge voted on items of both labels.
    """
    return bool(panel_youden(counts).below(LEAST) < ERROR)


def stable_power(scores: ItemFloats, labels: ItemInts) -> tuple[float, bool]:
    """Return the tuned weight of prediction-powered inference within [0, 1], and if it was there.

    A weight outside means that the labelled scores say otherwise than their variance allows: chance, or
    scores that fall with validity (Angelopoulos et al., PPI++, 2023, also clip it).
    """
    power = tuned_power(scores, labels)
    return float(np.clip(power, 0.0, 1.0)), 0.0 <= power <= 1.0


def enough_of_both(labels: ItemInts) -> bool:
    """Return whether at least 5 items are labelled valid and 5 invalid, as normal intervals need.

    With fewer, the estimated variance is near 0 by chance: with labels of one class it is 0.
    """
    return bool(min((np.asarray(labels) == 1).sum(), (np.asarray(labels) == 0).sum()) >= FEW)
