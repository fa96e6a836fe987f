"""Generator precision: the share of a generator's items that are valid, from biased judges (P4).

This package may not import `priors` or any package after it.
"""

from judgebayes.generators.counts import PrecisionCounts, count_votes, expected_counts
from judgebayes.generators.item_posterior import MoreItems, for_more_items
from judgebayes.generators.labelling import Labelling, stratify, valid_share
from judgebayes.generators.own_labels import (
    SharePosterior,
    YoudenIndex,
    expected_validity,
    judge_youden,
    mean_prediction,
    panel_youden,
    rogan_gladen,
    shares,
)
from judgebayes.generators.panel import Panel

__all__ = [
    "Labelling",
    "MoreItems",
    "Panel",
    "PrecisionCounts",
    "SharePosterior",
    "YoudenIndex",
    "count_votes",
    "expected_counts",
    "expected_validity",
    "for_more_items",
    "judge_youden",
    "mean_prediction",
    "panel_youden",
    "rogan_gladen",
    "shares",
    "stratify",
    "valid_share",
]
