"""Figures from tidy tables and arrays; functions return figures and do not show them.

Nothing is computed here.
This package may not import `show` or any package after it.

They share a style (colours of methods, markers, panels, legends): intervals with a colour per series,
reliability diagrams, and the error of a majority vote.
"""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import matplotlib.figure
import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes

from judgebayes.errors import JudgeBayesError
from judgebayes.majority.counts import ErrorCurve
from judgebayes.measures.scores import Reliability

PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F", "#000000"]
MARKERS = "osD^vPX*"
"""Markers tell series apart in grey print, where colours do not."""

ALIKE = (
    ("davidson", "one-coin + beta", "mixture-map", "mixture"),
    ("sc", "top-5 + beta", "em"),
    ("margin-threshold", "stacking", "thinning", "model-free", "pooled, limit 0.25"),
    ("hierarchical", "pool", "binomial", "independent votes"),
    ("greedy-2", "shared-difficulty", "majority", "beta-binomial", "bootstrap", "pooled"),
    ("soft-sc-mean", "one-coin", "one-coin, uncalibrated", "mixture-posterior"),
    ("best-constant", "majority + beta", "em-printed", "split curve", "no correction", "transfer"),
    ("labels", "actual"),
)
"""Methods with a colour, marker and dashes of their own, the same in every figure."""
FIXED = {name: place for place, names in enumerate(ALIKE) for name in names}

LEGEND_MARK, LEGEND_LETTER = 0.55, 0.085
"""The width of a legend column in inches: for the mark, and per letter."""


class Figure(matplotlib.figure.Figure):
    """A figure whose PDF and PostScript files have TrueType fonts, as conferences ask for."""

    def savefig(self, fname: Any, **options: Any) -> None:
        """Write the figure, as Matplotlib does.

        Raises
        ------
        JudgeBayesError
            If the file cannot be written.
        """
        try:
            with rc_context({"pdf.fonttype": 42, "ps.fonttype": 42}):
                super().savefig(fname, **options)
        except (OSError, ValueError) as error:
            raise JudgeBayesError(
                f"{str(fname)!r} cannot be written: {error}. Choose a path that ends in .png, .pdf or "
                ".svg."
            ) from error


def colour(name: str, place: int = 0) -> str:
    """Return the colour of a method, the same in every figure."""
    return PALETTE[FIXED.get(name, (place + 3) % len(PALETTE))]


def line_style(name: str, place: int) -> dict[str, Any]:
    """Return the colour and the marker of a method, the same in every figure, as options of `plot`."""
    return {
        "color": colour(name, place),
        "marker": MARKERS[FIXED.get(name, (place + 3) % len(MARKERS))],
    }


def without_frame(axes: Axes, lines_of: Literal["x", "y"] = "y") -> None:
    """Remove the top and right edges of a panel, and draw faint grid lines of an axis."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=lines_of, color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)


def legend_below(figure: Figure, axes: Sequence[Axes]) -> None:
    """Add one legend for all panels, if they have several series."""
    handles = {
        label: handle
        for ax in axes
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    if len(handles) < 2:
        return
    column_width = LEGEND_MARK + LEGEND_LETTER * max(map(len, handles))
    max_columns = max(int(figure.get_figwidth() / column_width), 1)
    figure.legend(
        list(handles.values()),
        list(handles),
        loc="outside lower center",
        ncols=min(len(handles), 5, max_columns),
        frameon=False,
    )


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
