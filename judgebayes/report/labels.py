"""The report's section on labels: the expected benefit of more labels."""

from functools import partial

import numpy as np

from judgebayes.majority.counts import ErrorCurve
from judgebayes.measures.significance import Interval
from judgebayes.plots.curves import error_curves
from judgebayes.plots.style import Figure
from judgebayes.report.figures import drawing
from judgebayes.report.page import Block, Paragraph, Row, Section, Table
from judgebayes.sentence import with_interval
from judgebayes.workflow.calibration import Calibration
from judgebayes.workflow.comparing import Growth


def labels_section(result: Calibration, curve: Growth | None) -> Section:
    """Return the section on more labels: scores measured with fewer labels.

    `curve` is None without labels, or if all its scores are the same.
    """
    labels, method = result.given.labels, result.choice.name
    n_labels, n_items = int((labels >= 0).sum()), len(labels)
    blocks: list[Block] = [
        Paragraph(
            f"{n_labels} labels are too few to measure how the results improve with their "
            "number: this needs about 25; 50 to 100 are usually enough for calibration."
        )
    ]
    if curve is not None and len(curve.labels) > 1:
        words = _gain_words(curve, method, more=n_items > n_labels)
        blocks = [*map(Paragraph, words), *_curve_blocks(curve, method)]
    return Section("The effect of more labels", blocks, name="labels")


def _gain_words(curve: Growth, method: str, *, more: bool) -> list[str]:
    """Return sentences on the effect of the last doubling of the labels on probabilities and decisions.

    `more` states whether there are unlabelled items.
    """
    half, full = curve.labels[-2:]
    parts = [
        (name, what, gain)
        for name, what, gain in (
            ("held-out NLL", "probabilities", curve.gain),
            ("mean loss of the decisions", "decisions", curve.loss_gain),
        )
        if np.isfinite(gain.mean)
    ]
    sentences = [
        f"{method} was also fitted on half, a quarter, ... of the labels of every split, and scored "
        f"on the same held-out labels."
    ]
    sentences += [
        f"From {half} to {full} labels the {name} {_change(gain, what)}"
        for name, what, gain in parts
    ]
    if more and not any(gain.low > 0 for _, _, gain in parts):
        sentences.append(
            "More labels would narrow the intervals, with the square root of their number."
        )
    return sentences


def _change(gain: Interval, what: str) -> str:
    if gain.low > 0:
        by = with_interval(gain, "z.3f")
        return f"fell by {by}: more labels still make the {what} better."
    if gain.high < 0:
        by = with_interval(gain.negative(), "z.3f")
        return f"rose by {by}: more labels of this kind do not make the {what} better."
    if gain.low == gain.high == 0:
        return f"did not change: there is no sign that more labels would make the {what} better."
    return (
        f"changed by {with_interval(gain.negative(), '+z.3f')}, which may be chance: there is no clear "
        f"sign that more labels would make the {what} better."
    )


def _curve_blocks(curve: Growth, method: str) -> list[Block]:
    rows = [
        (f"{n}", with_interval(nll), with_interval(loss))
        for n, nll, loss in zip(curve.labels, curve.nll, curve.loss, strict=True)
    ]
    table = Table(
        "Held-out scores by the number of labels [95 %]", ("labels", "NLL", "mean loss"), rows
    )
    parts = {"held-out NLL": curve.nll, "mean loss of the decisions": curve.loss}
    drawings = []
    for number, (name, scores) in enumerate(parts.items()):
        points = [
            (n, score)
            for n, score in zip(curve.labels, scores, strict=True)
            if np.isfinite(score.mean)
        ]
        if len(points) < 2:
            continue
        mean, low, high = np.array([score for _, score in points]).T
        size = np.array([n for n, _ in points])
        line = ErrorCurve(size, mean, low, high, np.zeros(len(size), bool))
        drawings.append(
            drawing(
                partial(_growth, {method: line}, name),
                f"growth-{number}",
                f"{name} by the number of labels",
                "; ".join(f"{n} labels: {with_interval(score)}" for n, score in points),
                f"{name.capitalize()}, with 95 % intervals.".replace("nll", "NLL"),
            )
        )
    return [Row(drawings), table]


def _growth(lines: dict[str, ErrorCurve], name: str) -> Figure:
    figure = error_curves(lines, title="", xlabel="labels", ylabel=name)
    figure.set_size_inches(3.4, 2.7)
    return figure
