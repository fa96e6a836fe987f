"""Figures from tidy tables and arrays. Each function returns a matplotlib Figure and shows nothing.

Methods keep their colour from figure to figure (Okabe & Ito's palette, safe for colour-blind
readers), and lines differ in marker as well.
"""

import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from judgebayes.errors import JudgeBayesError
from judgebayes.majority.curve import ErrorCurve
from judgebayes.measures.selective import AccuracyCurve, Reliability

__all__ = [
    "accuracy_coverage",
    "bars",
    "chain_ranks",
    "colour",
    "confusion_matrices",
    "coverage_panels",
    "curves",
    "decision_regions",
    "densities",
    "distributions",
    "error_curves",
    "forest",
    "heat_map",
    "intervals",
    "judge_map",
    "ranks",
    "reliability_diagrams",
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
    "one-coin + beta": 0,
    "top-5 + beta": 1,
    "stacking": 2,
    "one-coin": 5,
    "one-coin, uncalibrated": 5,
    "majority": 4,
    "majority + beta": 6,
    "actual": 7,
    "binomial": 3,
    "beta-binomial": 4,
    "em": 1,
    "em-printed": 6,
    "mixture-map": 0,
    "mixture": 0,
    "mixture-posterior": 5,
    "thinning": 2,
    "model-free": 2,
    "bootstrap": 4,
    "no correction": 6,
    "independent votes": 3,
    "transfer": 6,
    "pooled": 4,
    "pooled, limit 0.25": 2,
}
CLASS_COLOURS = ("#D55E00", "#BBBBBB", "#0072B2")
CLASS_NAMES = ("B better", "tie", "A better")
LEGEND_MARK, LEGEND_LETTER = 0.55, 0.085
"""Inches that a column of a legend takes, beside its letters and for each of them."""
MOST_TICKS = 15
BESIDE = ((-9, 6), (9, -3), (9, 6), (-9, -12), (9, -12), (0, 9), (0, -15))
"""Where the name of a point may stand, in points: to its left, to its right, above, below."""
POINT = 4.0
"""Room that a point of a map takes to every side, in points."""
TRIED = 5
"""For each name that a map may hold, so many points are tried."""


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
    banded: Sequence[str] | None = None,
) -> Figure:
    """Return lines of a metric against `x` with bands from `low` to `high`, a panel per group.

    `banded` names the methods that get a band, where bands of all would hide one another.
    """
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
                if banded is not None and name not in banded:
                    continue
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


def _legend_below(figure: Figure, axes: Sequence[Axes], size: float | None = None) -> None:
    """Add one legend for all panels; `size` makes all its points alike."""
    found = {
        label: handle
        for ax in axes
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    widest = LEGEND_MARK + LEGEND_LETTER * max((len(label) for label in found), default=0)
    fitting = max(int(figure.get_figwidth() / widest), 1)
    legend = figure.legend(
        list(found.values()),
        list(found),
        loc="outside lower center",
        ncols=min(len(found), 5, fitting),
        frameon=False,
    )
    for handle in legend.legend_handles if size is not None else ():
        if handle is not None:
            handle.set_sizes([size])  # type: ignore[attr-defined]


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
    log: bool = False,
) -> Figure:
    """Return points with intervals: a row per `label`, a colour per `series`, panels if asked.

    A panel has the rows of its own labels; all panels share one axis of values.
    """
    groups: list[str | None] = [None] if panel is None else list(dict.fromkeys(table[panel]))
    names = list(dict.fromkeys(table[series]))
    parts = [table if group is None else table[table[panel] == group] for group in groups]
    rows = max(part[label].nunique() for part in parts)
    height = rows * max(0.28, 0.1 * len(names) + 0.08) + 1.1
    figure, axes = _grid(len(groups), 7.4 if panel is None else 4.2, height)
    for ax, group, shown in zip(axes, groups, parts, strict=True):
        labels = list(dict.fromkeys(shown[label]))
        if ax is not axes[0]:
            ax.sharex(axes[0])
        for place, name in enumerate(names):
            own = shown[shown[series] == name]
            at = np.array([labels.index(v) for v in own[label]], float)
            at += (place - (len(names) - 1) / 2) * 0.75 / len(names)
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
        if log:
            ax.set_xscale("log")
            ax.xaxis.set_major_formatter("{x:g}")
        if panel is None or ax in axes[-3:]:
            ax.set_xlabel(xlabel if panel is None else textwrap.fill(xlabel, 40))
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="x", color="#DDDDDD", linewidth=0.6)
        ax.set_axisbelow(True)
        if group is not None:
            ax.set_title(str(group), fontsize=10)
    figure.suptitle(title, fontsize=11)
    if len(names) > 1:
        _legend_below(figure, axes)
    return figure


def forest(table: pd.DataFrame, *, title: str) -> Figure:
    """Return posterior intervals: a panel per `variable` with an axis of its own, a row per `label`.

    The thin line reaches from `low` to `high`, the thick one from `lower` to `upper`.
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
    """Return how the ranks of each chain's draws fall among all: level lines where chains agree.

    Vehtari et al. (2021). A panel per quantity, a line per chain.
    """
    figure, axes = _grid(len(draws), 3.2, 2.3)
    for ax, (name, values) in zip(axes, draws.items(), strict=True):
        ranks = values.ravel().argsort(kind="stable").argsort().reshape(values.shape)
        edges = np.linspace(0, values.size, min(bins, values.shape[1] // 5 + 1) + 1)
        for chain, own in enumerate(ranks):
            share = np.histogram(own, edges)[0] * (len(edges) - 1) / values.shape[1]
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
        _tidy(ax)
    axes[0].set_ylabel("draws, 1 if level", fontsize=8)
    _legend_below(figure, axes)
    figure.suptitle(title, fontsize=11)
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


def judge_map(
    table: pd.DataFrame, *, title: str, named: int = 8, size: tuple[float, float] = (6.4, 6.0)
) -> Figure:
    """Return where judges stand: TPR against TNR with 90 % intervals, or accuracies in order.

    `table` is what `judgebayes.panel.diagnostics.judge_table` returned. With two classes every
    judge is a point; on the diagonal it is equally good on both labels (the one-coin model), on the
    dashed line it knows nothing. Up to `named` judges are named where there is room beside their points:
    first those that stand out from the panel's middle, and from one another. `size` is that of the
    map in inches. With more classes, or labels of one class only, a row per judge shows its accuracy.

    Raises
    ------
    JudgeBayesError
        If no judge's accuracy is known.
    """
    if not np.isfinite(table["accuracy"]).any():
        raise JudgeBayesError(
            "The map of judges shows how often they are right: it needs labels of some items."
        )
    if "tpr" not in table or not np.isfinite(table[["tnr", "tpr"]]).to_numpy().all(1).any():
        shown = table.rename(
            columns={"accuracy": "value", "accuracy_low": "low", "accuracy_high": "high"}
        ).sort_values("value", ascending=False)
        shown = shown.assign(series="accuracy")
        return intervals(shown, label="judge", series="series", xlabel="accuracy", title=title)
    figure = Figure(figsize=size, layout="constrained")
    ax = figure.subplots()
    at = table[["tnr", "tpr"]].to_numpy(float)
    reach = [
        np.stack([table[name] - table[f"{name}_low"], table[f"{name}_high"] - table[name]])
        for name in ("tnr", "tpr")
    ]
    # At 0 and 1 the posterior interval does not hold the share itself.
    wide = [np.maximum(np.nan_to_num(r), 0) for r in reach]
    ax.plot([0, 1], [0, 1], color="#BBBBBB", linewidth=0.8)
    ax.plot([0, 1], [1, 0], color="#BBBBBB", linewidth=0.8, linestyle="--")
    ax.text(0.03, 0.97, "knows nothing", rotation=-45, fontsize=7, color="#777777", va="top")
    ax.text(0.02, 0.03, "one coin", rotation=45, fontsize=7, color="#777777", va="bottom")
    ax.errorbar(
        at[:, 0],
        at[:, 1],
        xerr=wide[0],
        yerr=wide[1],
        fmt="o",
        color=PALETTE[0],
        ecolor="#B5D3E7",
        elinewidth=0.8,
        markersize=4,
    )
    ax.set_xlim(-0.03, 1.03)
    ax.set_ylim(-0.03, 1.03)
    ax.set_aspect("equal")
    ax.set_xlabel("TNR: right on items of the lower label")
    ax.set_ylabel("TPR: right on items of the higher label")
    ax.set_title(title, fontsize=11)
    ax.spines[["top", "right"]].set_visible(False)
    with warnings.catch_warnings():
        # Of letters that the font lacks it is the figure's reader who is told.
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        _name_points(figure, ax, at, [str(name) for name in table["judge"]], named)
    return figure


def _name_points(
    figure: Figure,
    ax: Axes,
    at: Float[np.ndarray, "judge 2"],
    names: Sequence[str],
    most: int,
) -> None:
    """Write up to `most` names where they hide no point and no other name."""
    figure.draw_without_rendering()  # places the axes, so that it is known where names would stand
    centres, room = ax.transData.transform(at), POINT * figure.dpi / 72
    texts = [text.get_window_extent().extents for text in ax.texts]
    taken = np.concatenate(
        [np.hstack([centres - room, centres + room]), np.reshape(texts, (-1, 4))]
    )
    x0, y0, x1, y1 = ax.bbox.extents
    free = most
    for j in islice(_outstanding(at), TRIED * most):
        if not free:
            break
        places = BESIDE if at[j, 0] > 0.4 else (BESIDE[1], BESIDE[0], *BESIDE[2:])
        for dx, dy in places:
            name = ax.annotate(
                names[j],
                at[j],
                xytext=(dx, dy),
                textcoords="offset points",
                fontsize=7,
                ha="right" if dx < 0 else "left" if dx > 0 else "center",
            )
            own = name.get_window_extent().extents
            inside = own[0] >= x0 and own[1] >= y0 and own[2] <= x1 and own[3] <= y1
            if inside and not ((own[:2] < taken[:, 2:]) & (own[2:] > taken[:, :2])).all(1).any():
                taken = np.vstack([taken, own])
                free -= 1
                break
            name.remove()


def _outstanding(at: Float[np.ndarray, "judge 2"]) -> Iterator[int]:
    """Yield points, each as far as can be from the middle and from those before it."""
    clear = np.nan_to_num(np.linalg.norm(at - np.nanmedian(at, axis=0), axis=1), nan=-1.0)
    while clear.max() >= 0:
        j = int(clear.argmax())
        yield j
        clear = np.minimum(clear, np.nan_to_num(np.linalg.norm(at - at[j], axis=1)))
        clear[j] = -1.0


def reliability_diagrams(
    panels: Mapping[str, Mapping[str, Reliability]],
    *,
    xlabel: str = "predicted probability",
    ylabel: str = "observed frequency",
    title: str,
    columns: int = 4,
) -> Figure:
    """Return observed frequency against predicted probability: a panel per group, a line per method.

    The area of a point is its bin's share of the items; empty bins are not drawn.
    """
    figure, axes = _grid(len(panels), 3.5, 3.6, columns)
    for ax, (name, methods) in zip(axes, panels.items(), strict=True):
        ax.plot([0, 1], [0, 1], color="black", linewidth=0.8, linestyle=":")
        for place, (method, found) in enumerate(methods.items()):
            mass, predicted, observed = (np.asarray(part) for part in found)
            here = mass > 0
            style = _style(method, place)
            ax.plot(predicted[here], observed[here], color=style["color"], linewidth=1.0)
            ax.scatter(
                predicted[here],
                observed[here],
                s=6 + 250 * mass[here] / mass.sum(),
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
        _tidy(ax)
    _legend_below(figure, axes, size=40)
    figure.suptitle(title, fontsize=11)
    return figure


def accuracy_coverage(
    panels: Mapping[str, Mapping[str, AccuracyCurve]],
    *,
    title: str,
    columns: int = 4,
) -> Figure:
    """Return the accuracy on the most confident items against the share kept, a line per method."""
    figure, axes = _grid(len(panels), 3.7, 3.1, columns)
    for ax, (name, methods) in zip(axes, panels.items(), strict=True):
        for place, (method, curve) in enumerate(methods.items()):
            ax.plot(
                np.asarray(curve.coverage),
                np.asarray(curve.accuracy),
                label=method,
                linewidth=1.4,
                markevery=0.2,
                markersize=4,
                **_style(method, place),
            )
        ax.set_xlim(0, 1.02)
        ax.set_title(name, fontsize=10)
        ax.set_xlabel("share of items kept")
        ax.set_ylabel("accuracy on them")
        _tidy(ax)
    _legend_below(figure, axes)
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
    """Return how ranks from 0 to `kept` fall: histogram above, distribution minus uniform below.

    Parameters
    ----------
    given
        The ranks of each quantity, a column of the figure each.
    kept
        The highest rank.
    band
        How many ranks may be at most r, for all r below `kept` at once.
    n_bins
        Bins of the histogram, a divisor of `kept` + 1.
    """
    across = min(len(given), 5)
    down = -(-len(given) // across)
    figure = Figure(figsize=(2.5 * across, 3.4 * down + 0.5), layout="constrained")
    axes = figure.subplots(2 * down, across, squeeze=False)
    at = (np.arange(kept) + 1) / (kept + 1)
    for place, (name, values) in enumerate(given.items()):
        top, bottom = (axes[2 * (place // across) + row, place % across] for row in (0, 1))
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
            ax.set_ylabel(label if place % across == 0 else "", fontsize=8)
            ax.tick_params(labelsize=7)
            _tidy(ax)
    for place in range(len(given), down * across):
        for row in (0, 1):
            axes[2 * (place // across) + row, place % across].remove()
    _legend_below(figure, [axes[1, 0]])
    figure.suptitle(title, fontsize=11)
    return figure


def coverage_panels(table: pd.DataFrame, *, title: str) -> Figure:
    """Return actual minus nominal coverage: a panel per `interval`, a line per `data` in it.

    Needs columns `interval`, `data`, `level`, `coverage` and `replays`. Grey is where 95 % of the
    shares of so many trials fall if the interval is right, for the source with the fewest.
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
        for place, (source, line) in enumerate(panel.groupby("data", sort=False)):
            off = line["coverage"] - line["level"]
            style = {"color": PALETTE[place], "marker": MARKERS[place]}
            ax.plot(line["level"], off, label=source, linewidth=1.1, markersize=4, **style)
        ax.set_title(textwrap.fill(name, 34), fontsize=8)
        ax.set_xticks(level)
        ax.tick_params(labelsize=7)
        ax.legend(fontsize=5.5, frameon=False)
        _tidy(ax)
    for ax in axes.flat[len(names) :]:
        ax.remove()
    figure.supxlabel("nominal coverage", fontsize=9)
    figure.supylabel("actual minus nominal", fontsize=9)
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
        if len(curve.size) == 1:
            ax.vlines(curve.size, curve.low, curve.high, color=shade, linewidth=1.2)
    sizes = next(iter(curves.values())).size
    ax.set_xticks(sizes[:: -(-len(sizes) // MOST_TICKS)])
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
