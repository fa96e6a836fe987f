"""The report's section on labels: the expected benefit of more labels."""

import numpy as np

from judgebayes.majority.counts import ErrorCurve
from judgebayes.plots.curves import error_curves
from judgebayes.plots.style import Figure as Picture
from judgebayes.sentence import with_interval
from judgebayes.show.page import Block, Paragraph, Plot, Section, Table
from judgebayes.workflow.calibration import Calibration
from judgebayes.workflow.comparing import Growth


def labels_section(result: Calibration, curve: Growth | None) -> Section:
    """Return the section on more labels: scores measured with fewer labels.

    `curve` is None without labels, or if all its scores are the same.
    """
    n_labels = int((result.given.labels >= 0).sum())
    blocks: list[Block] = [
        Paragraph(
            f"{n_labels} labels are too few to measure how the results improve with their "
            "number: this needs about 25; 50 to 100 are usually enough for calibration."
        )
    ]
    if curve is not None and len(curve.labels) > 1:
        blocks = _curve_blocks(curve, result.choice.name)
    return Section("The effect of more labels", blocks, name="labels")


def _change(curve: Growth) -> str:
    """Return what the last doubling of the labels changed, in a sentence."""
    gain, start = curve.gain, "From {} to {} labels the held-out NLL".format(*curve.labels[-2:])
    if not np.isfinite(gain.mean):
        return ""
    if gain.low > 0:
        by = with_interval(gain, "z.3f")
        return f"{start} fell by {by}: more labels still make the probabilities better."
    by = with_interval(gain.negative(), "+z.3f")
    return (
        f"{start} changed by {by}: there is no clear sign that more labels of this kind would make the "
        "probabilities better."
    )


def _curve_blocks(curve: Growth, method: str) -> list[Block]:
    words = (
        f"{method} was also fitted on half, a quarter, ... of the labels of every split, and scored on "
        f"the same held-out labels. {_change(curve)}"
    )
    cells = [(f"{n}", with_interval(nll)) for n, nll in zip(curve.labels, curve.nll, strict=True)]
    table = Table("Held-out NLL by the number of labels [95 %]", ("labels", "NLL"), cells)
    finite = [
        (n, nll) for n, nll in zip(curve.labels, curve.nll, strict=True) if np.isfinite(nll.mean)
    ]
    if len(finite) < 2:
        return [Paragraph(words), table]
    mean, low, high = np.array([nll for _, nll in finite]).T
    size = np.array([n for n, _ in finite])
    line = ErrorCurve(size, mean, low, high, np.zeros(len(size), bool))

    def draw() -> Picture:
        figure = error_curves({method: line}, title="", xlabel="labels", ylabel="held-out NLL")
        figure.set_size_inches(3.4, 2.7)
        return figure

    shown = Plot(
        draw,
        "growth",
        "Held-out NLL by the number of labels",
        "; ".join(f"{n} labels: {with_interval(nll)}" for n, nll in finite),
        "Held-out NLL, with 95 % intervals.",
    )
    return [Paragraph(words), shown, table]
