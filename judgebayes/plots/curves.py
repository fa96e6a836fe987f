"""Reliability diagrams.

The error of a majority vote.
"""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes

from judgebayes.majority.counts import ErrorCurve
from judgebayes.measures.reliability import Reliability
from judgebayes.plots.style import (
    MARKERS,
    Figure,
    colour,
    legend_below,
    line_style,
    without_frame,
)

MAX_TICKS = 15


def error_curves(
    curves: Mapping[str, ErrorCurve],
    *,
    xlabel: str = "votes (hollow: more than any item has)",
    ylabel: str = "error of the majority",
) -> Figure:
    """Plot a majority vote's error against the number of votes, with bands; a line per method.

    Extrapolated points are drawn hollow.
    """
    figure = Figure(figsize=(6.2, 4.2), layout="constrained")
    ax = figure.subplots()
    for index, (name, curve) in enumerate(curves.items()):
        shade, marker = colour(name, index), MARKERS[index % len(MARKERS)]
        ax.plot(curve.size, curve.error, color=shade, linewidth=1.4, label=name)
        for hollow in (False, True):
            points = curve.extrapolated == hollow
            fill = "white" if hollow else shade
            ax.plot(
                curve.size[points], curve.error[points], marker, color=shade, mfc=fill, markersize=5
            )
        ax.fill_between(curve.size, curve.low, curve.high, color=shade, alpha=0.15, linewidth=0)
        if len(curve.size) == 1:
            ax.vlines(curve.size, curve.low, curve.high, color=shade, linewidth=1.2)
    sizes = next(iter(curves.values())).size
    ax.set_xticks(sizes[:: -(-len(sizes) // MAX_TICKS)])
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    ax.set_ylim(bottom=0)
    without_frame(ax)
    legend_below(figure, [ax])
    return figure


def reliability_diagram(bins: Reliability, method: str) -> Figure:
    """Plot observed frequency against predicted probability."""
    figure = Figure(figsize=(3.1, 3.05), layout="constrained")
    ax = figure.subplots()
    draw_reliability(ax, {method: bins})
    ax.set_xlabel("predicted probability")
    ax.set_ylabel("observed frequency")
    return figure


def draw_reliability(ax: Axes, methods: Mapping[str, Reliability]) -> None:
    """Draw a line per method.

    The area of a point is its bin's share of the items; empty bins are not drawn.
    """
    ax.plot([0, 1], [0, 1], color="black", linewidth=0.8, linestyle=":")
    for index, (method, bins) in enumerate(methods.items()):
        mass, predicted, observed = (np.asarray(part) for part in bins)
        nonempty = mass > 0
        style = line_style(method, index)
        ax.plot(predicted[nonempty], observed[nonempty], color=style["color"], linewidth=1.0)
        ax.scatter(
            predicted[nonempty],
            observed[nonempty],
            s=6 + 250 * mass[nonempty] / mass.sum(),
            alpha=0.75,
            linewidths=0,
            label=method,
            **style,
        )
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(-0.02, 1.02)
    ax.set_aspect("equal")
    without_frame(ax)
