"""The error of a majority vote of k judges, and the number of labels needed to estimate it (P3).

This package may not import `generators` or any package after it.
"""

from judgebayes.majority.assurance import label_forecast, next_labels
from judgebayes.majority.counts import Counts, ErrorCurve, correct_counts, counts_of, odd_sizes
from judgebayes.majority.distribution import BetaBinomial, FittedDistribution
from judgebayes.majority.plurality import Decision, Splits, decision_probs, splits_of
from judgebayes.majority.split_curve import (
    FittedSplitCurve,
    MeanLoss,
    Measure,
    SplitCurve,
    is_check,
    labelling_order,
    losses,
    next_check,
    stopping_level,
)
from judgebayes.majority.thinning import Thinning, design_effect, mean_loss

__all__ = [
    "BetaBinomial",
    "Counts",
    "Decision",
    "ErrorCurve",
    "FittedDistribution",
    "FittedSplitCurve",
    "MeanLoss",
    "Measure",
    "SplitCurve",
    "Splits",
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
