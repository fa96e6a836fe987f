"""The error of a majority vote of k judges, and the number of labels needed to estimate it (P3).

This package may not import `generators` or any package after it.
"""

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
from judgebayes.majority.pooling import (
    REACH,
    FittedPool,
    PooledBetaBinomial,
    limited,
    share_of_pool,
)
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
from judgebayes.majority.thinning import FittedThinning, Thinning, labels_needed, thin
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
    "Distribution",
    "ErrorCurve",
    "FittedDistribution",
    "FittedPool",
    "FittedThinning",
    "PaperEM",
    "PooledBetaBinomial",
    "QuantileRule",
    "Rule",
    "Session",
    "Sources",
    "Thinning",
    "TransferWeights",
    "VarianceRule",
    "WidthRule",
    "beta_conform",
    "correct_counts",
    "counts_of",
    "design_effect",
    "in_population",
    "labels_needed",
    "limited",
    "mean_embeddings",
    "minimum_labels",
    "odd_sizes",
    "replay",
    "sentence_embeddings",
    "share_of_pool",
    "swapped_components",
    "tfidf_embeddings",
    "thin",
    "transfer",
]
