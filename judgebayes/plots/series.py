"""Intervals from tidy tables, with a colour per series."""

import textwrap

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from judgebayes.plots.style import Figure, legend_below, line_style, without_frame

ROW, WIDTH, MARGIN = 0.1, 5.5, 1.1
"""The height of a point, the width of a figure, and the height of its axis, in inches."""


def height_of(rows: int, series: int) -> float:
    """Return the height of a figure with so many rows of so many series."""
    return rows * max(0.28, ROW * series + 0.08) + MARGIN


def intervals(table: pd.DataFrame, *, label: str, series: str, xlabel: str) -> Figure:
    """Plot points with intervals: a row per `label`, a colour per `series`."""
    height = height_of(table[label].nunique(), table[series].nunique())
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    ax = figure.subplots()
    draw_intervals(ax, table, label, series, list(dict.fromkeys(table[series])))
    ax.set_xlabel(textwrap.fill(xlabel, 40))
    legend_below(figure, [ax])
    return figure


def draw_intervals(
    ax: Axes, table: pd.DataFrame, label: str, series: str, names: list[object]
) -> None:
    """Draw a row per `label`; the place of a series among `names` is that in its row."""
    labels = list(dict.fromkeys(table[label]))
    for position, name in enumerate(names):
        of_series = table[table[series] == name]
        at = np.array([labels.index(v) for v in of_series[label]], float)
        at += (position - (len(names) - 1) / 2) * 0.75 / len(names)
        value = of_series["value"].to_numpy(float)
        interval_arms = np.stack([value - of_series["low"], of_series["high"] - value]).astype(
            float
        )
        style = line_style(str(name), position)
        ax.errorbar(
            value,
            at,
            xerr=np.where(np.isfinite(interval_arms), interval_arms, 0),
            fmt=style["marker"],
            color=style["color"],
            markersize=4,
            linewidth=1.2,
            label=str(name),
        )
    ax.set_yticks(range(len(labels)), [str(v) for v in labels], fontsize=8)
    ax.set_ylim(len(labels) - 0.4, -0.6)
    without_frame(ax, "x")
