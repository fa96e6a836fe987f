"""The generative models with a user's data: sampling, predictive checks and comparison.

This package may not import `collect` or any package after it.
"""

from judgebayes.posterior.checks import Check, check, in_words
from judgebayes.posterior.compare import Compared, compare, one_left_out
from judgebayes.posterior.models import MODELS, build, variant_of
from judgebayes.posterior.sample import sample
from judgebayes.posterior.story import ModelSpec
from judgebayes.votes.data import Data

__all__ = [
    "MODELS",
    "Check",
    "Compared",
    "Data",
    "ModelSpec",
    "build",
    "check",
    "compare",
    "in_words",
    "one_left_out",
    "sample",
    "variant_of",
]
