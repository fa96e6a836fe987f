"""The error of a majority vote."""

from collections.abc import Mapping

from judgebayes.majority.counts import ErrorCurve
from judgebayes.plots.style import (
    MARKERS,
    Figure,
    colour,
    legend_below,
    without_frame,
)

MAX_TICKS = 15


def error_curves(curves: Mapping[str, ErrorCurve], *, title: str) -> Figure:
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
    ax.set_xlabel("votes (hollow: more than any item has)")
    ax.set_ylabel("error of the majority")
    ax.set_ylim(bottom=0)
    without_frame(ax)
    legend_below(figure, [ax])
    figure.suptitle(title, fontsize=11)
    return figure
