"""The options of `judgebayes posterior`; its priors: names, defaults, help, and parsing.

The table repeats the models' defaults, because importing the models takes a second; a test compares
them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from judgebayes.errors import JudgeBayesError
from judgebayes.workflow.options import AllowDegenerate, GeneratorColumn, Html, Option, ReadRequest

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
"""The priors of each model: the kind of prior, then names with defaults."""
KINDS: dict[str, tuple[str, tuple[float, ...]]] = {
    "Normal": ("a location and a scale above 0", (-math.inf, 0.0)),
    "Beta": ("two numbers above 0", (0.0, 0.0)),
    "scale": ("a number above 0", (0.0,)),
    "weight": ("a number of 0 or more", (-math.ulp(0.0),)),
}
"""For each kind: the numbers it takes, in words, and the exclusive lower bound of each."""
_DEFAULTS = "\n\n".join(f"{model}: {priors}" for model, priors in PRIORS.items())
HELP = (
    "A prior to use instead of the default, for example `beta=0.1,0.5`; repeat the option for further "
    "priors. A Normal prior has a location and a scale, a Beta prior has a and b. The defaults of each "
    f"model:\n\n{_DEFAULTS}"
)


def usual_priors(model: str) -> dict[str, tuple[str, tuple[float, ...]]]:
    """Return the kind and the default numbers of each of a model's priors."""
    priors = {}
    for part in PRIORS[model].split("; "):
        kind, *words = part.split()
        for name, _, numbers in (word.partition("=") for word in words):
            priors[name] = kind, tuple(map(float, numbers.split(",")))
    return priors


def read_priors(model: str, given: Sequence[str]) -> dict[str, Numbers]:
    """Return the numbers of each prior set on the command line, by name.

    Raises
    ------
    JudgeBayesError
        If a name is unknown to the model or is set twice, or its numbers are too few, too many, not
        finite, or too small.
    """
    usual, priors = usual_priors(model), dict[str, Numbers]()
    for word in given:
        name, _, numbers = word.partition("=")
        if name not in usual:
            raise JudgeBayesError(
                f"--prior {name!r} is not a prior of {model}; choose one of: {', '.join(usual)}."
            )
        if name in priors:
            raise JudgeBayesError(f"--prior {name} is set twice; set it once.")
        kind, default = usual[name]
        words, above = KINDS[kind]
        try:
            values = tuple(map(float, numbers.split(",")))
        except ValueError:
            values = ()
        valid = len(values) == len(above) and all(map(math.isfinite, values))
        if not valid or any(x <= low for x, low in zip(values, above, strict=True)):
            example = ",".join(f"{x:g}" for x in default)
            raise JudgeBayesError(f"--prior {word!r} needs {words}, for example {name}={example}.")
        priors[name] = values if len(values) > 1 else values[0]
    return priors


@dataclass(frozen=True, kw_only=True)
class PosteriorRequest(ReadRequest):
    """Sample a model's posterior, check its fit to the data, and save it for ArviZ."""

    model: Annotated[
        str,
        "The model: davidson or stacking (labels given votes), dawid-skene or one-coin (votes "
        "given labels), irt (which votes are correct), beta-binomial (how many are correct), "
        "generator-validator (what share of each generator's items is valid).",
    ] = "davidson"
    variant: Annotated[
        str | None,
        "For beta-binomial: mixture or single. For generator-validator: leaning (correlated "
        "errors of the judges) or independent. For stacking: centred or uncentred. The first is the "
        "default.",
    ] = None
    prior: Annotated[list[str] | None, Option(HELP, metavar="NAME=NUMBERS")] = None
    out: Annotated[
        Path | None,
        Option(
            "Where to write the posterior; a name in .nc exports netCDF.",
            ("--out", "-o"),
            writes="file",
        ),
    ] = Path("posterior.npz")
    draws: Annotated[int, Option("Draws per chain.", least=20)] = 1000
    warmup: Annotated[int, Option("Warm-up steps per chain.", least=20)] = 1000
    chains: Annotated[int, Option("Number of chains, at least two, to compare them.", least=2)] = 4
    target_accept: Annotated[
        float,
        "Target acceptance probability; higher means smaller steps and fewer divergences.",
    ] = 0.9
    summary: Annotated[
        Path | None,
        Option("Where to write the summary of all parameters: .csv, .parquet.", writes="table"),
    ] = None
    plot: Annotated[
        Path | None,
        Option(
            "Where to draw the posterior's intervals, by ArviZ: .png, .pdf or .svg.", writes="file"
        ),
    ] = None
    html: Html = None
    overwrite: Annotated[bool, "Replace existing files."] = False
    task: None = None
    group: None = None
    generator: GeneratorColumn = None
    seed: Annotated[int, "Seed of the draws."] = 0
    allow_degenerate: AllowDegenerate = False


@dataclass(frozen=True, kw_only=True)
class CompareRequest:
    """Compare how well posteriors predict each item from all the others (PSIS-LOO)."""

    files: Annotated[
        list[Path],
        Option(
            "Two or more files that `judgebayes posterior` wrote.",
            positional=True,
            metavar="FILE",
        ),
    ]
    site: Annotated[
        str | None,
        "The observed site to compare: label, votes or correct; by default all that the files share.",
    ] = None
    html: Html = None
