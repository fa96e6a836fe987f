"""Shared code of Figs 6 and 7 and Table 3: the number of labels that each stopping rule takes."""

from typing import Any

import numpy as np
from jaxtyping import Int

from judgebayes.experiments.betaconform.common import PAPER, DataSet, orders
from judgebayes.experiments.betaconform.stopping_rules import (
    QuantileRule,
    Rule,
    VarianceRule,
    WidthRule,
    replay,
)
from judgebayes.experiments.core import Run
from judgebayes.experiments.significance import normal_interval
from judgebayes.majority import MeanLoss, SplitCurve, Splits, next_check, stopping_level
from judgebayes.measures.significance import Interval

CAP = 400
"""The largest number of items labelled in a replay."""
SPLIT_RUNS = 4
"""Runs of the split curve, which is fitted anew at each check."""


def stops(run: Run, data_set: DataSet, rule: Rule) -> Int[np.ndarray, " split"]:
    """Return the number of labels after which a rule stops on a data set, for every run."""
    own = orders(run, data_set)[:, : min(CAP, len(data_set.correct))]
    return run.keep(
        (PAPER, "stops", data_set.name, rule),
        (data_set.correct, data_set.votes, own),
        lambda: {"labels": np.asarray(replay(rule, data_set.correct, data_set.votes, own))},
    )["labels"]


def split_curve_stops(run: Run, data_set: DataSet, width: float) -> Int[np.ndarray, " split"]:
    """Return the number of labels after which the split curve's interval is narrow, for a few runs.

    The rule of `judgebayes ensemble --target-width`: a stricter interval of the error of all votes on
    these items, at few numbers of labels.
    """
    right = data_set.correct
    given, size = np.stack([right, data_set.votes - right], axis=1), max(data_set.sizes)
    level, most = stopping_level(0.9), min(CAP, len(right))
    needed = []
    for order in orders(run, data_set)[: 1 if run.smoke else SPLIT_RUNS]:
        count = next_check(0)
        while count < most:
            labels = np.full(len(right), -1)
            labels[order[:count]] = 0
            splits = Splits(given, labels, (0, 1))
            fit = SplitCurve(by_class=False).fit(splits)
            curve = fit.curve(splits, (size,), MeanLoss("these", level=level), seed=count)
            if curve.high[0] - curve.low[0] <= width:
                break
            count = next_check(count)
        needed.append(min(count, most))
    return np.array(needed)


def printed_rules(xi: float, data_set: DataSet) -> dict[str, Rule]:
    """Return the paper's rule as printed, without a minimum, for each choice that it leaves open."""
    mean = float(data_set.correct.mean())
    rules: dict[str, Rule] = {}
    for epsilon in (0.05, 0.1, 0.2):
        for unreachable in ("largest", "wait"):
            for name, expected in (("running mean", None), ("true mean", mean)):
                key = f"as printed, eps {epsilon:g}, {unreachable}, {name}"
                rules[key] = QuantileRule(xi, epsilon, expected, unreachable, minimum=False)
    return rules


def other_rules(xi: float) -> dict[str, Rule]:
    """Return the rule with its minimum, both readings of eq 16, and the width of the answer."""
    return {
        "with eq 11's minimum": QuantileRule(xi),
        "variance (eq 16)": VarianceRule(xi),
        "variance (eq 16), as a deviation": VarianceRule(xi, deviation=True),
        "width 0.2 of the error": WidthRule(0.2),
    }


def row(
    data_set: DataSet, xi: float, method: str, values: Int[np.ndarray, " split"], **more: Any
) -> dict[str, Any]:
    """Return a result row of label counts; its `n` is xi."""
    interval: Interval = normal_interval(values)
    return {
        **data_set.columns(),
        "n": xi,
        "method": method,
        "metric": "labels",
        "value": interval.mean,
        "low": interval.low,
        "high": interval.high,
        "splits": len(values),
    } | more
