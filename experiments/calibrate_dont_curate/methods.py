"""Aggregators and calibrators by their names in tables."""

from judgebayes import (
    Beta,
    DawidSkene,
    Identity,
    Isotonic,
    OneCoin,
    Platt,
    Stacking,
    Temperature,
    VoteShare,
)
from judgebayes.experiments.calibrate_dont_curate.common import FLOOR
from judgebayes.experiments.calibrate_dont_curate.curators import OnePerFamily, families_of
from judgebayes.experiments.calibrate_dont_curate.weighted import AccuracyWeighted, LogOddsWeighted
from judgebayes.experiments.panels import Panel
from judgebayes.inference.fit import Method
from judgebayes.panel.judges import Curated, top_k


def aggregator(name: str, panel: Panel) -> Method:
    """Return an aggregator by its name in tables.

    `top-5` is the one-coin model of the five judges most accurate on the labels, `one-per-family`
    that of the most accurate judge of each family.
    """
    if name.startswith("top-"):
        return top_k(OneCoin(), int(name.removeprefix("top-")))
    plain: dict[str, Method] = {
        "majority": VoteShare(),
        "accuracy-weighted": AccuracyWeighted(),
        "log-odds": LogOddsWeighted(),
        "one-coin": OneCoin(),
        "dawid-skene": DawidSkene(),
        "stacking": Stacking(),
        "one-per-family": Curated(OneCoin(), OnePerFamily(family_numbers(panel))),
    }
    return plain[name]


def family_numbers(panel: Panel) -> tuple[int, ...]:
    """Return the index of each judge's family."""
    return families_of(panel.judges, dict(zip(panel.judges, panel.families, strict=True)))


def calibrator(name: str) -> Method:
    """Return a calibrator by its name in tables."""
    plain: dict[str, Method] = {
        "none": Identity(),
        "temperature": Temperature(clip=FLOOR),
        "platt": Platt(clip=FLOOR),
        "isotonic": Isotonic(),
        "beta": Beta(clip=FLOOR),
        "beta, no penalty": Beta(penalty=None, clip=FLOOR),
        "beta, L2": Beta(l1_share=0.0, clip=FLOOR),
    }
    return plain[name]
