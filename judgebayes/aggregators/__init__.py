"""Aggregators: class probabilities of every item from its votes.

This package may not import `item_response` or any package after it.
"""

from judgebayes.aggregators.davidson import (
    Davidson,
    HierarchicalDavidson,
)
from judgebayes.aggregators.dawid_skene import DawidSkene
from judgebayes.aggregators.one_coin import OneCoin
from judgebayes.aggregators.pool import Pool
from judgebayes.aggregators.shared_difficulty import SharedDifficulty
from judgebayes.aggregators.stacking import Stacking
from judgebayes.aggregators.vote_rules import BaseRate, MajorityVote, MarginThreshold, VoteShare
from judgebayes.aggregators.wrapped import Calibrated, WithUndecided
from judgebayes.inference.fit import Fit, Fitted, Method, ModelMethod

__all__ = [
    "BaseRate",
    "Calibrated",
    "Davidson",
    "DawidSkene",
    "Fit",
    "Fitted",
    "HierarchicalDavidson",
    "MajorityVote",
    "MarginThreshold",
    "Method",
    "ModelMethod",
    "OneCoin",
    "Pool",
    "SharedDifficulty",
    "Stacking",
    "VoteShare",
    "WithUndecided",
]
