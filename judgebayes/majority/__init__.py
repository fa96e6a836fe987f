"""The error of a majority vote of k judges, and the number of labels needed to estimate it (P3).

This package may not import `generators` or any package after it.
"""

from judgebayes.majority.assurance import label_forecast
from judgebayes.majority.counts import Counts, correct_counts, counts_of
from judgebayes.majority.curve import ErrorCurve, odd_sizes
from judgebayes.majority.design_effect import design_effect
from judgebayes.majority.distribution import (
    BetaBinomial,
    Binomial,
    FittedDistribution,
)
from judgebayes.majority.model_free import mean_loss
from judgebayes.majority.next_labels import next_labels
from judgebayes.majority.plurality import Decision, decision_probs
from judgebayes.majority.split_curve import FittedSplitCurve, Measure, SplitCurve, Target, losses
from judgebayes.majority.split_stopping import (
    is_check,
    labelling_order,
    next_check,
    stopping_level,
)
from judgebayes.majority.splits import Splits, splits_of
from judgebayes.majority.thinning import Thinning

__all__ = [
    "BetaBinomial",
    "Binomial",
    "Counts",
    "Decision",
    "ErrorCurve",
    "FittedDistribution",
    "FittedSplitCurve",
    "Measure",
    "SplitCurve",
    "Splits",
    "Target",
    "Thinning",
    "correct_counts",
    "counts_of",
    "decision_probs",
    "design_effect",
    "is_check",
    "label_forecast",
    "labelling_order",
    "losses",
    "mean_loss",
    "next_check",
    "next_labels",
    "odd_sizes",
    "splits_of",
    "stopping_level",
]
