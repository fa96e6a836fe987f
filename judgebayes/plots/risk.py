"""The mean loss of decisions against their share."""

import numpy as np
import pandas as pd

from judgebayes.plots.style import PALETTE, Figure, grid_of_panels, without_frame


def risk_by_share(curve: pd.DataFrame, *, cost: float | None = None, title: str) -> Figure:
    """Plot the mean loss of the most certain decisions (`risk`) against their share (`decided`).

    A point marks the decisions whose expected loss is at most the `cost` of asking a person.
    """
    figure, (ax,) = grid_of_panels(1, 4.4, 3.2, 1)
    ax.plot(curve["decided"], curve["risk"], color=PALETTE[0], linewidth=1.4)
    below_cost = curve[curve["cost"] <= (-np.inf if cost is None else cost)]
    if len(below_cost):
        last = below_cost.iloc[-1]
        ax.plot(last["decided"], last["risk"], "o", color=PALETTE[0], markersize=6)
    ax.set_xlim(0, 1.02)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("share of items decided, most certain first")
    ax.set_ylabel("mean loss of these decisions")
    without_frame(ax)
    figure.suptitle(title, fontsize=11)
    return figure
