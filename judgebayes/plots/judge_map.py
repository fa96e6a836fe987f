"""The map of a panel's judges."""

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes

from judgebayes.errors import JudgeBayesError
from judgebayes.plots.series import intervals
from judgebayes.plots.style import PALETTE, Figure


def judge_map(
    table: pd.DataFrame, *, title: str, named: int = 8, size: tuple[float, float] = (6.4, 6.0)
) -> Figure:
    """Plot the judges' TPR against TNR with 90 % intervals, or their sorted accuracies.

    `table` is the result of `judgebayes.panel.judges.judge_table`. With two classes every judge is a
    point. A judge on the diagonal is equally good on both labels (the one-coin model); a judge on the
    dashed line has no information. `named` judges are named: those farthest from the panel's middle and
    from each other. `size` is that of the map in inches. With more classes, or labels of only one class,
    each judge has a row with its accuracy.

    Raises
    ------
    JudgeBayesError
        If no judge's accuracy is known.
    """
    if not np.isfinite(table["accuracy"]).any():
        raise JudgeBayesError(
            "The plot of the judges shows their accuracy, so it needs labels of some items."
        )
    if "tpr" not in table or not np.isfinite(table[["tnr", "tpr"]]).to_numpy().all(1).any():
        shown = table.rename(
            columns={"accuracy": "value", "accuracy_low": "low", "accuracy_high": "high"}
        ).sort_values("value", ascending=False)
        shown = shown.assign(series="accuracy")
        return intervals(shown, label="judge", series="series", xlabel="accuracy", title=title)
    figure = Figure(figsize=size, layout="constrained")
    ax = figure.subplots()
    points = table[["tnr", "tpr"]].to_numpy(float)
    interval_arms = [
        np.stack([table[name] - table[f"{name}_low"], table[f"{name}_high"] - table[name]])
        for name in ("tnr", "tpr")
    ]
    # At shares of 0 and 1 the posterior interval does not contain the share.
    error_bars = [np.maximum(np.nan_to_num(r), 0) for r in interval_arms]
    ax.plot([0, 1], [0, 1], color="#BBBBBB", linewidth=0.8)
    ax.plot([0, 1], [1, 0], color="#BBBBBB", linewidth=0.8, linestyle="--")
    ax.text(0.03, 0.97, "knows nothing", rotation=-45, fontsize=7, color="#777777", va="top")
    ax.text(0.02, 0.03, "one coin", rotation=45, fontsize=7, color="#777777", va="bottom")
    ax.errorbar(
        points[:, 0],
        points[:, 1],
        xerr=error_bars[0],
        yerr=error_bars[1],
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
    _name_points(ax, points, [str(name) for name in table["judge"]], named)
    return figure


def _name_points(
    ax: Axes, at: Float[np.ndarray, "judge 2"], names: Sequence[str], most: int
) -> None:
    """Write the names of `most` points beside them, on the side without the panel's middle."""
    middle = np.nanmedian(at[:, 0])
    for j in islice(_by_distance(at), most):
        side, align = (9, "left") if at[j, 0] > middle else (-9, "right")
        ax.annotate(names[j], at[j], (side, -3), textcoords="offset points", fontsize=7, ha=align)


def _by_distance(at: Float[np.ndarray, "judge 2"]) -> Iterator[int]:
    """Yield points in order of their distance from the middle and from earlier points."""
    distance = np.nan_to_num(np.linalg.norm(at - np.nanmedian(at, axis=0), axis=1), nan=-1.0)
    while distance.max() >= 0:
        j = int(distance.argmax())
        yield j
        distance = np.minimum(distance, np.nan_to_num(np.linalg.norm(at - at[j], axis=1)))
        distance[j] = -1.0
