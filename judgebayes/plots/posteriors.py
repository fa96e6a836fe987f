"""Figures of posterior draws: intervals, ranks of chains."""

import textwrap
from collections.abc import Mapping

import numpy as np
import pandas as pd
from jaxtyping import Float

from judgebayes.plots.style import PALETTE, Figure, grid_of_panels, legend_below, without_frame


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
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="x", color="#DDDDDD", linewidth=0.6)
        ax.set_axisbelow(True)
    figure.suptitle(title, fontsize=11)
    return figure


def chain_ranks(
    draws: Mapping[str, Float[np.ndarray, "chain draw"]], *, title: str, bins: int = 10
) -> Figure:
    """Plot the ranks of each chain's draws among all draws; lines are level if chains agree.

    Vehtari et al. (2021). There is a panel per quantity and a line per chain.
    """
    figure, axes = grid_of_panels(len(draws), 3.2, 2.3)
    for ax, (name, values) in zip(axes, draws.items(), strict=True):
        ranks = values.ravel().argsort(kind="stable").argsort().reshape(values.shape)
        edges = np.linspace(0, values.size, min(bins, values.shape[1] // 5 + 1) + 1)
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
