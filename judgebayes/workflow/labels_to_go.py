"""How wide the interval is now, and how many labels a target width needs, in sentences."""

import numpy as np

from judgebayes.majority import (
    ErrorCurve,
    FittedSplitCurve,
    label_forecast,
    odd_sizes,
)
from judgebayes.sentence import percent
from judgebayes.workflow.ensemble_estimates import Estimates

ASSURANCE = 0.9
"""The probability that the larger number of labels is enough."""
SIMULATIONS = 48


def labels_to_go(
    estimates: Estimates, fitted: FittedSplitCurve, target_width: float | None
) -> list[str]:
    """Return the width of the interval, and the labels that a target width needs.

    They are computed at the largest odd number of votes that half of the labelled items have. The
    default target is half the present width.
    """
    splits, request = estimates.panel.splits, estimates.request
    now = interval_now(estimates, fitted, request.level)
    size = int(now.size[0])
    width = float(now.high[0] - now.low[0])
    votes = "1 vote" if size == 1 else f"{size} votes"
    said = f"With {votes}, the {percent(request.level)} interval is {points(width)} wide"
    if width == 0:
        return [f"{said}: the label of every item is known."]
    goal = float(f"{width / 2:.1g}") if target_width is None else target_width
    if width <= goal:
        return [f"{said}, which meets the target of {points(goal)}."]
    forecast = label_forecast(
        fitted,
        splits,
        size,
        goal,
        measure=estimates.measure,
        level=request.level,
        simulations=SIMULATIONS,
        **estimates.asked,
    )
    typical, assured = forecast.needed(), forecast.needed(ASSURANCE)
    labels, items = int(splits.labelled.sum()), forecast.items
    these = "half as wide" if target_width is None else f"{points(goal)} wide"
    if typical is None:
        more = "" if estimates.these else " Add items, or use --target these."
        return [f"{said}; labels of all {items} items would typically not make it {these}.{more}"]
    typical = max(typical, labels + 1)
    words = f"{said}. To make it {these} takes about {typical} labels, {typical - labels} more"
    if assured is None:
        return [f"{words}; even labels of all {items} items do not assure it at 90 %."]
    assured = max(assured, typical)
    return [f"{words}; with {percent(ASSURANCE)} assurance {assured}, {assured - labels} more."]


def interval_now(estimates: Estimates, fitted: FittedSplitCurve, level: float) -> ErrorCurve:
    """Return the error with its interval at the largest odd number of votes that half of the items have.

    These are the labelled items; without labels, all.
    """
    splits = estimates.panel.splits
    total = splits.total[splits.labelled] if splits.labelled.any() else splits.total
    size = odd_sizes(max(int(np.median(total)), 1))[-1]
    curve = fitted.curve(splits, (size,), measure=estimates.measure, level=level, **estimates.asked)
    if not splits.labelled.any():
        return curve
    return estimates.no_narrower(curve, estimates.from_labels((size,), level))


def points(width: float) -> str:
    """Return a width in percentage points."""
    return f"{100 * width:.3g} points"
