"""Generator precision: the share of a generator's items that are valid, from biased judges (P4).

This package may not import `priors` or any package after it.
"""

from judgebayes.generators.baselines import (
    logit_shift,
    mean_prediction,
    rogan_gladen,
)
from judgebayes.generators.counts import (
    PrecisionCounts,
    Rates,
    count_votes,
    counts_from_matrix,
    expected_counts,
)
from judgebayes.generators.impression import FittedImpression, Impression, ImpressionPrior
from judgebayes.generators.items import ItemLevel
from judgebayes.generators.labelling import (
    FittedStratified,
    Labelling,
    Strata,
    Stratified,
    StratumCounts,
    count_strata,
    stratify,
    valid_share,
)
from judgebayes.generators.more_items import MoreItems, for_more_items
from judgebayes.generators.own_labels import FittedShares, item_scores, shares
from judgebayes.generators.panel import FittedPanel, Panel, PanelPrior
from judgebayes.generators.regression import Regression, Targets, as_published, starts, targets
from judgebayes.generators.uncertain import expected_validity
from judgebayes.generators.voting import (
    Choice,
    choose_threshold,
    ensemble_precision,
    ensembles,
)
from judgebayes.generators.youden import YoudenIndex, judge_youden, panel_youden

__all__ = [
    "Choice",
    "FittedImpression",
    "FittedPanel",
    "FittedShares",
    "FittedStratified",
    "Impression",
    "ImpressionPrior",
    "ItemLevel",
    "Labelling",
    "MoreItems",
    "Panel",
    "PanelPrior",
    "PrecisionCounts",
    "Rates",
    "Regression",
    "Strata",
    "Stratified",
    "StratumCounts",
    "Targets",
    "YoudenIndex",
    "as_published",
    "choose_threshold",
    "count_strata",
    "count_votes",
    "counts_from_matrix",
    "ensemble_precision",
    "ensembles",
    "expected_counts",
    "expected_validity",
    "for_more_items",
    "item_scores",
    "judge_youden",
    "logit_shift",
    "mean_prediction",
    "panel_youden",
    "rogan_gladen",
    "shares",
    "starts",
    "stratify",
    "targets",
    "valid_share",
]
