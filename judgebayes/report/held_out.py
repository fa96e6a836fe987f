"""The report's section on the probabilities and their calibration on held-out labels."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from judgebayes.measures.reliability import confidence_bins, reliability
from judgebayes.measures.significance import Interval
from judgebayes.plots.curves import reliability_diagrams
from judgebayes.report.figures import inline_svg, names_as_they_are
from judgebayes.report.page import Drawing, Paragraph, Row, Section, Table

BINS = 10
MAX_DIAGRAMS = 5


class HeldOut(NamedTuple):
    """A method's results on held-out items, flat over splits (once per split that holds it out)."""

    items: Int[np.ndarray, " answer"]
    labels: Int[np.ndarray, " answer"]
    log_probs: Float[np.ndarray, "answer class"]
    groups: Int[np.ndarray, " all_items"] | None
    splits: int


def with_interval(estimate: Interval, *, percent: bool = False) -> str:
    """Return an estimate and its interval as text; a hyphen if it is not a number."""
    if not np.isfinite(estimate.mean):
        return "-"
    form = "{:.1%}" if percent else "{:z.3f}"
    mean, low, high = (form.format(value) for value in estimate)
    return f"{mean} [{low}, {high}]" if np.isfinite([estimate.low, estimate.high]).all() else mean


def probabilities_section(
    held_out: HeldOut | None, classes: Sequence[str], method: str, *, degenerate: bool
) -> Section:
    """Return the calibration of the probabilities on held-out labels, as figures and a table."""
    title, name = "Calibrated probabilities", "probabilities"
    if held_out is None or degenerate:
        why = (
            "No labels were held out, so the calibration of the probabilities is unknown."
            if held_out is None
            else "The labels are all, or nearly all, the same: every map of the votes looks perfectly "
            "calibrated on them, so a diagram would be uninformative."
        )
        return Section(title, [Paragraph(why)], name=name)
    which: list[int | None] = [1] if len(classes) == 2 else list(range(len(classes)))
    if len(which) > MAX_DIAGRAMS:
        which = [None]
    drawings = [_diagram(held_out, of, classes, method) for of in which]
    return Section(
        title,
        [
            Paragraph(
                "If probabilities are calibrated, events with a probability of 70 % occur in about "
                f"70 % of cases. Below is the check on held-out labels, over {held_out.splits} splits: "
                f"{method} was fitted without them. The table groups the predictions by the probability "
                "of the most probable class. An item counts once for every split that held it out; "
                "in the intervals, it counts once."
            ),
            Row(drawings),
            _confidence_table(held_out),
        ],
        name=name,
    )


def _diagram(held_out: HeldOut, of: int | None, classes: Sequence[str], method: str) -> Drawing:
    reliability_bins = reliability(held_out.log_probs, held_out.labels, bins=BINS, of=of)
    mass, predicted, observed = (np.asarray(part) for part in reliability_bins)
    what = "the most probable class" if of is None else f"class {classes[of]}"
    calibration_error = float((mass * np.abs(predicted - observed)).sum() / mass.sum())
    nonempty = np.flatnonzero(mass > 0)
    description = "; ".join(
        f"predicted {predicted[b]:.2f}, observed {observed[b]:.2f}" for b in nonempty
    )
    with names_as_they_are():
        figure = reliability_diagrams({"": {method: reliability_bins}}, title="")
        for legend in list(figure.legends):
            legend.remove()
        figure.set_size_inches(3.1, 3.05)
        svg = inline_svg(
            figure,
            f"reliability-{'top' if of is None else of}",
            f"Observed frequency against predicted probability of {what}",
            f"By bin of the predicted probability: {description}.",
        )
    return Drawing(
        svg,
        f"Probability of {what}: mean distance from the diagonal {calibration_error:.3f}. The area "
        "of a point is its share of the predictions.",
    )


def _confidence_table(held_out: HeldOut) -> Table:
    """Return how often the most probable class was right, by its probability."""
    table_bins = confidence_bins(
        held_out.log_probs, held_out.labels, held_out.items, held_out.groups, bins=BINS
    )
    rows = [
        (
            f"{b.place / BINS:.0%} to {(b.place + 1) / BINS:.0%}",
            f"{b.items:,}",
            f"{b.share:.0%}",
            f"{b.predicted:.1%}",
            with_interval(b.right, percent=True),
        )
        for b in table_bins
    ]
    return Table(
        "How often the most probable class was the label, by its probability [95 %]",
        ("probability", "items", "share", "predicted", "right"),
        rows[::-1],
    )
