"""Where the judges of a panel stand."""

import warnings
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from judgebayes.errors import JudgeBayesError
from judgebayes.plots.series import intervals
from judgebayes.plots.style import PALETTE

__all__ = ["judge_map"]

BESIDE = ((-9, 6), (9, -3), (9, 6), (-9, -12), (9, -12), (0, 9), (0, -15))
"""Where the name of a point may stand, in points: to its left, to its right, above, below."""

POINT = 4.0
"""Room that a point of a map takes to every side, in points."""

TRIED = 5
"""For each name that a map may hold, so many points are tried."""


def judge_map(
    table: pd.DataFrame, *, title: str, named: int = 8, size: tuple[float, float] = (6.4, 6.0)
) -> Figure:
    """Return where judges stand: TPR against TNR with 90 % intervals, or accuracies in order.

    `table` is what `judgebayes.panel.judges.judge_table` returned. With two classes every
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
