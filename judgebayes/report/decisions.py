"""The report's section on decisions: by class, as sets, and the items to review first."""

import numpy as np
import pandas as pd

from judgebayes.sentence import rounded
from judgebayes.show.page import Block, Paragraph, Section, Table
from judgebayes.workflow.calibration import Calibration
from judgebayes.workflow.losses import PERSON
from judgebayes.workflow.methods import traits_of

FIRST_ITEMS = 10
UNCERTAIN = 0.01
"""An item is uncertain if its decision's expected loss is above this."""


def decisions_section(result: Calibration) -> Section:
    """Return the decisions by class, the conformal sets, and the items to review first."""
    names, losses = result.given.coding.classes.names, result.losses
    answers, sets = result.answers, result.sets
    rule = traits_of(result.choice.name).rule or result.certain
    named = np.array([*names, PERSON])
    answers["decision"] = named[
        np.where(result.decisions.to_person, len(names), result.decisions.of_item)
    ]
    words = f"Each item gets the decision with the least expected loss ({losses.name} loss: "
    words += f"{losses.meaning}). " + (
        "This method is a rule, which gives no probability of an error."
        if rule
        else f"Over all {len(answers):,} items the mean expected loss is "
        f"{answers['expected_loss'].mean():z.3f}."
    )
    blocks: list[Block] = [Paragraph(words), _decisions_table(answers, result, rule)]
    if result.abstention is not None:
        blocks.append(Paragraph(result.abstention.sentence))
    if sets is not None:
        blocks += sets.blocks
        kinds = answers.assign(size=sets.inside.sum(1))[["size", "set"]].value_counts()
        rows = [
            (name, f"{n:,}", f"{n / len(answers):.1%}")
            for (_, name), n in sorted(kinds.items(), key=lambda kind: kind[0][0])
        ]
        head = ("set", "items", "share")
        blocks.append(Table("Conformal sets, the smallest first", head, rows))
    if not rule:
        blocks.append(first_items(answers, result.given.labels >= 0))
    return Section("Decisions", blocks, name="decisions")


def _decisions_table(answers: pd.DataFrame, result: Calibration, rule: bool) -> Table:
    rows = []
    for name, n in result.decided_counts.items():
        here = answers[answers["decision"] == name]
        mean = here[f"p({name})"].mean() if f"p({name})" in here else np.nan
        loss = [] if rule else [rounded(here["expected_loss"].mean())]
        rows.append((name, f"{n:,}", f"{n / len(answers):.1%}", rounded(mean, ".1%"), *loss))
    of_loss = [] if rule else ["mean expected loss"]
    return Table("Decisions", ["decision", "items", "share", "mean probability", *of_loss], rows)


def first_items(answers: pd.DataFrame, labelled: np.ndarray) -> Table | Paragraph:
    """Return the items with the largest expected loss (the size of a set does not measure certainty).

    `answers` is the table of a calibration, with the decisions by name. Labelled items are left out,
    unless all are labelled.
    """
    which = "" if labelled.all() else " without a label"
    open_items = answers if labelled.all() else answers[~labelled]
    uncertain = open_items[open_items["expected_loss"] > UNCERTAIN]
    if uncertain.empty:
        return Paragraph(
            f"No item{which} has an expected loss above {UNCERTAIN:g}: by the probabilities, none "
            "needs a review."
        )
    first = uncertain.sort_values("expected_loss", ascending=False, kind="stable")[:FIRST_ITEMS]
    heads = {first.columns[0]: "item", "expected_loss": "expected loss"}
    first = first.rename(columns=heads).drop(columns="votes", errors="ignore")
    rows = [
        [rounded(cell) if isinstance(cell, float) else str(cell) for cell in row]
        for row in first.itertuples(index=False)
    ]
    many = len(uncertain) > len(first)
    return Table(
        f"Items{which} with an expected loss above {UNCERTAIN:g}: "
        + (f"the {len(first)} least certain of {len(uncertain):,}" if many else "all")
        + ", review these first",
        [str(name) for name in first.columns],
        rows,
        words=[place for place, name in enumerate(first.columns) if name in ("decision", "set")],
    )
