"""The effect of sending items to a person: the risk of the remaining decisions."""

import pandas as pd

from judgebayes.plots.risk import risk_by_share
from judgebayes.report.figures import inline_svg, names_as_they_are
from judgebayes.report.page import Drawing
from judgebayes.sentence import percent

DESCRIBED_SHARES = (0.25, 0.5, 0.75, 1.0)
"""Shares whose risk is in the text description of the curve."""


def risk_drawing(curve: pd.DataFrame, cost: float | None) -> Drawing:
    """Return the curve of risk and coverage (`workflow.abstaining.risk_curve`) with its caption."""
    descriptions = []
    for share in DESCRIBED_SHARES:
        row = curve[curve["decided"] >= share - 1e-9].iloc[0]
        descriptions.append(f"{percent(row['decided'])} decided, mean loss {row['risk']:.3f}")
    with names_as_they_are():
        svg = inline_svg(
            risk_by_share(curve, cost=cost, title=""),
            "risk-by-share",
            "Mean loss of the most certain decisions on held-out labels by the share of items decided",
            "; ".join(descriptions) + ".",
        )
    note = (
        "--abstain-cost C sends items whose expected loss is above C to a person."
        if cost is None
        else f"The point is --abstain-cost {cost:g}: the items to its right go to a person."
    )
    return Drawing(
        svg, f"Mean loss on held-out labels if only the most certain decisions are used. {note}"
    )
