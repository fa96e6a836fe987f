"""The report's section on decisions: by class, as sets, and the items to review first.

With the effect of sending items to a person: the risk of the remaining decisions.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Bool

from judgebayes.arrays import ItemFloats, ItemInts
from judgebayes.plots.curves import risk_by_share
from judgebayes.report.figures import inline_svg, names_as_they_are
from judgebayes.report.page import Block, Drawing, Paragraph, Section, Table
from judgebayes.report.text import percent_of, presentable
from judgebayes.sentence import percent
from judgebayes.workflow.answers import set_name

DESCRIBED_SHARES = (0.25, 0.5, 0.75, 1.0)
"""Shares whose risk is in the text description of the curve."""


def risk_drawing(curve: pd.DataFrame, cost: float | None) -> Drawing:
    """Return the curve of risk and coverage (`workflow.abstaining.risk_curve`) with its caption."""
    descriptions = []
    for share in DESCRIBED_SHARES:
        row = curve[curve["decided"] >= share - 1e-9].iloc[0]
        descriptions.append(f"{percent(row['decided'])} decided, mean loss {row['risk']:.3f}")
    with names_as_they_are():
        svg = inline_svg(
            risk_by_share(curve, cost=cost, title=""),
            "risk-by-share",
            "Mean loss of the most certain decisions on held-out labels by the share of items decided",
            "; ".join(descriptions) + ".",
        )
    note = (
        "--abstain-cost C sends items whose expected loss is above C to a person."
        if cost is None
        else f"The point is --abstain-cost {cost:g}: the items to its right go to a person."
    )
    return Drawing(
        svg, f"Mean loss on held-out labels if only the most certain decisions are used. {note}"
    )


FIRST_ITEMS = 10

UNCERTAIN = 0.01
"""An item is uncertain if its decision's expected loss is above this."""


def decisions_section(
    answers: pd.DataFrame,
    classes: Sequence[str],
    decisions: ItemInts,
    expected_loss: ItemFloats | None,
    sets: Bool[np.ndarray, "item class"] | None,
    set_words: Sequence[str],
    loss: str,
    labelled: Bool[np.ndarray, " item"],
    sent: Bool[np.ndarray, " item"] | None = None,
    risk: Sequence[Block] = (),
    strata: Table | None = None,
) -> Section:
    """Return the decisions by class, the conformal sets, and the items to review first.

    `strata` is the table of the sets' coverage by stratum. `sent` marks the items that go to a person,
    and `risk` contains the blocks on the effect of this.

    `answers` is the result of `Coding.decode`: the item, then a column of probabilities per class.
    `expected_loss` is None for a rule, which gives no probability of an error.
    """
    sent = np.zeros(len(decisions), bool) if sent is None else sent
    n_decided = np.bincount(decisions[~sent], minlength=len(classes))
    rows: list[tuple[str, ...]] = []
    for k, name in enumerate(classes):
        decided = (decisions == k) & ~sent
        mean = answers.iloc[:, 1 + k][decided].mean() if decided.any() else np.nan
        cells = [f"{mean:.1%}" if np.isfinite(mean) else "-"]
        if expected_loss is not None:
            cells.append(f"{expected_loss[decided].mean():z.3f}" if decided.any() else "-")
        rows.append(
            (name, f"{n_decided[k]:,}", percent_of(int(n_decided[k]), len(decisions)), *cells)
        )
    if sent.any():
        cells = ["-"] if expected_loss is None else ["-", f"{expected_loss[sent].mean():z.3f}"]
        rows.append(("person", f"{sent.sum():,}", percent_of(int(sent.sum()), len(sent)), *cells))
    head = ["decision", "items", "share", "mean probability"]
    if expected_loss is not None:
        head.append("mean expected loss")
    blocks: list[Block] = [
        Paragraph(
            f"Each item gets the decision with the least expected loss ({loss})."
            + (
                f" Over all {len(decisions):,} items the mean expected loss is "
                f"{expected_loss.mean():z.3f}."
                if expected_loss is not None
                else " This method is a rule, which gives no probability of an error."
            )
        ),
        Table("Decisions", head, rows),
        *risk,
    ]
    blocks += map(Paragraph, set_words)
    blocks += [] if sets is None else [_sets_table(sets, classes)]
    blocks += [] if strata is None else [strata]
    if expected_loss is not None:
        blocks.append(_first_items(answers, classes, decisions, expected_loss, sets, labelled))
    return Section("Decisions", blocks, name="decisions")


def _sets_table(sets: Bool[np.ndarray, "item class"], classes: Sequence[str]) -> Table:
    kinds, counts = np.unique(sets, axis=0, return_counts=True)
    order = np.lexsort((-counts, kinds.sum(1)))
    rows = [
        (set_name(kinds[k], classes), f"{counts[k]:,}", percent_of(int(counts[k]), len(sets)))
        for k in order
    ]
    return Table("Conformal sets, the smallest first", ("set", "items", "share"), rows)


def _first_items(
    answers: pd.DataFrame,
    classes: Sequence[str],
    decisions: ItemInts,
    expected_loss: ItemFloats,
    sets: Bool[np.ndarray, "item class"] | None,
    labelled: Bool[np.ndarray, " item"],
) -> Table | Paragraph:
    """Return the items with the largest expected loss (the size of a set does not measure certainty)."""
    uncertainty = np.where(labelled & ~labelled.all(), -np.inf, expected_loss)
    uncertain = int((uncertainty > UNCERTAIN).sum())
    which = "" if labelled.all() else " without a label"
    if not uncertain:
        return Paragraph(
            f"No item{which} has an expected loss above {UNCERTAIN:g}: by the probabilities, none "
            "needs a review."
        )
    first = np.argsort(-uncertainty, kind="stable")[: min(FIRST_ITEMS, uncertain)]
    names = presentable(answers.iloc[first, 0])
    rows = [
        (
            name,
            *(f"{p:.2f}" for p in answers.iloc[i, 1 : 1 + len(classes)]),
            classes[decisions[i]],
            f"{expected_loss[i]:z.3f}",
            *([set_name(sets[i], classes)] if sets is not None else []),
        )
        for name, i in zip(names, first.tolist(), strict=True)
    ]
    head = ["item", *(f"p({name})" for name in classes), "decision", "expected loss"]
    return Table(
        f"Items{which} with an expected loss above {UNCERTAIN:g}: "
        + (f"the {len(rows)} least certain of {uncertain:,}" if uncertain > len(rows) else "all")
        + ", review these first",
        [*head, *(["set"] if sets is not None else [])],
        rows,
        words=(len(classes) + 1, *([len(classes) + 3] if sets is not None else [])),
    )
