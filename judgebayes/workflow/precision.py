"""The share of each generator's items that is valid."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import pandas as pd

from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.generators import (
    Labelling,
    MoreItems,
    SharePosterior,
    count_votes,
    expected_counts,
    expected_validity,
    stratify,
    valid_share,
)
from judgebayes.io.options import split_names
from judgebayes.sentence import percent
from judgebayes.show.page import Block, Findings, Paragraph, Table
from judgebayes.show.tables import readable
from judgebayes.votes.columns import positions
from judgebayes.workflow.asking import data_of
from judgebayes.workflow.data import Study, grouped_words
from judgebayes.workflow.next_steps import next_file, next_table, precision_steps
from judgebayes.workflow.options import TARGETS, Fixed, PrecisionRequest
from judgebayes.workflow.precision_methods import Given, PrecisionFit, answer
from judgebayes.workflow.precision_tables import (
    LEVEL,
    SETTLED,
    generator_table,
    held_out_table,
    judge_table,
    precision_figure,
    precision_warnings,
    shown_shares,
)
from judgebayes.workflow.records import with_options
from judgebayes.workflow.results import Answer, Parts, Written, as_notes
from judgebayes.workflow.systems import EVERY, generators_of

RATES = (
    'TPR: the share of valid items that the judge calls valid; their number is in the column "on '
    'valid". TNR: the share of invalid items that it calls invalid; their number is in the column '
    '"on invalid". Both are over all generators.'
)


@dataclass(frozen=True, repr=False, kw_only=True)
class Precision(Answer):
    """The share of valid items by generator."""

    schema: ClassVar[str] = "judgebayes.precision/1"
    data: Study
    fit: PrecisionFit
    shares: pd.DataFrame
    """A row per generator, the best first; without the columns of intervals and
    orders if the method has none."""
    target: str
    """What the intervals are about: "these" items, or "more" items like these; empty without any."""
    warnings: list[str]


@with_options
@in_float64
def precision(
    request: Annotated[PrecisionRequest, Fixed({"out": None, "html": None})],
) -> Precision:
    """Estimate what share of each generator's items is valid, corrected for the judges' bias.

    The function behind `judgebayes precision`, with the same options; `votes` and `labels` are
    paths or tables, or `votes` is what `read` returned.

    Raises
    ------
    JudgeBayesError
        For bad input, or if the generator of an item is unknown.
    """
    if request.between is not None and request.next_labels is None:
        raise JudgeBayesError("--between says what the items of --next are for: add --next 50.")
    notes, given = _given(request)
    data = given.data
    fit, sentences, legend, target = answer(request.method, given)
    shares = generator_table(given, fit, request.seed)
    judges, held_out = judge_table(given), held_out_table(given, fit)
    next_items = None if request.next_labels is None else _next_items(given, request)
    warnings = precision_warnings(given, fit)
    title = "Generators"
    if "estimate" not in shares:
        title += " (raw means, not corrected)"
    if target:
        title += f", with {percent(LEVEL)} intervals about {TARGETS[target]}"
    shown, labelled = shown_shares(shares), shares["labelled"] > 0
    said = [*notes, *_grouped(data, fit), *sentences]
    blocks: list[Block] = [*map(Paragraph, said), Table(title, *readable(shown))]
    if legend and labelled.any():
        certain = target == "these" and data.log_likelihood is None
        known = " Known: every item is labelled." if certain else ""
        blocks.append(Paragraph(f"{legend}{known} Raw mean: the mean of the votes, uncorrected."))
    if "beats next" in shown:
        never = "" if labelled.all() else " and both have labels of their own"
        text = (
            "Beats next: the probability of being better than the next row; settled if at least "
            f"{SETTLED:g}{never}."
        )
        blocks.append(Paragraph(text))
    blocks += [precision_figure(shares), Table("Judges", *readable(judges))]
    if held_out is not None:
        title = "Check: each labelled generator, predicted from the others"
        blocks.append(Table(title, *readable(held_out)))
    blocks += [Paragraph(RATES), Findings(as_notes(warnings)), *next_table(next_items)]
    tables = {"generators": shares, "judges": judges, "held out": held_out, "next": next_items}
    generators: tuple[str, Written] = ("the generators", shares)
    written = generators if next_items is None else next_file(next_items, ["item", "generator"])
    parts = Parts(
        blocks=blocks,
        tables=tables,
        numbers=data.numbers | {"generators": len(shares)},
        next_steps=precision_steps(shares, these=target == "these"),
        files={"out": written},
    )
    return Precision(
        parts=parts, data=data, fit=fit, shares=shares, target=target, warnings=warnings
    )


def _grouped(data: Study, fit: PrecisionFit) -> list[str]:
    """Return how many groups there are, and how alike their items, in a sentence."""
    alike = ""
    if isinstance(fit, SharePosterior | MoreItems):
        alike = (
            "Labels of a generator's items in the same group have a correlation of "
            f"{fit.correlation:.2f}, and count as fewer independent ones."
        )
    return grouped_words(data, alike)


def _given(request: PrecisionRequest) -> tuple[list[str], Given]:
    """Return notes on what was read, and what the methods learn from."""
    data = data_of(request, named=tuple(split_names(request.generator or "")))
    votes, labels = data.votes, data.labels
    n_classes = len(data.coding.classes)
    if n_classes != 2:
        raise JudgeBayesError(
            f"The votes have {n_classes} classes; precision needs two. Name them with "
            "--set classes=invalid,valid. If items compare two systems, judgebayes calibrate --set "
            "systems=A,B gives win rates."
        )
    names, generator = generators_of(data, request.generator)
    first, notes = list(data.opened.notes), []
    if names == [EVERY]:
        first.append(
            "No column of generators is recognised, so that all items count as one system's; name their "
            "column with --set generator=COLUMN."
        )
    gold = data.opened.labels
    at = np.zeros(0) if gold is None else positions(data.coding.items, gold.items, gold.item)
    unmatched = int((at < 0).sum())
    if unmatched:
        notes.append(f"{unmatched} label(s) of items without votes are left out.")
    evidence, n = data.evidence, len(names)
    if evidence is None:
        counts = count_votes(votes, labels, generator, n)
    else:  # expected ones, because labels may be wrong
        valid = expected_validity(votes, labels, evidence, generator)
        counts = expected_counts(votes, valid, generator, n)
    labelling = Labelling(stratify(valid_share(votes)), generator, labels, n)
    given = Given(data, generator, names, counts, labelling, request.target)
    return [*first, *_words(given), *notes], given


def _next_items(given: Given, request: PrecisionRequest) -> pd.DataFrame:
    """Return a row per item to label next, with its probability of being valid."""
    assert request.next_labels is not None
    labelling = given.labelling
    items = labelling.propose(
        request.next_labels,
        between=_between(request.between, given.names),
        more=request.target == "more",
        groups=given.data.groups,
        seed=request.seed,
    )
    expected = np.asarray(labelling.fit().validity())
    generator = given.generator[items]
    return pd.DataFrame(
        {
            "item": pd.Index(given.data.coding.items)[items],
            "generator": [given.names[g] for g in generator],
            "valid votes": valid_share(given.data.votes)[items],
            "P(valid)": expected[generator, labelling.strata.of_item[items]],
        }
    )


def _between(named: str | None, names: list[str]) -> tuple[int, int] | None:
    """Return the two generators of --between."""
    if named is None:
        return None
    pair = split_names(named)
    for name in pair:
        if name not in names:
            shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
            raise JudgeBayesError(f"--between: {name!r} has no items; choose from: {shown}.")
    if len(set(pair)) != 2:
        raise JudgeBayesError(
            f"--between {named!r} must name two: --between {','.join(names[:2])}."
        )
    return names.index(pair[0]), names.index(pair[1])


def _words(given: Given) -> list[str]:
    """Return what was read in sentences."""
    votes, labels = given.data.votes, given.data.labels
    top = given.data.coding.classes.names[-1]
    labelled = len(np.unique(given.generator[labels >= 0]))
    return [
        f"{len(given.names)} generator(s), {votes.n_items} items, {votes.n_judges} judge(s); a vote for "
        f"{top!r} means valid.",
        f"{int((labels >= 0).sum())} items of {labelled} generator(s) are labelled, "
        f"{int((labels == 0).sum())} of them invalid.",
    ]
