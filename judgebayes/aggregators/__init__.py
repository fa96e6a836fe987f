"""Aggregators: class probabilities of every item from its votes.

This package may not import `item_response` or any package after it.
"""

from judgebayes.aggregators.base import Aggregator, FittedAggregator, FittedRule, Reliability
from judgebayes.aggregators.davidson import (
    Davidson,
    FittedDavidson,
    FittedHierarchicalDavidson,
    HierarchicalDavidson,
)
from judgebayes.aggregators.dawid_skene import EM, DawidSkene, FittedDawidSkene
from judgebayes.aggregators.one_coin import FittedOneCoin, OneCoin
from judgebayes.aggregators.pool import FittedPool, Pool
from judgebayes.aggregators.shared_difficulty import (
    EmpiricalBayes,
    FittedSharedDifficulty,
    SharedDifficulty,
)
from judgebayes.aggregators.stacking import FittedStacking, Stacking
from judgebayes.aggregators.vote_rules import BaseRate, MajorityVote, MarginThreshold, Verdict
from judgebayes.aggregators.weighted import (
    AccuracyWeighted,
    FittedAccuracyWeighted,
    FittedLogOddsWeighted,
    LogOddsWeighted,
    VoteShare,
)
from judgebayes.aggregators.wrapped import (
    Calibrated,
    FittedCalibrated,
    FittedWithUndecided,
    WithUndecided,
)

__all__ = [
    "EM",
    "AccuracyWeighted",
    "Aggregator",
    "BaseRate",
    "Calibrated",
    "Davidson",
    "DawidSkene",
    "EmpiricalBayes",
    "FittedAccuracyWeighted",
    "FittedAggregator",
    "FittedCalibrated",
    "FittedDavidson",
    "FittedDawidSkene",
    "FittedHierarchicalDavidson",
    "FittedLogOddsWeighted",
    "FittedOneCoin",
    "FittedPool",
    "FittedRule",
    "FittedSharedDifficulty",
    "FittedStacking",
    "FittedWithUndecided",
    "HierarchicalDavidson",
    "LogOddsWeighted",
    "MajorityVote",
    "MarginThreshold",
    "OneCoin",
    "Pool",
    "Reliability",
    "SharedDifficulty",
    "Stacking",
    "Verdict",
    "VoteShare",
    "WithUndecided",
]
