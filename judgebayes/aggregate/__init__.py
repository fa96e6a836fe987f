"""Aggregators: votes in, class probabilities of every item out."""

from judgebayes.aggregate.base import Aggregator, FittedAggregator, FittedRule
from judgebayes.aggregate.base_rate import BaseRate
from judgebayes.aggregate.davidson import Davidson, FittedDavidson
from judgebayes.aggregate.hierarchical_davidson import (
    FittedHierarchicalDavidson,
    HierarchicalDavidson,
)
from judgebayes.aggregate.margin_threshold import MarginThreshold
from judgebayes.aggregate.per_task import PerTask
from judgebayes.aggregate.vote_rules import (
    ConfidenceVote,
    MajorityVote,
    RoundedMedian,
    SoftVote,
    Verdict,
)

__all__ = [
    "Aggregator",
    "BaseRate",
    "ConfidenceVote",
    "Davidson",
    "FittedAggregator",
    "FittedDavidson",
    "FittedHierarchicalDavidson",
    "FittedRule",
    "HierarchicalDavidson",
    "MajorityVote",
    "MarginThreshold",
    "PerTask",
    "RoundedMedian",
    "SoftVote",
    "Verdict",
]
