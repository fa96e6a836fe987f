"""The error of a majority vote of k judges, and the number of labels needed to estimate it (P3).

This package may not import `generators` or any package after it.
"""

from judgebayes.majority.assurance import LabelForecast, label_forecast
from judgebayes.majority.counts import Counts, correct_counts, counts_of
from judgebayes.majority.curve import ErrorCurve, odd_sizes
from judgebayes.majority.design_effect import design_effect
from judgebayes.majority.distribution import (
    BetaBinomial,
    Binomial,
    Distribution,
    FittedDistribution,
    in_population,
)
from judgebayes.majority.em import PaperEM
from judgebayes.majority.model_free import mean_loss
from judgebayes.majority.next_labels import next_labels
from judgebayes.majority.plurality import Decision, decision_probs, wrong_majority
from judgebayes.majority.pooling import (
    REACH,
    FittedPool,
    PooledBetaBinomial,
    limited,
    share_of_pool,
)
from judgebayes.majority.split_curve import FittedSplitCurve, Measure, SplitCurve, Target, losses
from judgebayes.majority.split_stopping import (
    is_check,
    labelling_order,
    next_check,
    stopping_level,
)
from judgebayes.majority.splits import Splits, splits_of
from judgebayes.majority.stopping import (
    Advice,
    QuantileRule,
    Rule,
    Session,
    VarianceRule,
    WidthRule,
    minimum_labels,
    replay,
)
from judgebayes.majority.text import mean_embeddings, sentence_embeddings, tfidf_embeddings
from judgebayes.majority.thinning import FittedThinning, Thinning, thin
from judgebayes.majority.transfer import (
    Sources,
    TransferWeights,
    beta_conform,
    swapped_components,
    transfer,
)

__all__ = [
    "REACH",
    "Advice",
    "BetaBinomial",
    "Binomial",
    "Counts",
    "Decision",
    "Distribution",
    "ErrorCurve",
    "FittedDistribution",
    "FittedPool",
    "FittedSplitCurve",
    "FittedThinning",
    "LabelForecast",
    "Measure",
    "PaperEM",
    "PooledBetaBinomial",
    "QuantileRule",
    "Rule",
    "Session",
    "Sources",
    "SplitCurve",
    "Splits",
    "Target",
    "Thinning",
    "TransferWeights",
    "VarianceRule",
    "WidthRule",
    "beta_conform",
    "correct_counts",
    "counts_of",
    "decision_probs",
    "design_effect",
    "in_population",
    "is_check",
    "label_forecast",
    "labelling_order",
    "limited",
    "losses",
    "mean_embeddings",
    "mean_loss",
    "minimum_labels",
    "next_check",
    "next_labels",
    "odd_sizes",
    "replay",
    "sentence_embeddings",
    "share_of_pool",
    "splits_of",
    "stopping_level",
    "swapped_components",
    "tfidf_embeddings",
    "thin",
    "transfer",
    "wrong_majority",
]
