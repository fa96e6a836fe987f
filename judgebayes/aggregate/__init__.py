"""Aggregators: votes in, class probabilities of every item out."""

from judgebayes.aggregate.base import Aggregator, FittedAggregator, FittedRule, Reliability
from judgebayes.aggregate.base_rate import BaseRate
from judgebayes.aggregate.davidson import Davidson, FittedDavidson
from judgebayes.aggregate.dawid_skene import EM, DawidSkene, FittedDawidSkene
from judgebayes.aggregate.hierarchical_davidson import (
    FittedHierarchicalDavidson,
    HierarchicalDavidson,
)
from judgebayes.aggregate.margin_threshold import MarginThreshold
from judgebayes.aggregate.one_coin import FittedOneCoin, OneCoin
from judgebayes.aggregate.per_task import PerTask
from judgebayes.aggregate.stacking import FittedStacking, Stacking
from judgebayes.aggregate.vote_rules import (
    ConfidenceVote,
    MajorityVote,
    RoundedMedian,
    SoftVote,
    Verdict,
)
from judgebayes.aggregate.weighted import (
    AccuracyWeighted,
    FittedAccuracyWeighted,
    FittedLogOddsWeighted,
    LogOddsWeighted,
    VoteShare,
)

__all__ = [
    "EM",
    "AccuracyWeighted",
    "Aggregator",
    "BaseRate",
    "ConfidenceVote",
    "Davidson",
    "DawidSkene",
    "FittedAccuracyWeighted",
    "FittedAggregator",
    "FittedDavidson",
    "FittedDawidSkene",
    "FittedHierarchicalDavidson",
    "FittedLogOddsWeighted",
    "FittedOneCoin",
    "FittedRule",
    "FittedStacking",
    "HierarchicalDavidson",
    "LogOddsWeighted",
    "MajorityVote",
    "MarginThreshold",
    "OneCoin",
    "PerTask",
    "Reliability",
    "RoundedMedian",
    "SoftVote",
    "Stacking",
    "Verdict",
    "VoteShare",
]
