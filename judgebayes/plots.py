"""Figures from tidy tables and arrays. Each function returns a matplotlib Figure and shows nothing.

Methods keep their colour from figure to figure (Okabe & Ito's palette, safe for colour-blind
readers), and lines differ in marker as well.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from judgebayes.ensemble.curve import ErrorCurve

__all__ = [
    "bars",
    "colour",
    "confusion_matrices",
    "curves",
    "decision_regions",
    "densities",
    "distributions",
    "error_curves",
    "heat_map",
    "intervals",
    "scatter",
]

PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F", "#000000"]
MARKERS = "osD^vPX*"
FIXED = {
    "davidson": 0,
    "sc": 1,
    "margin-threshold": 2,
    "best-constant": 6,
    "hierarchical": 3,
    "labels": 7,
    "greedy-2": 4,
    "soft-sc-mean": 5,
}
CLASS_COLOURS = ("#D55E00", "#BBBBBB", "#0072B2")
CLASS_NAMES = ("B better", "tie", "A better")


def colour(name: str, place: int = 0) -> str:
    """Return the colour of a method, the same in every figure."""
    return PALETTE[FIXED.get(name, (place + 3) % len(PALETTE))]


def _style(name: str, place: int) -> dict[str, Any]:
    return {
        "color": colour(name, place),
        "marker": MARKERS[FIXED.get(name, (place + 3) % len(MARKERS))],
    }


def _tidy(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)


def _grid(panels: int, width: float, height: float, columns: int = 3) -> tuple[Figure, list[Axes]]:
    across = min(panels, columns)
    down = -(-panels // across)
    figure = Figure(figsize=(width * across, height * down), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False).ravel().tolist()
    for extra in axes[panels:]:
        extra.remove()
    return figure, axes[:panels]


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
) -> Figure:
    """Return lines of a metric against `x` with bands from `low` to `high`, a panel per group."""
    shown = table[table["metric"] == metric]
    groups = list(dict.fromkeys(shown[panel]))
    figure, axes = _grid(len(groups), 3.9, 3.0, columns)
    names = list(dict.fromkeys(shown["method"]))
    for ax, group in zip(axes, groups, strict=True):
        for place, name in enumerate(names):
            line = shown[(shown[panel] == group) & (shown["method"] == name)].sort_values(x)
            if len(line):
                style = _style(name, place)
                at = line[x].to_numpy(float)
                ax.plot(at, line["value"], label=name, markersize=4, linewidth=1.4, **style)
                ax.fill_between(
                    at, line["low"], line["high"], color=style["color"], alpha=0.15, linewidth=0
                )
        ax.set_title(str(group), fontsize=10)
        ax.set_xlabel(xlabel)
        ax.set_ylabel(ylabel)
        _tidy(ax)
    _legend_below(figure, axes)
    figure.suptitle(title, fontsize=11)
    return figure


def _legend_below(figure: Figure, axes: Sequence[Axes]) -> None:
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=min(len(labels), 5), frameon=False
    )


def decision_regions(
    rules: Mapping[str, Callable[[Int[np.ndarray, "state class"]], Int[np.ndarray, " state"]]],
    votes: int,
    *,
    title: str,
) -> Figure:
    """Return which class each rule decides for at every count of `votes` ternary votes."""
    a, b = np.meshgrid(np.arange(votes + 1), np.arange(votes + 1))
    inside = a + b <= votes
    counts = np.stack([b[inside], (votes - a - b)[inside], a[inside]], axis=1)
    figure, axes = _grid(len(rules), 3.6, 3.6, 4)
    for ax, (name, rule) in zip(axes, rules.items(), strict=True):
        decided = rule(counts)
        for label, (text, shade) in enumerate(zip(CLASS_NAMES, CLASS_COLOURS, strict=True)):
            here = decided == label
            ax.scatter(
                counts[here, 2],
                counts[here, 0],
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
) -> Figure:
    """Return a matrix of differences around zero: blue is better (lower), red is worse."""
    figure = Figure(
        figsize=(1.1 * len(columns) + 2.6, 0.75 * len(rows) + 1.8), layout="constrained"
    )
    ax = figure.subplots()
    most = max(float(np.nanmax(np.abs(values))), 1e-9)
    shown = ax.imshow(values, cmap="RdBu_r", vmin=-most, vmax=most)
    for i, j in np.ndindex(values.shape):
        if np.isfinite(values[i, j]):
            dark = abs(values[i, j]) > 0.6 * most
            ax.text(
                j,
                i,
                f"{values[i, j]:+.3f}",
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
    figure.colorbar(shown, ax=ax, label=colour_label)
    return figure


def confusion_matrices(
    matrices: Mapping[str, Float[np.ndarray, "label decision"]],
    classes: Sequence[str],
    *,
    title: str,
) -> Figure:
    """Return confusion matrices side by side: mean counts, and shares of each true label."""
    figure, axes = _grid(len(matrices), 3.6, 3.4, 4)
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


def bars(
    groups: Mapping[str, Mapping[str, Sequence[float]]],
    classes: Sequence[str],
    *,
    ylabel: str,
    title: str,
) -> Figure:
    """Return grouped bars: a panel per group, a bar per series within each class."""
    figure, axes = _grid(len(groups), 3.6, 2.9, 4)
    for ax, (name, series) in zip(axes, groups.items(), strict=True):
        width = 0.8 / len(series)
        for place, (label, values) in enumerate(series.items()):
            at = np.arange(len(classes)) + (place - (len(series) - 1) / 2) * width
            ax.bar(at, values, width, label=label, color=colour(label, place))
        ax.set_xticks(range(len(classes)), classes)
        ax.set_ylabel(ylabel)
        ax.set_title(name, fontsize=10)
        _tidy(ax)
    _legend_below(figure, axes)
    figure.suptitle(title, fontsize=11)
    return figure


def intervals(
    table: pd.DataFrame,
    *,
    label: str,
    series: str,
    xlabel: str,
    title: str,
    panel: str | None = None,
    zero: bool = False,
) -> Figure:
    """Return points with intervals: a row per `label`, a colour per `series`, panels if asked."""
    groups: list[str | None] = [None] if panel is None else list(dict.fromkeys(table[panel]))
    labels = list(dict.fromkeys(table[label]))
    names = list(dict.fromkeys(table[series]))
    height = 0.28 * len(labels) * max(1.0, 0.6 * len(names)) + 1.3
    figure, axes = _grid(len(groups), 7.4 if panel is None else 4.2, height)
    for ax, group in zip(axes, groups, strict=True):
        shown = table if group is None else table[table[panel] == group]
        for place, name in enumerate(names):
            own = shown[shown[series] == name]
            at = np.array([labels.index(v) for v in own[label]], float)
            at += (place - (len(names) - 1) / 2) * 0.7 / len(names)
            value = own["value"].to_numpy(float)
            reach = np.stack([value - own["low"], own["high"] - value]).astype(float)
            style = _style(str(name), place)
            ax.errorbar(
                value,
                at,
                xerr=np.where(np.isfinite(reach), reach, 0),
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
        ax.set_xlabel(xlabel)
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="x", color="#DDDDDD", linewidth=0.6)
        ax.set_axisbelow(True)
        if group is not None:
            ax.set_title(str(group), fontsize=10)
    figure.suptitle(title, fontsize=11)
    if len(names) > 1:
        _legend_below(figure, axes)
    return figure


def densities(
    samples: Mapping[str, Mapping[str, Float[np.ndarray, " draw"]]],
    *,
    xlabel: str,
    title: str,
    limits: tuple[float, float] | None = None,
) -> Figure:
    """Return histograms as outlines: a panel per group, a line per series."""
    figure, axes = _grid(len(samples), 3.6, 2.7, 4)
    for ax, (name, series) in zip(axes, samples.items(), strict=True):
        for place, (label, values) in enumerate(series.items()):
            ax.hist(
                values,
                bins=40,
                range=limits,
                density=True,
                histtype="step",
                label=label,
                color=colour(label, place),
                linewidth=1.4,
            )
        ax.set_title(name, fontsize=10)
        ax.set_xlabel(xlabel)
        ax.set_yticks([])
        ax.spines[["top", "right", "left"]].set_visible(False)
    _legend_below(figure, axes)
    figure.suptitle(title, fontsize=11)
    return figure


def error_curves(curves: Mapping[str, ErrorCurve], *, title: str) -> Figure:
    """Return a majority vote's error against the number of votes, with bands; a line per method.

    Points that are extrapolated are drawn hollow.
    """
    figure = Figure(figsize=(6.2, 4.2), layout="constrained")
    ax = figure.subplots()
    for place, (name, curve) in enumerate(curves.items()):
        shade, marker = colour(name, place), MARKERS[place % len(MARKERS)]
        ax.plot(curve.size, curve.error, color=shade, linewidth=1.4, label=name)
        for hollow in (False, True):
            here = curve.extrapolated == hollow
            fill = "white" if hollow else shade
            ax.plot(
                curve.size[here], curve.error[here], marker, color=shade, mfc=fill, markersize=5
            )
        ax.fill_between(curve.size, curve.low, curve.high, color=shade, alpha=0.15, linewidth=0)
    ax.set_xlabel("votes (hollow: more than any item has)")
    ax.set_ylabel("error of the majority")
    ax.set_ylim(bottom=0)
    _tidy(ax)
    _legend_below(figure, [ax])
    figure.suptitle(title, fontsize=11)
    return figure


def distributions(
    panels: Mapping[str, Mapping[str, Float[np.ndarray, " count"]]], *, xlabel: str, title: str
) -> Figure:
    """Return distributions over 0 .. k: the first of each panel as bars, the others as lines."""
    figure, axes = _grid(len(panels), 4.2, 3.0, 2)
    for ax, (name, series) in zip(axes, panels.items(), strict=True):
        for place, (label, values) in enumerate(series.items()):
            at = np.arange(len(values))
            if place == 0:
                ax.bar(at, values, color="#CCCCCC", width=0.85, label=label)
            else:
                style = _style(label, place)
                ax.plot(at, values, label=label, markersize=4, linewidth=1.3, **style)
        ax.set_title(name, fontsize=10)
        ax.set_xlabel(xlabel)
        ax.set_ylabel("share of the items")
        _tidy(ax)
    _legend_below(figure, axes)
    figure.suptitle(title, fontsize=11)
    return figure


def scatter(
    points: Mapping[str, Float[np.ndarray, "point 2"]], *, xlabel: str, ylabel: str, title: str
) -> Figure:
    """Return points in the plane, a colour and marker per series, with a line at zero."""
    figure = Figure(figsize=(6.2, 4.2), layout="constrained")
    ax = figure.subplots()
    for place, (name, pairs) in enumerate(points.items()):
        style = _style(name, place)
        ax.scatter(pairs[:, 0], pairs[:, 1], s=22, alpha=0.8, label=name, **style)
    ax.axhline(0, color="black", linewidth=0.8)
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    _tidy(ax)
    _legend_below(figure, [ax])
    figure.suptitle(title, fontsize=11)
    return figure
