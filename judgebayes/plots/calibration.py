"""Calibration figures: reliability, accuracy against coverage, coverage of intervals."""

import textwrap
from collections.abc import Mapping

import numpy as np
import pandas as pd

from judgebayes.measures.selective import AccuracyCurve, Reliability
from judgebayes.plots.style import (
    MARKERS,
    PALETTE,
    Figure,
    grid_of_panels,
    legend_below,
    line_style,
    without_frame,
)

__all__ = ["accuracy_coverage", "coverage_panels", "reliability_diagrams"]


def reliability_diagrams(
    panels: Mapping[str, Mapping[str, Reliability]],
    *,
    xlabel: str = "predicted probability",
    ylabel: str = "observed frequency",
    title: str,
    columns: int = 4,
) -> Figure:
    """Plot observed frequency against predicted probability: a panel per group, a line per method.

    The area of a point is its bin's share of the items; empty bins are not drawn.
    """
    figure, axes = grid_of_panels(len(panels), 3.5, 3.6, columns)
    for ax, (name, methods) in zip(axes, panels.items(), strict=True):
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
        ax.set_title(name, fontsize=10)
        ax.set_xlabel(xlabel)
        ax.set_ylabel(ylabel)
        without_frame(ax)
    legend_below(figure, axes, size=40)
    figure.suptitle(title, fontsize=11)
    return figure


def accuracy_coverage(
    panels: Mapping[str, Mapping[str, AccuracyCurve]],
    *,
    title: str,
    columns: int = 4,
) -> Figure:
    """Plot the accuracy on the most confident items against their share, a line per method."""
    figure, axes = grid_of_panels(len(panels), 3.7, 3.1, columns)
    for ax, (name, methods) in zip(axes, panels.items(), strict=True):
        for index, (method, curve) in enumerate(methods.items()):
            ax.plot(
                np.asarray(curve.coverage),
                np.asarray(curve.accuracy),
                label=method,
                linewidth=1.4,
                markevery=0.2,
                markersize=4,
                **line_style(method, index),
            )
        ax.set_xlim(0, 1.02)
        ax.set_title(name, fontsize=10)
        ax.set_xlabel("share of items kept")
        ax.set_ylabel("accuracy on them")
        without_frame(ax)
    legend_below(figure, axes)
    figure.suptitle(title, fontsize=11)
    return figure


def coverage_panels(table: pd.DataFrame, *, title: str) -> Figure:
    """Plot actual minus nominal coverage: a panel per `interval`, a line per `data`.

    Requires the columns `interval`, `data`, `level`, `coverage` and `replays`. The grey band contains
    95 % of the shares for a correct interval, with the number of trials of the source that has the
    fewest.
    """
    from scipy.stats import binom

    names = list(dict.fromkeys(table["interval"]))
    across = min(len(names), 5)
    down = -(-len(names) // across)
    figure = Figure(figsize=(2.9 * across, 2.6 * down + 0.4), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False)
    for ax, name in zip(axes.flat, names, strict=False):
        panel = table[table["interval"] == name]
        level = np.sort(panel["level"].unique().astype(float))
        n = int(panel["replays"].min())
        band = (binom.ppf(q, n, level) / n - level for q in (0.025, 0.975))
        ax.fill_between(level, *band, color="#DDDDDD")
        ax.axhline(0, color="black", linewidth=0.8)
        for index, (source, line) in enumerate(panel.groupby("data", sort=False)):
            difference = line["coverage"] - line["level"]
            style = {"color": PALETTE[index], "marker": MARKERS[index]}
            ax.plot(line["level"], difference, label=source, linewidth=1.1, markersize=4, **style)
        ax.set_title(textwrap.fill(name, 34), fontsize=8)
        ax.set_xticks(level)
        ax.tick_params(labelsize=7)
        ax.legend(fontsize=5.5, frameon=False)
        without_frame(ax)
    for ax in axes.flat[len(names) :]:
        ax.remove()
    figure.supxlabel("nominal coverage", fontsize=9)
    figure.supylabel("actual minus nominal", fontsize=9)
    figure.suptitle(title, fontsize=11)
    return figure
