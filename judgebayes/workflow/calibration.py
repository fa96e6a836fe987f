"""A calibration: the method, its fit, its answers and its comparison, with their words and tables.

Sentences of a calibration: what was read, why this method, and what to be careful about.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
from jaxtyping import Bool

from judgebayes import __version__
from judgebayes.aggregators.davidson import Davidson, HierarchicalDavidson
from judgebayes.finding import Finding, count_findings
from judgebayes.inference import Status
from judgebayes.inference.fit import Fitted, Method, status_of
from judgebayes.measures.significance import Interval
from judgebayes.panel.judges import judge_table
from judgebayes.sentence import percent
from judgebayes.show.page import Block, Findings, Paragraph
from judgebayes.show.tables import judges_figure, judges_table
from judgebayes.votes.classes import may_compare
from judgebayes.workflow.answers import Abstention, AnsweredItems
from judgebayes.workflow.comparing import (
    LEAST_FOR_SPLITS,
    Compared,
    comparison_block,
    comparison_table,
    comparison_words,
    held_out_numbers,
)
from judgebayes.workflow.conformal_sets import ConformalSets, set_numbers
from judgebayes.workflow.data import Study
from judgebayes.workflow.fit_file import SavedFit, profile, reading_notes, save_fit
from judgebayes.workflow.machine import CalibrationNumbers, DiagnosisNumbers
from judgebayes.workflow.methods import FEW_LABELS, Choice, traits_of
from judgebayes.workflow.next_steps import calibration_steps
from judgebayes.workflow.options import CalibrateRequest
from judgebayes.workflow.results import Written, as_notes, ends
from judgebayes.workflow.scales import no_order
from judgebayes.workflow.win_rates import WinRate

MOST_JUDGES = 6
"""The largest number of judges in the console: the best and the worst."""
SHOWN = ("judge", "votes", "accuracy", "accuracy_low", "accuracy_high")
"""The columns of its table of judges."""


def read_words(data: Study) -> list[str]:
    """Return sentences about what was read, including what affects the model."""
    coding, lines = data.coding, data.said
    if len(coding.judges) > 1:
        lines.append(
            f"The votes of {len(coding.judges)} judges are used as a panel; use --set only_judge=NAME "
            "for one of them."
        )
    if may_compare(coding.classes):
        lines.append(
            "The classes are not symmetric, so the model has an offset. If they compare two responses "
            "that could be swapped, use --set pairwise=true."
        )
    return [*lines, *no_order(coding.classes)]


def chosen_words(
    choice: Choice, choices: Sequence[Choice], compared: Compared | None, labels: int
) -> str:
    """Return a sentence about the chosen method and the methods and rules with less NLL."""
    if compared is None:
        return f"Method: {choice.name}, the default, because there are too few labels for a comparison."
    if labels < FEW_LABELS:
        return (
            f"Method: {choice.name}, the default, because fewer than {FEW_LABELS} labels are too few to "
            "choose a method."
        )
    own, candidates = compared.means[choice.name]["nll"], [c.name for c in choices]
    less = compared.with_less(choice.name)
    if not any(name in candidates for name in less):
        others = ", ".join(
            f"{name} {compared.means[name]['nll']:z.3f}"
            for name in candidates
            if name != choice.name
        )
        text = (
            f"Method: {choice.name}, with the lowest held-out NLL, {own:z.3f} ({others}). Its "
            f"scores are slightly optimistic, because it was chosen from {len(choices)} methods "
            "on these labels."
        )
    else:
        first = choices[0].name
        role = "the default" if choice.name == first else f"clearly ahead of {first}, the default"
        text = f"Method: {choice.name}, {role}, with a held-out NLL of {own:z.3f}."
    for clear in (True, False):
        named = [
            f"{name} {compared.means[name]['nll']:z.3f}"
            + (" (a rule)" if traits_of(name).rule else "")
            for name in less
            if compared.clearly_less(name, choice.name) == clear
        ]
        unsure = (
            ", but not clearly (the 95 % interval of the difference contains zero, or one more error "
            "would reverse it)"
        )
        how = "Clearly lower NLL" if clear else f"Lower NLL{unsure}"
        text += f" {how}: {', '.join(named)}." if named else ""
    return text


def unmeasured_words(choice: Choice, given: Study) -> list[str]:
    """Return why the answers of a method are not measured on held-out labels, if that matters."""
    if given.labelled:
        return [
            f"Fewer than {LEAST_FOR_SPLITS} labels are too few to hold some out: the quality of the "
            "calibration is not measured."
        ]
    if traits_of(choice.method).rule:
        return []
    return [
        "Without labels these probabilities cannot be checked. They rest on how far the judges agree, "
        "so errors that judges share make them too sure: label some items."
    ]


def warnings_of(request: CalibrateRequest, data: Study, fitted: Fitted) -> list[str]:
    """Return sentences about what makes the answers unsure: the fit, the votes, the labels."""
    messages, labels = [], data.labels
    status = Status(int(status_of(fitted)))
    if status != Status.CONVERGED:
        messages.append(status.sentence)
    given = np.asarray(data.votes.pooled_counts()).sum(1)
    readable = "decided" if data.coding.undecided.any() else "readable"
    if (given == 0).any():
        messages.append(
            f"{int((given == 0).sum())} item(s) have no {readable} vote. Their probabilities are "
            "what the fit predicts without votes."
        )
    pooled = isinstance(getattr(fitted, "method", None), Davidson | HierarchicalDavidson)
    if pooled and len(np.unique(given[given > 0])) > 1:
        low, high = int(given[given > 0].min()), int(given.max())
        messages.append(
            f"Items have between {low} and {high} votes; the same fit is used for all items, "
            "although its parameters depend on the number of votes."
        )
    if request.label_noise > 0:
        messages.append(
            f"{percent(request.label_noise)} of the labels are assumed to be wrong. Held-out NLL and "
            "accuracy refer to the observed labels. Even perfect decisions would agree with only "
            f"{percent(1 - request.label_noise)} of them."
        )
    n = int((labels >= 0).sum())
    if 0 < n < FEW_LABELS:
        messages.append(
            f"Only {n} labels: all numbers here are imprecise. 50 to 100 labels are usually enough."
        )
    counts = np.bincount(labels[labels >= 0], minlength=data.votes.n_classes)
    names = data.coding.classes.names
    absent = [name for name, count in zip(names, counts, strict=True) if count == 0]
    if n and absent:
        messages.append(
            f"No label is {' or '.join(absent)}: its probability comes from the model alone."
        )
    if data.votes.order is not None:
        order = np.asarray(data.votes.order)[np.asarray(data.votes.index) >= 0]
        if len(np.unique(order)) == 1:
            messages.append(
                "All votes have the same presentation order: position bias is not averaged out."
            )
    return messages


@dataclass(frozen=True, repr=False)
class Calibration(AnsweredItems):
    """The chosen method, its fit to all labels, its answers, and the comparison of methods."""

    schema: ClassVar[str] = "judgebayes.calibration/1"
    request: CalibrateRequest
    choice: Choice
    method: Method
    fitted: Fitted
    chosen: list[str]
    """The reason for this method and its parameters, in sentences."""
    compared: Compared | None
    """None if there are too few labels to hold some out."""
    leads: dict[str, Interval]
    findings: list[Finding]
    """The findings of `judgebayes diagnose` for the table."""
    warnings: list[str]
    sets: ConformalSets | None
    abstention: Abstention | None
    """Held-out results of sending items to a person; None without a price or held-out labels."""
    wins: WinRate | None
    """Who wins; None if the votes do not compare two responses."""

    @property
    def blocks(self) -> list[Block]:
        """Who wins, what was read, the method and the reason for it, problems, and the decisions."""
        shown = self.judges[[*SHOWN]]
        return [
            *([] if self.wins is None else self.wins.lead_blocks),
            *map(Paragraph, read_words(self.given)),
            *([judges_table(shown, MOST_JUDGES)] if self.given.labelled else []),
            *self.judge_figures,
            *map(Paragraph, self.chosen),
            *self.comparison_blocks,
            *self.decision_blocks,
        ]

    @property
    def judge_figures(self) -> list[Block]:
        """How often the judges are right, if it is known."""
        known = np.isfinite(self.judges["accuracy"]).any()
        return [judges_figure(self.judges, MOST_JUDGES)] if known else []

    @property
    def decision_blocks(self) -> list[Block]:
        """Problems, conformal sets, and the decisions with the first answers."""
        blocks: list[Block] = [Findings([*self.unsound, *as_notes(self.warnings)])]
        blocks += [] if self.sets is None else self.sets.blocks
        blocks.append(Paragraph(self.decided_words))
        if self.abstention is not None:
            blocks.append(Paragraph(self.abstention.sentence))
        return [*blocks, self.answers_block]

    @property
    def comparison_blocks(self) -> list[Block]:
        """The held-out comparison and what its columns mean; nothing if nothing was compared."""
        if self.compared is None or self.held_out is None:
            return []
        table = comparison_block(self.compared.title, self.held_out)
        words = comparison_words(self.compared, self.leads, self.losses, hide_nll=self.hide_nll)
        return [table, *map(Paragraph, words)]

    @property
    def files(self) -> dict[str, tuple[str, Written]]:
        """The answers, and the fit."""
        words = "the fit; judgebayes apply uses it on new votes"
        return {**super().files, "save": (words, partial(save, self))}

    @property
    def next_commands(self) -> dict[str, str]:
        """A check of the judges."""
        return {"diagnose": f"A check of all judges on the same files ({self.counted}):"}

    @property
    def numbers(self) -> CalibrationNumbers:
        """What was read, the method, its held-out results with 95 % intervals, and the decisions."""
        numbers: CalibrationNumbers = {
            **self.given.numbers,
            "method": self.choice.name,
            "map": self.choice.map_name,
            "decisions": self.decided_counts,
            **count_findings(self.findings),  # type: ignore[typeddict-item]
        }
        if self.wins is not None and len(self.wins.pairs) == 1:
            numbers["win_rate"] = self.wins.rate
        if self.compared is not None:
            numbers["held_out"] = held_out_numbers(
                self.compared, self.choice.name, self.losses.matrix, hide_nll=self.hide_nll
            )
        if self.sets is not None and self.sets.strata is not None:
            numbers["conformal"] = set_numbers(self.sets.strata)
        if self.abstention is not None:
            numbers["sent_to_a_person"] = ends(*self.abstention.share)
            numbers["loss_of_the_others"] = ends(*self.abstention.risk)
        return numbers

    @cached_property
    def held_out(self) -> pd.DataFrame | None:
        """A row per method with its held-out metrics; None if nothing was compared."""
        if self.compared is None:
            return None
        return comparison_table(self.compared, self.leads, hide_nll=self.hide_nll)

    @property
    def in_sets(self) -> Bool[np.ndarray, "item class"] | None:
        """Whether each class is in an item's conformal set; None without sets."""
        return None if self.sets is None else self.sets.inside

    @cached_property
    def judges(self) -> pd.DataFrame:
        """A row per judge, as `judgebayes.judge_table` gives it."""
        given = self.given
        return judge_table(given.votes, given.labels, given.coding, groups=given.groups)

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The answers, the held-out comparison, and the judges."""
        tables = {
            "answers": self.answers,
            "held out": self.held_out,
            "conformal": None if self.sets is None else self.sets.strata,
            "judges": self.judges,
        } | ({} if self.wins is None else self.wins.tables)
        return {name: table for name, table in tables.items() if table is not None}

    @property
    def next_steps(self) -> list[str]:
        """What to mend, which labels to add, and whether another method decides better."""
        numbers: DiagnosisNumbers = {**self.given.numbers, **count_findings(self.unsound)}
        named = None if self.request.method == "auto" else self.choice.name
        return calibration_steps(numbers, self.leads, named)

    @property
    def hide_nll(self) -> bool:
        """Whether nearly constant labels make every NLL look good."""
        bad = any(f.topic == "labels" and f.severity == "bad" for f in self.findings)
        return bad and not self.request.allow_degenerate

    @property
    def unsound(self) -> list[Finding]:
        """The bad findings, if there are labels."""
        bad = [f for f in self.findings if f.severity == "bad"]
        return bad if (self.given.labels >= 0).any() else []

    @property
    def counted(self) -> str:
        """The numbers of bad findings and of notes."""
        return "{problems} problem(s), {notes} note(s)".format(**count_findings(self.findings))


def save(calibration: Calibration, path: Path | str) -> None:
    """Save a fit to a file (JSON), for `apply`.

    Raises
    ------
    JudgeBayesError
        If the fit failed, its class cannot be saved, or the file cannot be written.
    """
    save_fit(path, saved_of(calibration))


def saved_of(calibration: Calibration) -> SavedFit:
    """Return what a file would have of a fit."""
    data = calibration.given
    given = np.asarray(data.votes.pooled_counts()).sum(1)
    judges = [str(name) for name in data.coding.judges]
    notes = {
        "labels": int((data.labels >= 0).sum()),
        "items": data.votes.n_items,
        "version": __version__,
        "seed": calibration.request.seed,
        "judges": judges,
        "votes_of_each": int(given.min()) if given.min() == given.max() else 0,
        **reading_notes(data.opened),
    }
    return SavedFit(
        calibration.choice.name,
        calibration.fitted,
        data.coding.classes,
        profile(data.votes),
        [] if data.coding.tasks is None else [str(name) for name in data.coding.tasks],
        judges if traits_of(calibration.choice.method).knows_judges else [],
        notes,
    )
