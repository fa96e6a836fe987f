"""The map of a panel's judges."""

import warnings
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes

from judgebayes.errors import JudgeBayesError
from judgebayes.plots.series import intervals
from judgebayes.plots.style import PALETTE, Figure

OFFSETS = ((-9, 6), (9, -3), (9, 6), (-9, -12), (9, -12), (0, 9), (0, -15))
"""Possible offsets of a name from its point, in points: left, right, above, below."""

POINT = 4.0
"""Space that a point of a map takes on every side, in points."""

TRIES_PER_NAME = 5
"""The number of points to try, per name that a map may contain."""


def judge_map(
    table: pd.DataFrame, *, title: str, named: int = 8, size: tuple[float, float] = (6.4, 6.0)
) -> Figure:
    """Plot the judges' TPR against TNR with 90 % intervals, or their sorted accuracies.

    `table` is the result of `judgebayes.panel.judges.judge_table`. With two classes every judge is a
    point. A judge on the diagonal is equally good on both labels (the one-coin model); a judge on the
    dashed line has no information. Up to `named` judges are named if there is space beside their points,
    those farthest from the panel's middle and from each other first. `size` is that of the map in
    inches. With more classes, or labels of only one class, each judge has a row with its accuracy.

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
    with warnings.catch_warnings():
        # A glyph that the font lacks is visible in the figure, so the warning is not needed.
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        _name_points(figure, ax, points, [str(name) for name in table["judge"]], named)
    return figure


def _name_points(
    figure: Figure,
    ax: Axes,
    at: Float[np.ndarray, "judge 2"],
    names: Sequence[str],
    most: int,
) -> None:
    """Write up to `most` names where they cover no point and no other name."""
    figure.draw_without_rendering()  # lays out the axes, so that positions of names are known
    centres, room = ax.transData.transform(at), POINT * figure.dpi / 72
    texts = [text.get_window_extent().extents for text in ax.texts]
    occupied = np.concatenate(
        [np.hstack([centres - room, centres + room]), np.reshape(texts, (-1, 4))]
    )
    x0, y0, x1, y1 = ax.bbox.extents
    remaining = most
    for j in islice(_by_distance(at), TRIES_PER_NAME * most):
        if not remaining:
            break
        places = OFFSETS if at[j, 0] > 0.4 else (OFFSETS[1], OFFSETS[0], *OFFSETS[2:])
        for dx, dy in places:
            name = ax.annotate(
                names[j],
                at[j],
                xytext=(dx, dy),
                textcoords="offset points",
                fontsize=7,
                ha="right" if dx < 0 else "left" if dx > 0 else "center",
            )
            box = name.get_window_extent().extents
            inside = box[0] >= x0 and box[1] >= y0 and box[2] <= x1 and box[3] <= y1
            if (
                inside
                and not ((box[:2] < occupied[:, 2:]) & (box[2:] > occupied[:, :2])).all(1).any()
            ):
                occupied = np.vstack([occupied, box])
                remaining -= 1
                break
            name.remove()


def _by_distance(at: Float[np.ndarray, "judge 2"]) -> Iterator[int]:
    """Yield points in order of their distance from the middle and from earlier points."""
    distance = np.nan_to_num(np.linalg.norm(at - np.nanmedian(at, axis=0), axis=1), nan=-1.0)
    while distance.max() >= 0:
        j = int(distance.argmax())
        yield j
        distance = np.minimum(distance, np.nan_to_num(np.linalg.norm(at - at[j], axis=1)))
        distance[j] = -1.0
