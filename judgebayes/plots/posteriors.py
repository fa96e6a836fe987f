"""Figures of posterior draws: intervals, ranks of chains, ranks of true values among draws."""

import textwrap
from collections.abc import Mapping

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from judgebayes.plots.style import PALETTE, Figure, grid_of_panels, legend_below, without_frame

__all__ = ["chain_ranks", "forest", "ranks"]


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
