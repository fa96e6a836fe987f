"""The section of the labels: what more of them would buy."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from judgebayes.calibrators.conformal import coverage_law
from judgebayes.measures.significance import Interval, share_interval
from judgebayes.plots import curves
from judgebayes.report.figures import inline_svg, names_as_they_are
from judgebayes.report.held_out import with_interval
from judgebayes.report.page import Block, Drawing, Paragraph, Row, Section, Table

__all__ = ["Curve", "labels_section"]

COVERAGE_ITEMS = 10_000
"""So many new items that their own chance hardly matters to the coverage."""

THRESHOLD_SHARE = 1 / 3
"""Share of the labels that a conformal threshold is learnt from."""

MORE = (1, 2, 4)
"""How many times as many labels are spoken of."""


class Curve(NamedTuple):
    """Held-out scores of a method against the number of labels."""

    labels: Sequence[int]
    nll: Sequence[Interval]
    loss: Sequence[Interval]
    gain: Interval
    """What the last doubling took off the NLL; not finite where one of the two is not."""
    loss_gain: Interval
    """What it took off the loss of the decisions."""
    constant: tuple[float, float] | None
    """NLL and loss of always giving the same answer, fitted on all of them."""


def labels_section(
    curve: Curve | None,
    n_labels: int,
    n_items: int,
    accuracy: float | None,
    level: float | None,
    method: str,
) -> Section:
    """Return what more labels would buy: measured on fewer labels, and by law on more.

    `accuracy` is that of a judge in the middle of the panel, `level` that of the conformal sets. No
    more labels are spoken of than there are items.
    """
    blocks: list[Block] = []
    if curve is not None and len(curve.labels) > 1:
        blocks += [
            *map(Paragraph, _gain_words(curve, method, more=n_items > n_labels)),
            *_curve_blocks(curve, method),
        ]
    else:
        blocks.append(
            Paragraph(
                f"With {n_labels} labels there are too few to see how the answers improve with "
                "their number: about 25 are needed, 50 to 100 are usually enough to calibrate on."
            )
        )
    if n_labels:
        blocks += _law_blocks(n_labels, n_items, accuracy, level)
    return Section("What more labels would buy", blocks, name="labels")


def _gain_words(curve: Curve, method: str, *, more: bool) -> list[str]:
    """Return what the last doubling of the labels did to the probabilities, and to the decisions.

    `more` is whether there are items left to label.
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
    said = [
        f"{method} was fitted again on half, a quarter, ... of the labels of every split, and judged "
        f"on the same held-out labels."
    ]
    said += [
        f"From {half} to {full} labels the {name} {_change(gain, what)}"
        for name, what, gain in parts
    ]
    if more and not any(gain.low > 0 for _, _, gain in parts):
        said.append("More labels would narrow the intervals, as the last table says.")
    return said


def _change(gain: Interval, what: str) -> str:
    mean, low, high = gain
    if low > 0:
        return (
            f"fell by {mean:z.3f} [{low:z.3f}, {high:z.3f}]: more labels still make the "
            f"{what} better."
        )
    if high < 0:
        return (
            f"rose by {-mean:z.3f} [{-high:z.3f}, {-low:z.3f}]: more labels of this kind do not make "
            f"the {what} better."
        )
    if low == high == 0:
        return f"did not change: there is no sign that more labels would make the {what} better."
    return (
        f"changed by {-mean:+z.3f} [{-high:+z.3f}, {-low:+z.3f}], which may be chance: there is no "
        f"clear sign that more labels would make the {what} better."
    )


def _curve_blocks(curve: Curve, method: str) -> list[Block]:
    rows = [
        (f"{n}", with_interval(nll), with_interval(loss))
        for n, nll, loss in zip(curve.labels, curve.nll, curve.loss, strict=True)
    ]
    if curve.constant is not None:
        nll, loss = (f"{value:z.3f}" if np.isfinite(value) else "-" for value in curve.constant)
        rows.append((f"the best constant answer, {curve.labels[-1]}", nll, loss))
    table = Table(
        "Held-out scores by the number of labels [95 %]", ("labels", "NLL", "mean loss"), rows
    )
    parts = {"held-out NLL": curve.nll, "mean loss of the decisions": curve.loss}
    drawings = []
    for number, (name, found) in enumerate(parts.items()):
        points = [
            (n, each) for n, each in zip(curve.labels, found, strict=True) if np.isfinite(each.mean)
        ]
        if len(points) < 2:
            continue
        frame = pd.DataFrame([each for _, each in points]).rename(columns={"mean": "value"})
        frame = frame.assign(labels=[n for n, _ in points], method=method, metric="score", panel="")
        with names_as_they_are():
            figure = curves(
                frame,
                "labels",
                panel="panel",
                metric="score",
                xlabel="labels",
                ylabel=name,
                title="",
            )
            for legend in list(figure.legends):
                legend.remove()
            figure.set_size_inches(3.4, 2.7)
            spoken = "; ".join(f"{n} labels: {with_interval(each)}" for n, each in points)
            svg = inline_svg(figure, f"growth-{number}", f"{name} by the number of labels", spoken)
        drawings.append(
            Drawing(svg, f"{name.capitalize()}, with 95 % intervals.".replace("nll", "NLL"))
        )
    return [Row(drawings), table]


def _law_blocks(
    n_labels: int, n_items: int, accuracy: float | None, level: float | None
) -> list[Block]:
    head, columns = ["labels"], []
    sizes = sorted({min(times * n_labels, n_items) for times in MORE})
    if accuracy is not None:
        head.append(f"accuracy of a judge who is right {accuracy:.0%} of the time")
        columns.append([_accuracy_range(accuracy, n) for n in sizes])
    if level is not None:
        head.append(f"coverage of conformal sets at {level:.0%}")
        columns.append([_coverage_range(round(n * THRESHOLD_SHARE), level) for n in sizes])
    if not columns:
        return []
    rows = [
        (f"{n}{', as now' * (n == n_labels)}{', all items' * (n == n_items)}", *cells)
        for n, *cells in zip(sizes, *columns, strict=True)
    ]
    said = (
        "This much is known without trying: what is counted on labels has an interval that narrows "
        "with the square root of their number."
    )
    if n_items == n_labels:
        said += f" All {n_items} items are labelled: more labels need more items with votes."
    elif sizes[-1] == n_items:
        said += f" There are {n_items} items: more labels than that need more items with votes."
    if level is not None:
        said += (
            " The coverages are those of probabilities that differ from item to item: where many "
            "are alike, as few votes make them, sets cover more."
        )
    return [Paragraph(said), Table("Ranges that follow from the number of labels", head, rows)]


def _accuracy_range(accuracy: float, n: int) -> str:
    low, high = share_interval(np.asarray(n * accuracy), np.asarray(float(n)), level=0.9)
    return f"{low:.0%} to {high:.0%} (90 %)"


def _coverage_range(n: int, level: float) -> str:
    law = coverage_law(n, level, COVERAGE_ITEMS)
    if law.low == 1.0:
        return "every set holds every class"
    return f"{law.low:.0%} to {law.high:.0%} (95 %)"
