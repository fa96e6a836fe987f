"""Draw the README's picture from the example, in a light and a dark version.

python docs/images/decisions.py    writes decisions-light.svg and decisions-dark.svg beside this file
"""

import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.colors
import numpy as np
from matplotlib.figure import Figure
from matplotlib.text import Text

import judgebayes as jb
from judgebayes.experiments.getting import example_tables
from judgebayes.experiments.plots import decision_regions

VOTES = 8
INK = {"light": "#1f2328", "dark": "#e6edf3"}
TIE = {"light": "#bbbbbb", "dark": "#8b949e"}


def picture() -> Figure:
    """Return what a majority vote and a fit to labels decide, with their held-out errors."""
    rows, known = example_tables(seed=0)
    table = jb.calibrate(rows, known, method="davidson").tables["held out"]
    error = table.set_index("method")["mae"]
    votes, coding = jb.encode(rows, sample="sample")
    labels = coding.labels(known)
    loss = jb.absolute_loss(3)

    def rule(fitted):
        return lambda counts: np.asarray(jb.bayes_action(fitted(jb.from_counts(counts)), loss))

    majority, davidson = jb.MajorityVote().fit(votes, labels), jb.Davidson().fit(votes, labels)
    rules = {
        f"majority vote: mean error {error['sc']:.2f}": rule(majority),
        f"calibrated on 100 labels: {error['davidson']:.2f}": rule(davidson),
    }
    return decision_regions(rules, VOTES, title="What 8 votes of one judge decide")


def recolour(figure: Figure, theme: str) -> None:
    """Give text, axes and ties the colours of a theme."""
    for text in figure.findobj(Text):
        text.set_color(INK[theme])
    for axes in figure.axes:
        axes.tick_params(color=INK[theme])
        axes.spines[:].set_color(INK[theme])
    tie = mpl.colors.to_hex(TIE["light"])
    for marks in figure.findobj(mpl.collections.PathCollection):
        if mpl.colors.to_hex(marks.get_facecolor()[0]) == tie:
            marks.set_facecolor(TIE[theme])


def main(folder: Path) -> None:
    """Write both versions into a folder."""
    mpl.rcParams["svg.hashsalt"] = "judgebayes"
    figure = picture()
    for theme in ("light", "dark"):
        recolour(figure, theme)
        path = folder / f"decisions-{theme}.svg"
        figure.savefig(path, transparent=True, metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
