"""Intervals from tidy tables, with a colour per series."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from judgebayes.plots.style import Figure, legend_below, line_style, without_frame


def intervals(table: pd.DataFrame, *, label: str, series: str, xlabel: str, title: str) -> Figure:
    """Plot points with intervals: a row per `label`, a colour per `series`."""
    height = height_of(table[label].nunique(), table[series].nunique())
    figure = Figure(figsize=(7.4, height), layout="constrained")
    ax = figure.subplots()
    draw_intervals(ax, table, label, series, list(dict.fromkeys(table[series])))
    ax.set_xlabel(xlabel)
    figure.suptitle(title, fontsize=11)
    legend_below(figure, [ax])
    return figure


def height_of(rows: int, series: int) -> float:
    """Return the height of a panel of intervals in inches."""
    return rows * max(0.28, 0.1 * series + 0.08) + 1.1


def draw_intervals(
    ax: Axes, table: pd.DataFrame, label: str, series: str, names: list[str]
) -> None:
    """Draw a row of intervals per `label`, of the series with these names."""
    labels = list(dict.fromkeys(table[label]))
    for position, name in enumerate(names):
        of_series = table[table[series] == name]
        at = np.array([labels.index(v) for v in of_series[label]], float)
        at += (position - (len(names) - 1) / 2) * 0.75 / len(names)
        value = of_series["value"].to_numpy(float)
        arms = np.stack([value - of_series["low"], of_series["high"] - value]).astype(float)
        style = line_style(str(name), position)
        ax.errorbar(
            value,
            at,
            xerr=np.where(np.isfinite(arms), arms, 0),
            fmt=style["marker"],
            color=style["color"],
            markersize=4,
            linewidth=1.2,
            label=str(name),
        )
    ax.set_yticks(range(len(labels)), [str(v) for v in labels], fontsize=8)
    ax.set_ylim(len(labels) - 0.4, -0.6)
    without_frame(ax, "x")
