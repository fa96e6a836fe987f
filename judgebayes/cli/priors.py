"""The priors of `judgebayes posterior` by name: their help, and the numbers that are typed.

Without the models, which take a second to import: a test compares this table with their classes.
"""

import math
from collections.abc import Sequence

from judgebayes.errors import JudgeBayesError

__all__ = ["HELP", "PRIORS", "Numbers", "read_priors", "usual_priors"]

Numbers = float | tuple[float, ...]

PRIORS = {
    "davidson": "Normal beta=1.5,1.5 eta0=1,3 gamma=1,1.5 delta=0,1.5",
    "stacking": "Normal log_tau=-1.204,1; scale level=3 offset=1.5; weight kappa=1",
    "dawid-skene": "weight right=1 wrong=0.5 classes=1",
    "one-coin": "Beta accuracy=1,1",
    "irt": "Normal difficulty=0,2 log_discrimination=0,0.5",
    "beta-binomial": "Normal logit_mean=1,1.5 log_dispersion=-1,1.25; Beta share=2,2",
    "generator-validator": "Normal lenience=2,1.5 discernment=1.5,1 quality=1.5,1.5 follow=0.5,0.5 "
    "log_tau=0,0.7 log_sigma_invalid=-1.204,0.5 log_sigma_valid=-1.204,0.5; "
    "scale judge_spread=0.7 quality_spread=1.5",
}
"""The names and defaults of every model's prior, each kind of prior before its names."""
KINDS: dict[str, tuple[str, tuple[float, ...]]] = {
    "Normal": ("a location and a scale above 0", (-math.inf, 0.0)),
    "Beta": ("two numbers above 0", (0.0, 0.0)),
    "scale": ("a number above 0", (0.0,)),
    "weight": ("a number from 0", (-math.ulp(0.0),)),
}
"""What the numbers of a prior are, and what each must be above."""
_LISTED = "\n\n".join(f"{model}: {priors}" for model, priors in PRIORS.items())
HELP = (
    "A prior other than the default, `beta=0.1,0.5` say; again for every further name. A Normal prior "
    f"has a location and a scale, a Beta prior a and b. The defaults of each model:\n\n{_LISTED}"
)


def usual_priors(model: str) -> dict[str, tuple[str, tuple[float, ...]]]:
    """Return the kind and the default numbers of a model's priors by name."""
    priors = {}
    for part in PRIORS[model].split("; "):
        kind, *words = part.split()
        for name, _, numbers in (word.partition("=") for word in words):
            priors[name] = kind, tuple(map(float, numbers.split(",")))
    return priors


def read_priors(model: str, given: Sequence[str]) -> dict[str, Numbers]:
    """Return the numbers of the priors that were given, by name.

    Raises
    ------
    JudgeBayesError
        If a name is none of the model's or is given twice, or its numbers are not as many as they
        should be, are not finite, or are too small.
    """
    usual, priors = usual_priors(model), dict[str, Numbers]()
    for word in given:
        name, _, numbers = word.partition("=")
        if name not in usual:
            raise JudgeBayesError(
                f"--prior {name!r} is no prior of {model}; right would be {', '.join(usual)}."
            )
        if name in priors:
            raise JudgeBayesError(f"--prior {name} is given twice; right would be once.")
        kind, default = usual[name]
        words, above = KINDS[kind]
        try:
            values = tuple(map(float, numbers.split(",")))
        except ValueError:
            values = ()
        fit = len(values) == len(above) and all(map(math.isfinite, values))
        if not fit or any(x <= low for x, low in zip(values, above, strict=True)):
            example = ",".join(f"{x:g}" for x in default)
            raise JudgeBayesError(
                f"--prior {word!r} should give {words}; right would be {name}={example}, for one."
            )
        priors[name] = values if len(values) > 1 else values[0]
    return priors
