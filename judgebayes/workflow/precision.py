"""The share of each generator's items that is valid."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd

from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.generators import (
    Labelling,
    MoreItems,
    PrecisionCounts,
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
from judgebayes.workflow.options import TARGETS, Fixed, PrecisionRequest, check_next
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
from judgebayes.workflow.results import Result, Written, as_notes
from judgebayes.workflow.systems import EVERY, generators_of

RATES = (
    'TPR: the share of valid items that the judge calls valid; their number is in the column "on '
    'valid". TNR: the share of invalid items that it calls invalid; their number is in the column '
    '"on invalid". Both are over all generators.'
)


@dataclass(frozen=True, repr=False)
class Precision(Result):
    """The share of valid items by generator."""

    schema: ClassVar[str] = "judgebayes.precision/1"
    data: Study
    request: PrecisionRequest
    counts: PrecisionCounts
    """The votes by generator, judge and label."""
    fit: PrecisionFit
    shares: pd.DataFrame
    """A row per generator, the best first; without the columns of intervals and
    orders if the method has none."""
    judges: pd.DataFrame
    """A row per judge: its accuracy on valid and on invalid items."""
    held_out: pd.DataFrame | None
    """A row per generator with enough labels: its share, predicted from the others' labels."""
    next_items: pd.DataFrame | None
    """The items to label next, if requested; else None."""
    said: list[str]
    """What was read, and what the method chose or could not do, in sentences."""
    legend: str
    """What the estimates are; empty if there are raw means only."""
    target: str
    """What the intervals are about: "these" items, or "more" items like these; empty without any."""
    warnings: list[str]

    @property
    def blocks(self) -> list[Block]:
        """What was read, the generators, the judges, the check, and warnings."""
        title = "Generators"
        if "estimate" not in self.shares:
            title += " (raw means, not corrected)"
        if self.target:
            title += f", with {percent(LEVEL)} intervals about {TARGETS[self.target]}"
        shares, labelled = shown_shares(self.shares), self.shares["labelled"] > 0
        blocks: list[Block] = [*map(Paragraph, self.said), Table(title, *readable(shares))]
        if self.legend and labelled.any():
            certain = self.target == "these" and self.data.log_likelihood is None
            known = " Known: every item is labelled." if certain else ""
            text = f"{self.legend}{known} Raw mean: the mean of the votes, uncorrected."
            blocks.append(Paragraph(text))
        if "beats next" in shares:
            never = "" if labelled.all() else " and both have labels of their own"
            text = (
                "Beats next: the probability of being better than the next row; settled if at least "
                f"{SETTLED:g}{never}."
            )
            blocks.append(Paragraph(text))
        blocks += [precision_figure(self.shares), Table("Judges", *readable(self.judges))]
        if self.held_out is not None:
            title = "Check: each labelled generator, predicted from the others"
            blocks.append(Table(title, *readable(self.held_out)))
        blocks += [Paragraph(RATES), Findings(as_notes(self.warnings))]
        return blocks if self.next_items is None else [*blocks, next_table(self.next_items)]

    @property
    def files(self) -> dict[str, tuple[str, Written]]:
        """The generators, and the items to label next."""
        table: tuple[str, Written] = ("the generators", self.shares)
        return {"out": table} | next_file(self.next_items, ["item", "generator"])

    @property
    def next_steps(self) -> list[str]:
        """Which labels would settle the order of the generators."""
        return precision_steps(self.shares, these=self.target == "these")

    @property
    def numbers(self) -> dict[str, Any]:
        """What was read, and the number of generators."""
        return self.data.numbers | {"generators": len(self.shares)}

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The generators, the judges, the check, and the items to label next."""
        named = {
            "generators": self.shares,
            "judges": self.judges,
            "held out": self.held_out,
            "next": self.next_items,
        }
        return {name: table for name, table in named.items() if table is not None}


@with_options
@in_float64
def precision(
    request: Annotated[PrecisionRequest, Fixed({"out": None, "next_out": None, "html": None})],
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
    check_next(request.next_labels, request.next_out)
    notes, given = _given(request)
    data = given.data
    fit, sentences, legend, target = answer(request.method, given)
    return Precision(
        data=data,
        request=request,
        counts=given.counts,
        fit=fit,
        shares=generator_table(given, fit, request.seed),
        judges=judge_table(given),
        held_out=held_out_table(given, fit),
        next_items=None if request.next_labels is None else _next_items(given, request),
        said=[*notes, *_grouped(data, fit), *sentences],
        legend=legend,
        target=target,
        warnings=precision_warnings(given, fit),
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
