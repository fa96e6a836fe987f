"""Intervals from tidy tables, with a colour per series."""

import textwrap

import numpy as np
import pandas as pd

from judgebayes.plots.style import (
    Figure,
    grid_of_panels,
    legend_below,
    line_style,
    without_frame,
)


def intervals(
    table: pd.DataFrame,
    *,
    label: str,
    series: str,
    xlabel: str,
    title: str,
    panel: str | None = None,
    zero: bool = False,
    log: bool = False,
) -> Figure:
    """Plot points with intervals: a row per `label`, a colour per `series`, optional panels.

    A panel has the rows of its own labels; all panels share the axis of values.
    """
    groups: list[str | None] = [None] if panel is None else list(dict.fromkeys(table[panel]))
    names = list(dict.fromkeys(table[series]))
    parts = [table if group is None else table[table[panel] == group] for group in groups]
    rows = max(part[label].nunique() for part in parts)
    height = rows * max(0.28, 0.1 * len(names) + 0.08) + 1.1
    figure, axes = grid_of_panels(len(groups), 5.5 if panel is None else 4.2, height)
    for ax, group, shown in zip(axes, groups, parts, strict=True):
        labels = list(dict.fromkeys(shown[label]))
        if ax is not axes[0]:
            ax.sharex(axes[0])
        for position, name in enumerate(names):
            of_series = shown[shown[series] == name]
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
        if zero:
            ax.axvline(0, color="black", linewidth=0.8)
        ax.set_yticks(range(len(labels)), [str(v) for v in labels], fontsize=8)
        ax.set_ylim(len(labels) - 0.4, -0.6)
        if log:
            ax.set_xscale("log")
            ax.xaxis.set_major_formatter("{x:g}")
        if panel is None or ax in axes[-3:]:
            ax.set_xlabel(textwrap.fill(xlabel, 40))
        without_frame(ax, "x")
        if group is not None:
            ax.set_title(str(group), fontsize=10)
    figure.suptitle(textwrap.fill(title, int(12 * figure.get_figwidth())), fontsize=11)
    legend_below(figure, axes)
    return figure
