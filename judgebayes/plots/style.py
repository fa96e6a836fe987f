"""Shared style of figures: colours of methods, markers, panels, legends."""

from collections.abc import Sequence
from typing import Any, Literal

import matplotlib.figure
from matplotlib import rc_context
from matplotlib.axes import Axes

from judgebayes.errors import JudgeBayesError

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
