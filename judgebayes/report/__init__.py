"""The page of an answer, `--html`: its blocks, what only a page has, and how to make it again.

That of a calibration begins with the decision, and has all judges, diagrams and items to review.
This package may not import `judgebayes` or any package after it.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Bool

from judgebayes.arrays import ItemInts
from judgebayes.evaluate.one_split import Evaluation
from judgebayes.majority.counts import ErrorCurve
from judgebayes.measures.scores import confidence_bins, reliability
from judgebayes.plots import Figure as Picture
from judgebayes.plots import error_curves, intervals, reliability_diagram
from judgebayes.sentence import percent, with_interval
from judgebayes.show.page import (
    Block,
    Code,
    Facts,
    Findings,
    Page,
    Paragraph,
    Plot,
    Section,
    SideBySide,
    Table,
    render,
)
from judgebayes.show.tables import judges_table
from judgebayes.show.versions import versions
from judgebayes.workflow.calibration import Calibration, read_words
from judgebayes.workflow.comparing import Compared
from judgebayes.workflow.diagnosing import agreement_blocks, agreement_of
from judgebayes.workflow.methods import traits_of
from judgebayes.workflow.next_steps import (
    LEAST_LABELS,
    LEAST_SIZE,
    forecast_words,
    grow,
    more_labels,
)
from judgebayes.workflow.results import Result, first_rows

BINS = 10
MAX_DIAGRAMS = 5
MAX_JUDGES = 500
FIRST_ITEMS = 10
UNCERTAIN = 0.01
"""An item is uncertain if its decision's expected loss is above this."""


RIVALS = {
    "sc": "a plain majority of the votes",
    "best-judge": "the best judge alone",
    "best-constant": "the same answer for all items",
}
"""The simplest methods, in words."""


def first_blocks(result: Calibration) -> list[Block]:
    """Return what the one who decides reads first: the decision, who wins, and the methods' losses."""
    blocks: list[Block] = [headline(result)]
    blocks += [] if result.wins is None else result.wins.lead_blocks
    if result.compared is not None and not result.hide_nll:
        blocks.append(losses_figure(result, result.compared))
    return [*blocks, main_numbers(result)]


def losses_figure(result: Calibration, compared: Compared) -> Plot:
    """Return the mean loss of the method, its rivals and the best judge on held-out labels."""
    matrix, chosen = result.losses.matrix, result.choice.name
    losses = {
        name: compared.mean_loss(name, own.losses(matrix), float(matrix.max()))
        for name, own in compared.evaluations.items()
        if name != "best-constant"  # so much worse that it hides the differences
    }
    ranked = sorted(losses, key=lambda name: (name != chosen, losses[name].mean))
    names = {"sc": "plain majority", "best-judge": "best judge alone"}
    table = pd.DataFrame(
        [(names.get(name, name), *losses[name], "loss") for name in ranked],
        columns=["method", "value", "low", "high", "series"],
    )

    def draw() -> Picture:
        return intervals(table, label="method", series="series", xlabel="mean loss")

    loss = result.losses
    return Plot(
        draw,
        "losses",
        "Mean loss of decisions by method",
        "The table of methods has the numbers.",
        f"Mean {loss.name} loss of decisions ({loss.meaning}) on held-out labels, with 95 % intervals: "
        f"{chosen}, which is used here, then the others, the best first.",
    )


def headline(result: Calibration) -> Paragraph:
    """Return what is decided and how often that is right, beside the simplest rivals, in words."""
    compared, name = result.compared, result.choice.name
    if compared is None or result.hide_nll:
        return Paragraph("The labels cannot tell how often these decisions are right.")
    right = with_interval(compared.right(name), ".0f", unit=" %")
    others = [
        f"{words} on {percent(compared.right(rule).mean)}"
        for rule, words in RIVALS.items()
        if rule in compared.evaluations and rule != name
    ]
    beside = f"; {', '.join(others)}" if others else ""
    text = f"Decisions by {name} are right on {right} of held-out items{beside}."
    if result.abstention is not None:
        share, risk = result.abstention.share.mean, result.abstention.risk.mean
        rest = f"; the mean loss of the others is {risk:.2f}" if np.isfinite(risk) else ""
        text += f" {percent(share)} of the items go to a person{rest}."
    return Paragraph(text)


def main_numbers(result: Calibration) -> Facts:
    """Return what the one who decides reads first."""
    read = result.given.numbers
    facts = [
        ("Votes", "{votes:,} of {judges:,} judge(s) on {items:,} items".format(**read)),
        ("Labels", "{labels:,} of {items:,} items".format(**read)),
        ("Diagnostics", result.counted),
        ("Method", result.choice.name),
    ]
    compared, name = result.compared, result.choice.name
    if compared is not None and not result.hide_nll:
        nll = compared.interval(name, compared.nll(name), least=0.0)
        facts += [
            ("Held-out accuracy [95 %]", with_interval(compared.right(name), ".1f", unit=" %")),
            ("Held-out NLL [95 %]", with_interval(nll)),
        ]
    decided = result.decided_counts.items()
    facts.append(("Decisions", ", ".join(f"{each}: {count:,}" for each, count in decided)))
    return Facts(facts, large=True)


def kinds_of_sets(answers: pd.DataFrame, inside: Bool[np.ndarray, "item class"]) -> Table:
    """Return how many items have each conformal set."""
    kinds = answers.assign(size=inside.sum(1))[["size", "set"]].value_counts().sort_index(level=0)
    rows = [(name, f"{n:,}", f"{n / len(answers):.1%}") for (_, name), n in kinds.items()]
    return Table("Conformal sets, the smallest first", ("set", "items", "share"), rows)


def calibration_sections(result: Calibration) -> list[Section]:
    """Return the sections of a calibration's page, the decisions first."""
    method, compared = result.choice.name, result.compared
    table, words = result.comparison_blocks[:1], result.comparison_blocks[1:]
    methods = [*map(Paragraph, result.chosen), *table]
    meaning = [Section("What the columns mean", words, folded=True)] if words else []
    read = [*map(Paragraph, read_words(result.given))]
    sections = [
        Section("Decisions", result.decision_blocks),
        Section("The methods", methods, meaning),
        Section(
            "The judges",
            [
                judges_table(result.judges, MAX_JUDGES),
                *result.judge_figures,
                *agreement_blocks(agreement_of(result.given), MAX_JUDGES),
                Findings(result.findings),
            ],
        ),
    ]
    if compared is not None and not result.hide_nll:  # else the labels cannot tell
        names, evaluation = result.given.coding.classes.names, compared.evaluations[method]
        held_out = held_out_blocks(evaluation, compared.groups, names, method)
        sections.append(Section("Calibrated probabilities", held_out))
    if result.sets is not None:
        kinds = kinds_of_sets(result.answers, result.sets.inside)
        sections.append(Section("Conformal sets", [kinds]))
    if not (traits_of(method).rule or result.certain):
        first = first_items(result.answers, result.given.labels >= 0)
        sections.append(Section("Items to review", [first]))
    if compared is not None and not result.hide_nll and compared.held_in >= 2 * LEAST_SIZE:
        sections.append(Section("The effect of more labels", growth_blocks(result, compared)))
    return [*sections, Section("What was read", read, folded=True)]


def first_items(answers: pd.DataFrame, labelled: np.ndarray) -> Table | Paragraph:
    """Return the items with the largest expected loss (the size of a set does not measure certainty).

    `answers` is the table of a calibration. Labelled items are left out,
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
    first = uncertain.sort_values("expected_loss", ascending=False, kind="stable")
    heads = {first.columns[0]: "item", "expected_loss": "expected loss"}
    first = first.rename(columns=heads).drop(columns="votes", errors="ignore")
    title = f"Items{which} with an expected loss above {UNCERTAIN:g}, the least certain first"
    return first_rows(title, first, FIRST_ITEMS)


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
            with_interval((b.right, b.low, b.high), ".1%"),
        )
        for b in confidence_bins(log_probs, labels, items, groups, bins=BINS).itertuples()
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

    return Plot(
        lambda: reliability_diagram(bins, method),
        f"reliability-{'top' if of is None else of}",
        f"Observed frequency against predicted probability of {what}",
        f"By bin of the predicted probability: {description}.",
        f"Probability of {what}: mean distance from the diagonal {calibration_error:.3f}. The area "
        "of a point is its share of the predictions.",
    )


def growth_blocks(result: Calibration, compared: Compared) -> list[Block]:
    """Return what fewer labels gave on the same held-out labels, and a forecast of twice as many.

    The forecast is of less if there are fewer items.
    """
    method, numbers = result.choice.name, result.given.numbers
    curve = grow(compared, method)
    said = [
        f"{method} was also fitted on half, a quarter, ... of the labels of every split, and scored on "
        "the same held-out labels."
    ]
    now, without = numbers["labels"], numbers["items"] - numbers["labels"]
    if now >= LEAST_LABELS and without > 0:
        forecast = more_labels(
            compared, method, curve, now, min(now, without), seed=result.request.seed
        )
        by_user = result.request.method != "auto"
        said += [] if forecast is None else [forecast_words(method, now, forecast, by_user=by_user)]
    known = np.isfinite([nll.mean for nll in curve.nll])
    size, (mean, low, high) = np.array(curve.labels)[known], np.array(curve.nll)[known].T
    line = ErrorCurve(size, mean, low, high, np.zeros(len(size), bool))

    def draw() -> Picture:
        figure = error_curves({method: line}, xlabel="labels", ylabel="held-out NLL")
        figure.set_size_inches(3.4, 2.7)
        return figure

    title = "Held-out NLL by the number of labels [95 %]"
    cells = [(f"{n}", with_interval(nll)) for n, nll in zip(curve.labels, curve.nll, strict=True)]
    figure = [Plot(draw, "growth", title, "The table has the numbers.", title)]
    table = Table(title, ("labels", "NLL"), cells)
    return [*map(Paragraph, said), *(figure if len(size) > 1 else []), table]


def page_of(result: Result, command: str, read: Sequence[Path] = ()) -> str:
    """Return an answer as an HTML page; `command` made it, from the files that were `read`."""
    first, sections = list[Block](), [Section("Results", result.blocks)]
    if isinstance(result, Calibration):
        first, sections = first_blocks(result), calibration_sections(result)
    first += [Paragraph(step) for step in result.next_steps if "--html" not in step]
    sums = [(path.name, f"SHA-256 {_digest(path)}") for path in read]
    words = (
        "The same files, command and versions give the same numbers. The page has no date and loads "
        "nothing: it can be stored and mailed as it is."
    )
    again = Section(
        "To run it again",
        [Code(command), Paragraph(words), Facts([*sums, *versions()])],
        name="rerun",
    )
    return render(Page(command.partition(" --")[0], first, [*sections, again]))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
