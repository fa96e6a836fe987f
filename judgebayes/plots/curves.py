"""Reliability diagrams.

The error of a majority vote.

Figures of posterior draws: intervals, ranks of chains.
"""

import textwrap
from collections.abc import Mapping

import numpy as np
import pandas as pd
from jaxtyping import Float

from judgebayes.majority.counts import ErrorCurve
from judgebayes.measures.reliability import Reliability
from judgebayes.plots.style import (
    MARKERS,
    PALETTE,
    Figure,
    colour,
    grid_of_panels,
    legend_below,
    line_style,
    without_frame,
)

RANK_BINS = 10


def forest(table: pd.DataFrame, *, title: str) -> Figure:
    """Plot posterior intervals: a panel per `variable` with its own axis, a row per `label`.

    The thin line goes from `low` to `high`, the thick one from `lower` to `upper`.
    """
    names = list(dict.fromkeys(table["variable"]))
    parts = [table[table["variable"] == name] for name in names]
    rows = [len(part) for part in parts]
    heights = [0.22 * n + 0.75 for n in rows]
    figure = Figure(figsize=(7.4, sum(heights) + 0.5), layout="constrained")
    axes = figure.subplots(len(parts), 1, squeeze=False, height_ratios=heights)[:, 0]
    for ax, part in zip(axes, parts, strict=True):
        at = np.arange(len(part))
        ax.hlines(at, part["low"], part["high"], color=PALETTE[0], linewidth=1.2)
        ax.hlines(at, part["lower"], part["upper"], color=PALETTE[0], linewidth=3.5)
        ax.plot(part["value"], at, "o", color="white", markeredgecolor=PALETTE[0], markersize=4.5)
        ax.set_yticks(at, [str(v) for v in part["label"]], fontsize=8)
        ax.set_ylim(len(part) - 0.4, -0.6)
        ax.set_title(str(part["panel"].iloc[0]), fontsize=9, loc="left")
        ax.tick_params(axis="x", labelsize=8)
        without_frame(ax, "x")
    figure.suptitle(title, fontsize=11)
    return figure


def chain_ranks(draws: Mapping[str, Float[np.ndarray, "chain draw"]], *, title: str) -> Figure:
    """Plot the ranks of each chain's draws among all draws; lines are level if chains agree.

    Vehtari et al. (2021). There is a panel per quantity and a line per chain.
    """
    figure, axes = grid_of_panels(len(draws), 3.2, 2.3)
    for ax, (name, values) in zip(axes, draws.items(), strict=True):
        ranks = values.ravel().argsort(kind="stable").argsort().reshape(values.shape)
        edges = np.linspace(0, values.size, min(RANK_BINS, values.shape[1] // 5 + 1) + 1)
        for chain, chain_ranks_ in enumerate(ranks):
            share = np.histogram(chain_ranks_, edges)[0] * (len(edges) - 1) / values.shape[1]
            ax.stairs(
                share,
                edges / values.size,
                color=PALETTE[chain % len(PALETTE)],
                label=f"chain {chain + 1}",
                linewidth=1.2,
            )
        ax.axhline(1, color="black", linewidth=0.8)
        ax.set_ylim(0, None)
        ax.set_title(textwrap.fill(name, 44), fontsize=8)
        ax.tick_params(labelsize=7)
        ax.set_xlabel("rank among all draws", fontsize=8)
        without_frame(ax)
    axes[0].set_ylabel("draws, 1 if level", fontsize=8)
    legend_below(figure, axes)
    figure.suptitle(title, fontsize=11)
    return figure


MAX_TICKS = 15


def error_curves(
    curves: Mapping[str, ErrorCurve],
    *,
    title: str,
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
    figure.suptitle(title, fontsize=11)
    return figure


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
