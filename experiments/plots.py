"""Figures of the papers that no report of the library draws."""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int
from matplotlib.axes import Axes

from judgebayes.experiments.calibrate_dont_curate.selective import AccuracyCurve
from judgebayes.measures.scores import Reliability
from judgebayes.plots import (
    FIXED,
    MARKERS,
    PALETTE,
    WIDTH,
    Figure,
    colour,
    draw_intervals,
    draw_reliability,
    height_of,
    legend_below,
    line_style,
    without_frame,
)

DASHES = ["-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (8, 2))]
HATCHES = ["", "///", "...", "\\\\\\", "xxx", "---", "++", ""]
"""Dashes and hatches tell lines and bars apart in grey print, where colours do not."""
CLASS_COLOURS = ("#D55E00", "#BBBBBB", "#0072B2")
CLASS_NAMES = ("B better", "tie", "A better")


def grid_of_panels(
    panels: int, width: float, height: float, columns: int = 3
) -> tuple[Figure, list[Axes]]:
    """Return a new figure and its panels, row by row; `width` and `height` are inches per panel."""
    across = min(panels, columns)
    down = -(-panels // across)
    figure = Figure(figsize=(width * across, height * down), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False).ravel().tolist()
    for extra in axes[panels:]:
        extra.remove()
    return figure, axes[:panels]


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
    height = height_of(max(part[label].nunique() for part in parts), len(names))
    figure, axes = grid_of_panels(len(groups), WIDTH if panel is None else 4.2, height)
    for ax, group, shown in zip(axes, groups, parts, strict=True):
        if ax is not axes[0]:
            ax.sharex(axes[0])
        draw_intervals(ax, shown, label, series, names)
        if zero:
            ax.axvline(0, color="black", linewidth=0.8)
        if log:
            ax.set_xscale("log")
            ax.xaxis.set_major_formatter("{x:g}")
        if panel is None or ax in axes[-3:]:
            ax.set_xlabel(textwrap.fill(xlabel, 40))
        if group is not None:
            ax.set_title(str(group), fontsize=10)
    figure.suptitle(textwrap.fill(title, int(12 * figure.get_figwidth())), fontsize=11)
    legend_below(figure, axes)
    return figure


def reliability_diagrams(
    panels: Mapping[str, Mapping[str, Reliability]],
    *,
    xlabel: str = "predicted probability",
    ylabel: str = "observed frequency",
    title: str,
    columns: int = 4,
) -> Figure:
    """Plot observed frequency against predicted probability: a panel per group, a line per method."""
    figure, axes = grid_of_panels(len(panels), 3.5, 3.6, columns)
    for ax, (name, methods) in zip(axes, panels.items(), strict=True):
        draw_reliability(ax, methods)
        ax.set_title(name, fontsize=10)
        ax.set_xlabel(xlabel)
        ax.set_ylabel(ylabel)
    legend_below(figure, axes)
    for legend in figure.legends:
        for handle in legend.legend_handles:
            handle.set_sizes([40])  # type: ignore[union-attr]
    figure.suptitle(title, fontsize=11)
    return figure


def decision_regions(
    rules: Mapping[str, Callable[[Int[np.ndarray, "state class"]], Int[np.ndarray, " state"]]],
    votes: int,
    *,
    title: str,
) -> Figure:
    """Plot each rule's decision at every count of `votes` ternary votes."""
    a, b = np.meshgrid(np.arange(votes + 1), np.arange(votes + 1))
    inside = a + b <= votes
    counts = np.stack([b[inside], (votes - a - b)[inside], a[inside]], axis=1)
    figure, axes = grid_of_panels(len(rules), 3.6, 3.6, 4)
    for ax, (name, rule) in zip(axes, rules.items(), strict=True):
        decided = rule(counts)
        for label, (text, shade) in enumerate(zip(CLASS_NAMES, CLASS_COLOURS, strict=True)):
            of_label = decided == label
            ax.scatter(
                counts[of_label, 2],
                counts[of_label, 0],
                c=shade,
                s=5600 / votes**1.7,
                marker="s",
                label=text,
                linewidths=0,
            )
        ax.set_title(name, fontsize=10)
        ax.set_xlabel("votes for A")
        ax.set_ylabel("votes for B")
        ax.set_aspect("equal")
        ax.spines[["top", "right"]].set_visible(False)
    handles, labels = axes[0].get_legend_handles_labels()
    legend = figure.legend(
        handles, labels, loc="outside lower center", ncols=3, frameon=False, markerscale=0.8
    )
    for handle in legend.legend_handles:
        if handle is not None:
            handle.set_sizes([60])  # type: ignore[attr-defined]
    figure.suptitle(title, fontsize=11)
    return figure


def heat_map(
    values: Float[np.ndarray, "row column"],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    xlabel: str,
    ylabel: str,
    title: str,
    colour_label: str,
    marked: Bool[np.ndarray, "row column"] | None = None,
) -> Figure:
    """Plot a matrix of differences around zero: blue is better (lower), red is worse.

    Cells that are `marked` have a star after their number.
    """
    figure = Figure(
        figsize=(1.1 * len(columns) + 2.6, 0.75 * len(rows) + 1.8), layout="constrained"
    )
    ax = figure.subplots()
    limit = max(float(np.nanmax(np.abs(values))), 1e-9)
    star = np.where(np.zeros(values.shape, bool) if marked is None else marked, "*", "")
    image = ax.imshow(values, cmap="RdBu_r", vmin=-limit, vmax=limit)
    for i, j in np.ndindex(values.shape):
        if np.isfinite(values[i, j]):
            dark = abs(values[i, j]) > 0.6 * limit
            ax.text(
                j,
                i,
                f"{values[i, j]:+.3f}{star[i, j]}",
                ha="center",
                va="center",
                fontsize=8,
                color="white" if dark else "black",
            )
    ax.set_xticks(range(len(columns)), columns, rotation=30, ha="right")
    ax.set_yticks(range(len(rows)), rows)
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    ax.set_title(title, fontsize=11)
    figure.colorbar(image, ax=ax, label=colour_label)
    return figure


def confusion_matrices(
    matrices: Mapping[str, Float[np.ndarray, "label decision"]],
    classes: Sequence[str],
    *,
    title: str,
) -> Figure:
    """Plot confusion matrices side by side: mean counts, and shares of each true label."""
    figure, axes = grid_of_panels(len(matrices), 3.6, 3.4, 4)
    for ax, (name, counts) in zip(axes, matrices.items(), strict=True):
        share = counts / counts.sum(1, keepdims=True)
        ax.imshow(share, cmap="Blues", vmin=0, vmax=1)
        for i, j in np.ndindex(counts.shape):
            ax.text(
                j,
                i,
                f"{counts[i, j]:.0f}\n{share[i, j]:.0%}",
                ha="center",
                va="center",
                fontsize=9,
                color="white" if share[i, j] > 0.6 else "black",
            )
        ax.set_xticks(range(len(classes)), classes)
        ax.set_yticks(range(len(classes)), classes)
        ax.set_xlabel("decision")
        ax.set_ylabel("label")
        ax.set_title(name, fontsize=10)
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


def distributions(
    panels: Mapping[str, Mapping[str, Float[np.ndarray, " count"]]], *, xlabel: str, title: str
) -> Figure:
    """Plot distributions over 0 .. k: the first of each panel as bars, the others as lines."""
    figure, axes = grid_of_panels(len(panels), 4.2, 3.0, 2)
    for ax, (name, series) in zip(axes, panels.items(), strict=True):
        for index, (label, values) in enumerate(series.items()):
            at = np.arange(len(values))
            if index == 0:
                ax.bar(at, values, color="#CCCCCC", width=0.85, label=label)
            else:
                style = line_style(label, index)
                ax.plot(at, values, label=label, markersize=4, linewidth=1.3, **style)
        ax.set_title(name, fontsize=10)
        ax.set_xlabel(xlabel)
        ax.set_ylabel("share of the items")
        without_frame(ax)
    legend_below(figure, axes)
    figure.suptitle(title, fontsize=11)
    return figure


def ranks(
    given: Mapping[str, Int[np.ndarray, " simulation"]],
    kept: int,
    band: tuple[Int[np.ndarray, " rank"], Int[np.ndarray, " rank"]],
    n_bins: int,
    *,
    title: str,
) -> Figure:
    """Plot ranks from 0 to `kept`: a histogram above, the ECDF minus uniform below.

    Parameters
    ----------
    given
        The ranks of each quantity, with a column of the figure each.
    kept
        The highest rank.
    band
        The simultaneous band of the number of ranks up to r, for all r below `kept`.
    n_bins
        Bins of the histogram, a divisor of `kept` + 1.
    """
    across = min(len(given), 5)
    down = -(-len(given) // across)
    figure = Figure(figsize=(2.5 * across, 3.4 * down + 0.5), layout="constrained")
    axes = figure.subplots(2 * down, across, squeeze=False)
    at = (np.arange(kept) + 1) / (kept + 1)
    for index, (name, values) in enumerate(given.items()):
        top, bottom = (axes[2 * (index // across) + row, index % across] for row in (0, 1))
        n = len(values)
        counts = np.bincount(values * n_bins // (kept + 1), minlength=n_bins)
        top.bar((np.arange(n_bins) + 0.5) / n_bins, counts, 0.9 / n_bins, color=PALETTE[0])
        top.axhline(n / n_bins, color="black", linewidth=0.8)
        top.set_title(name, fontsize=9)
        top.set_xticks([])
        at_most = np.bincount(values, minlength=kept + 1).cumsum()[:-1]
        bottom.fill_between(
            at, band[0] / n - at, band[1] / n - at, color="#DDDDDD", label="95 % of uniform ranks"
        )
        bottom.plot(at, at_most / n - at, color=PALETTE[0], linewidth=1.2, label="ranks")
        bottom.set_xlabel("rank / L", fontsize=8)
        for ax, label in ((top, "simulations"), (bottom, "ECDF minus uniform")):
            ax.set_ylabel(label if index % across == 0 else "", fontsize=8)
            ax.tick_params(labelsize=7)
            without_frame(ax)
    for index in range(len(given), down * across):
        for row in (0, 1):
            axes[2 * (index // across) + row, index % across].remove()
    legend_below(figure, [axes[1, 0]])
    figure.suptitle(title, fontsize=11)
    return figure


def bars(
    groups: Mapping[str, Mapping[str, Sequence[float]]],
    classes: Sequence[str],
    *,
    ylabel: str,
    title: str,
) -> Figure:
    """Plot grouped bars: a panel per group, a bar per series within each class."""
    figure, axes = grid_of_panels(len(groups), 3.6, 2.9, 4)
    for ax, (name, series) in zip(axes, groups.items(), strict=True):
        if ax is not axes[0]:
            ax.sharey(axes[0])
        width = 0.8 / len(series)
        for index, (label, values) in enumerate(series.items()):
            at = np.arange(len(classes)) + (index - (len(series) - 1) / 2) * width
            ax.bar(
                at,
                values,
                width,
                label=label,
                color=colour(label, index),
                hatch=HATCHES[FIXED.get(label, (index + 3) % len(HATCHES))],
                edgecolor="white",
                linewidth=0,
            )
        ax.set_xticks(range(len(classes)), classes)
        ax.set_ylabel(ylabel)
        ax.set_title(name, fontsize=10)
        without_frame(ax)
    legend_below(figure, axes)
    figure.suptitle(title, fontsize=11)
    return figure


def scatter(
    points: Mapping[str, Float[np.ndarray, "point 2"]], *, xlabel: str, ylabel: str, title: str
) -> Figure:
    """Plot points in the plane, a colour and marker per series, with a line at zero."""
    figure = Figure(figsize=(6.2, 4.2), layout="constrained")
    ax = figure.subplots()
    for index, (name, pairs) in enumerate(points.items()):
        style = line_style(name, index)
        ax.scatter(pairs[:, 0], pairs[:, 1], s=22, alpha=0.8, label=name, **style)
    ax.axhline(0, color="black", linewidth=0.8)
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    without_frame(ax)
    legend_below(figure, [ax])
    figure.suptitle(title, fontsize=11)
    return figure


def curves(
    table: pd.DataFrame,
    x: str,
    *,
    panel: str,
    metric: str,
    xlabel: str,
    ylabel: str,
    title: str,
    columns: int = 3,
    banded: Sequence[str] | None = None,
) -> Figure:
    """Plot lines of a metric against `x` with bands from `low` to `high`, a panel per group.

    `banded` names the methods with a band, if the bands of all would overlap. Panels share their axes,
    so that they can be compared.
    """
    shown = table[table["metric"] == metric]
    groups = list(dict.fromkeys(shown[panel]))
    figure, axes = grid_of_panels(len(groups), 3.9, 3.0, columns)
    names = list(dict.fromkeys(shown["method"]))
    for ax, group in zip(axes, groups, strict=True):
        if ax is not axes[0]:
            ax.sharex(axes[0])
            ax.sharey(axes[0])
        for index, name in enumerate(names):
            line = shown[(shown[panel] == group) & (shown["method"] == name)].sort_values(x)
            if len(line):
                style = line_style(name, index)
                at = line[x].to_numpy(float)
                ax.plot(
                    at,
                    line["value"],
                    label=name,
                    markersize=4,
                    linewidth=1.4,
                    linestyle=dashes(name, index),
                    **style,
                )
                if banded is not None and name not in banded:
                    continue
                ax.fill_between(
                    at, line["low"], line["high"], color=style["color"], alpha=0.15, linewidth=0
                )
        ax.set_title(str(group), fontsize=10)
        ax.set_xlabel(xlabel)
        ax.set_ylabel(ylabel)
        without_frame(ax)
    legend_below(figure, axes)
    figure.suptitle(title, fontsize=11)
    return figure


def dashes(name: str, place: int) -> Any:
    """Return the dashes of a method's line, the same in every figure."""
    return DASHES[FIXED.get(name, (place + 3) % len(DASHES))]
