"""The report's section on the probabilities and their calibration on held-out labels."""

from collections.abc import Sequence

import numpy as np

from judgebayes.arrays import ItemInts
from judgebayes.evaluate.one_split import Evaluation
from judgebayes.measures.reliability import confidence_bins, reliability
from judgebayes.plots.curves import reliability_diagrams
from judgebayes.plots.style import Figure as Picture
from judgebayes.sentence import with_interval
from judgebayes.show.page import Block, Paragraph, Plot, Section, SideBySide, Table
from judgebayes.workflow.calibration import Calibration

BINS = 10
MAX_DIAGRAMS = 5


def probabilities_section(result: Calibration) -> Section:
    """Return the calibration of the probabilities on held-out labels, as figures and a table."""
    compared, method = result.compared, result.choice.name
    blocks: list[Block] = [
        Paragraph("No labels were held out, so the calibration of the probabilities is unknown.")
    ]
    if compared is not None and result.hide_nll:
        blocks = [
            Paragraph(
                "The labels are all, or nearly all, the same: every map of the votes looks perfectly "
                "calibrated on them, so a diagram would be uninformative."
            )
        ]
    elif compared is not None:
        names = result.given.coding.classes.names
        blocks = held_out_blocks(compared.evaluations[method], compared.groups, names, method)
    return Section("Calibrated probabilities", blocks, name="probabilities")


def held_out_blocks(
    evaluation: Evaluation, groups: ItemInts | None, classes: Sequence[str], method: str
) -> list[Block]:
    """Return reliability diagrams, and how often the most probable class was right.

    `groups` has the group of every item, if items are in groups.
    """
    known = np.asarray(evaluation.labels) >= 0
    items, labels, log_probs = (
        np.asarray(part)[known]
        for part in (evaluation.items, evaluation.labels, evaluation.log_probs)
    )
    which: list[int | None] = [1] if len(classes) == 2 else list(range(len(classes)))
    if len(which) > MAX_DIAGRAMS:
        which = [None]
    rows = [
        (
            f"{b.place / BINS:.0%} to {(b.place + 1) / BINS:.0%}",
            f"{b.items:,}",
            f"{b.share:.0%}",
            f"{b.predicted:.1%}",
            with_interval(b.right, ".1%"),
        )
        for b in confidence_bins(log_probs, labels, items, groups, bins=BINS)
    ]
    return [
        Paragraph(
            "If probabilities are calibrated, events with a probability of 70 % occur in about "
            f"70 % of cases. Below is the check on held-out labels, over {len(known)} splits: "
            f"{method} was fitted without them. The table groups the predictions by the probability "
            "of the most probable class. An item counts once for every split that held it out; "
            "in the intervals, it counts once."
        ),
        SideBySide([_diagram(log_probs, labels, of, classes, method) for of in which]),
        Table(
            "How often the most probable class was the label, by its probability [95 %]",
            ("probability", "items", "share", "predicted", "right"),
            rows[::-1],
        ),
    ]


def _diagram(
    log_probs: np.ndarray, labels: np.ndarray, of: int | None, classes: Sequence[str], method: str
) -> Plot:
    bins = reliability(log_probs, labels, bins=BINS, of=of)
    mass, predicted, observed = (np.asarray(part) for part in bins)
    what = "the most probable class" if of is None else f"class {classes[of]}"
    calibration_error = float((mass * np.abs(predicted - observed)).sum() / mass.sum())
    description = "; ".join(
        f"predicted {predicted[b]:.2f}, observed {observed[b]:.2f}" for b in np.flatnonzero(mass)
    )

    def draw() -> Picture:
        figure = reliability_diagrams({"": {method: bins}}, title="")
        figure.set_size_inches(3.1, 3.05)
        return figure

    return Plot(
        draw,
        f"reliability-{'top' if of is None else of}",
        f"Observed frequency against predicted probability of {what}",
        f"By bin of the predicted probability: {description}.",
        f"Probability of {what}: mean distance from the diagonal {calibration_error:.3f}. The area "
        "of a point is its share of the predictions.",
    )
