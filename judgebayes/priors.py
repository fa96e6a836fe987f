"""The priors of the models, under the names of the methods that use them.

They are immutable and have defaults: `Davidson(MAP(), prior=priors.Davidson(beta=(1, 0.5)))`.
A method whose inference ignores the prior raises an error for any but the default.
"""

from judgebayes.generators.labelling import StratumPrior as Stratified
from judgebayes.generators.panel import PanelPrior as Panel
from judgebayes.models.beta_binomial import BetaBinomialPrior as BetaBinomial
from judgebayes.models.calibration_maps import CalibrationMapPrior as BayesianMap
from judgebayes.models.davidson import DavidsonPrior as Davidson
from judgebayes.models.dawid_skene import DawidSkenePrior as DawidSkene
from judgebayes.models.hierarchical_davidson import HierarchicalPrior as HierarchicalDavidson
from judgebayes.models.irt import ItemResponsePrior as ItemResponse
from judgebayes.models.item_validator import ItemPrior as ItemLevel
from judgebayes.models.one_coin import OneCoinPrior as OneCoin
from judgebayes.models.opinion_pool import OpinionPoolPrior as Pool
from judgebayes.models.pooled_dawid_skene import PooledPrior as PooledDawidSkene
from judgebayes.models.shared_difficulty import SharedDifficultyPrior as SharedDifficulty
from judgebayes.models.split_curve import SplitCurvePrior as SplitCurve
from judgebayes.models.stacking import StackingPrior as Stacking

__all__ = [
    "BayesianMap",
    "BetaBinomial",
    "Davidson",
    "DawidSkene",
    "HierarchicalDavidson",
    "ItemLevel",
    "ItemResponse",
    "OneCoin",
    "Panel",
    "Pool",
    "PooledDawidSkene",
    "SharedDifficulty",
    "SplitCurve",
    "Stacking",
    "Stratified",
]
