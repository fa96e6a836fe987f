"""Figures of decisions: regions of counts, confusion matrices, heat maps, risk curves."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from judgebayes.plots.style import (
    CLASS_COLOURS,
    CLASS_NAMES,
    PALETTE,
    Figure,
    grid_of_panels,
    without_frame,
)

__all__ = ["confusion_matrices", "decision_regions", "heat_map", "risk_by_share"]


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


def risk_by_share(curve: pd.DataFrame, *, cost: float | None = None, title: str) -> Figure:
    """Plot the mean loss of the most certain decisions (`risk`) against their share (`decided`).

    A point marks the decisions whose expected loss is at most the `cost` of asking a person.
    """
    figure, (ax,) = grid_of_panels(1, 4.4, 3.2, 1)
    ax.plot(curve["decided"], curve["risk"], color=PALETTE[0], linewidth=1.4)
    below_cost = curve[curve["cost"] <= (-np.inf if cost is None else cost)]
    if len(below_cost):
        last = below_cost.iloc[-1]
        ax.plot(last["decided"], last["risk"], "o", color=PALETTE[0], markersize=6)
    ax.set_xlim(0, 1.02)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("share of items decided, most certain first")
    ax.set_ylabel("mean loss of these decisions")
    without_frame(ax)
    figure.suptitle(title, fontsize=11)
    return figure
