"""How wrong a majority vote of k judges is, and how many labels it takes to know (P3)."""

from judgebayes.ensemble.counts import Counts, correct_counts, counts_of
from judgebayes.ensemble.curve import ErrorCurve, odd_sizes
from judgebayes.ensemble.distribution import (
    BetaBinomial,
    Binomial,
    Distribution,
    FittedDistribution,
)
from judgebayes.ensemble.em import PaperEM
from judgebayes.ensemble.thinning import FittedThinning, Thinning, labels_needed, thin

__all__ = [
    "BetaBinomial",
    "Binomial",
    "Counts",
    "Distribution",
    "ErrorCurve",
    "FittedDistribution",
    "FittedThinning",
    "PaperEM",
    "Thinning",
    "correct_counts",
    "counts_of",
    "labels_needed",
    "odd_sizes",
    "thin",
]
