"""What Figs 6 and 7 and Table 3 share: how many labels each stopping rule takes."""

from typing import Any

import numpy as np
from jaxtyping import Int

from judgebayes.experiments.betaconform.common import PAPER, Judged, orders
from judgebayes.experiments.core import Run
from judgebayes.majority import QuantileRule, Rule, VarianceRule, WidthRule, replay
from judgebayes.measures.significance import Interval, normal_interval

__all__ = ["CAP", "printed_rules", "row", "stops"]

CAP = 400
"""No more items than this are labelled in a replay."""


def stops(run: Run, judged: Judged, rule: Rule) -> Int[np.ndarray, " split"]:
    """Return after how many labels a rule stops on a data set, in every run."""
    own = orders(run, judged)[:, : min(CAP, len(judged.correct))]
    return run.keep(
        (PAPER, "stops", judged.name, rule),
        (judged.correct, judged.votes, own),
        lambda: {"labels": np.asarray(replay(rule, judged.correct, judged.votes, own))},
    )["labels"]


def printed_rules(xi: float, judged: Judged) -> dict[str, Rule]:
    """Return the paper's rule as printed, without a minimum, under each choice it leaves open."""
    mean = float(judged.correct.mean())
    found: dict[str, Rule] = {}
    for epsilon in (0.05, 0.1, 0.2):
        for unreachable in ("largest", "wait"):
            for name, expected in (("running mean", None), ("true mean", mean)):
                key = f"as printed, eps {epsilon:g}, {unreachable}, {name}"
                found[key] = QuantileRule(xi, epsilon, expected, unreachable, minimum=False)
    return found


def other_rules(xi: float) -> dict[str, Rule]:
    """Return the rule with its minimum, both readings of eq 16, and the width of the answer."""
    return {
        "with eq 11's minimum": QuantileRule(xi),
        "variance (eq 16)": VarianceRule(xi),
        "variance (eq 16), as a deviation": VarianceRule(xi, deviation=True),
        "width 0.2 of the error": WidthRule(0.2),
    }


def row(
    judged: Judged, xi: float, method: str, values: Int[np.ndarray, " split"], **more: Any
) -> dict[str, Any]:
    """Return a result row of label counts; n is xi."""
    found: Interval = normal_interval(values)
    return {
        **judged.columns(),
        "n": xi,
        "method": method,
        "metric": "labels",
        "value": found.mean,
        "low": found.low,
        "high": found.high,
        "splits": len(values),
        "grade": "",
    } | more
