"""Save a fit to a file, and apply it to new votes."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, ClassVar

import jax.numpy as jnp
import numpy as np
import pandas as pd

from judgebayes.arrays import ItemInts, LogProbs
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.inference import Status
from judgebayes.inference.fit import status_of
from judgebayes.show.page import Block, Findings, Paragraph
from judgebayes.votes import MISSING, Votes
from judgebayes.workflow.adaptive import plan_of
from judgebayes.workflow.answers import AnsweredItems, decisions_of
from judgebayes.workflow.asking import open_files
from judgebayes.workflow.calibration import Calibration, saved_of
from judgebayes.workflow.data import Study, encoded
from judgebayes.workflow.fit_file import (
    SavedFit,
    answers,
    apply_notes,
    drift,
    load_fit,
    profile,
    using,
)
from judgebayes.workflow.losses import check_loss, losses_of
from judgebayes.workflow.machine import AppliedNumbers
from judgebayes.workflow.methods import declared
from judgebayes.workflow.options import ApplyRequest, Fixed, ReadingOptions, ReadRequest
from judgebayes.workflow.records import with_options
from judgebayes.workflow.results import as_notes


@dataclass(frozen=True, repr=False)
class Applied(AnsweredItems):
    """The answers of a saved fit on new votes."""

    schema: ClassVar[str] = "judgebayes.applied/1"
    saved: SavedFit
    said: list[str]
    """What was read, and which columns were not."""
    warnings: list[str]
    """How the new votes differ from those of the fit."""

    @property
    def blocks(self) -> list[Block]:
        """Which fit it is, what was read, what differs, what was decided, and the first answers."""
        return [
            *map(Paragraph, self.said),
            Findings(as_notes(self.warnings)),
            Paragraph(self.decided_words),
            self.answers_block,
        ]

    @property
    def next_steps(self) -> list[str]:
        """Whether to calibrate again."""
        if self.warnings:
            return [
                "Label some of the new items, and calibrate again: the new votes differ from the fit's."
            ]
        return [
            "Label a few random new items from time to time: votes alone do not show whether the judges "
            "have become less accurate."
        ]

    @property
    def numbers(self) -> AppliedNumbers:
        """The method, the numbers of items and judges, and how often each class was decided."""
        return {
            "method": self.saved.method,
            "items": self.given.votes.n_items,
            "judges": len(self.given.coding.judges),
            "decisions": self.decided_counts,
        }

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The answers."""
        return {"answers": self.answers}


@with_options
@in_float64
def apply(request: Annotated[ApplyRequest, Fixed({"out": None, "html": None})]) -> Applied:
    """Apply a saved fit to new votes, and check whether they have drifted from the fitted ones.

    The function behind `judgebayes apply`, with the same options; `fit` is a path or a `Calibration`,
    `votes` is a path or a table.

    Raises
    ------
    JudgeBayesError
        If the file is not a fit, or for bad input.
    """
    declared(request.method or "")
    check_loss(request.loss)
    fit: Any = request.fit
    saved = saved_of(fit) if isinstance(fit, Calibration) else load_fit(fit)
    losses = losses_of(request.loss, saved.classes)
    how = {each.name: getattr(request, each.name) for each in fields(ReadingOptions)}
    with using(saved):
        read, earlier = apply_notes(ReadRequest(votes=request.votes, **how), saved.notes)
        opened = open_files(read, replace(earlier, classes=saved.classes))
    data = encoded(replace(opened, labels=None), saved.classes)
    votes: Votes = data.votes
    changes: list[str] = []
    if saved.tasks:
        votes, changes = _align_tasks(data, saved.tasks)
    if saved.judges:
        votes, more = _align_judges(data, votes, saved.judges)
        changes += more
    lines = [
        f"The fit: {saved.method}, fitted on {saved.notes.get('labels', '?')} labels.",
        *data.words(),
    ]
    if opened.labels is not None:
        lines.append(f"Column {opened.labels.label!r} contains labels, not votes: it is left out.")
    status = Status(int(status_of(saved.fitted)))
    warnings = [] if status == Status.CONVERGED else [f"When the fit was saved: {status.sentence}"]
    others = {str(name) for name in data.coding.judges} - set(saved.notes.get("judges", []))
    if not saved.judges and "judges" in saved.notes and others:
        warnings.append(
            f"The fit was made on the votes of {', '.join(saved.notes['judges'][:8])}; the votes of "
            f"{', '.join(sorted(others)[:8])} are treated as if they were from the same judges."
        )
    log_probs = answers(saved, votes)
    with using(saved):
        log_probs, fewer = _with_fewer(saved, votes, log_probs)
        now = profile(votes)
        if fewer:  # which is counted
            now = replace(now, votes_per_item=saved.profile.votes_per_item)
        warnings += [*changes, *drift(saved.profile, now, saved.classes)]
    lines += fewer
    decisions = decisions_of(log_probs, losses, saved.fitted, votes)
    given = replace(data, votes=votes)
    return Applied(given, log_probs, losses, decisions, saved, lines, warnings)


def _with_fewer(saved: SavedFit, votes: Votes, log_probs: LogProbs) -> tuple[LogProbs, list[str]]:
    """Return the answers; of items with fewer votes than all those of a Davidson fit, expected ones.

    Davidson's formula is valid for the number of votes that it was fitted to: the votes that an item
    lacks are summed out (`judgebayes.workflow.adaptive`).
    """
    most = int(saved.notes.get("votes_of_each", 0))
    counts = np.asarray(votes.pooled_counts()).astype(int)
    fewer = counts.sum(1) < most
    plan = None
    if most >= 2 and fewer.any():
        with suppress(JudgeBayesError):  # too many possible votes
            plan = plan_of(saved, most)
    if plan is None:
        return log_probs, []
    return jnp.asarray(log_probs).at[fewer].set(plan.log_probs(counts[fewer])), [
        f"{int(fewer.sum())} item(s) have fewer than the {most} votes that the fit was made on: their "
        "probabilities are those expected with the votes that they lack."
    ]


def _places(names: Sequence[object], fitted: list[str]) -> tuple[ItemInts, list[str]]:
    """Return the place of each name in the fit, -1 for those that the fit lacks, and these."""
    own, places = [str(name) for name in names], {name: k for k, name in enumerate(fitted)}
    codes = np.array([places.get(name, MISSING) for name in own])
    return codes, [name for name in own if name not in places]


def _align_tasks(data: Study, fitted_tasks: list[str]) -> tuple[Votes, list[str]]:
    """Return the votes with the fit's task indices, -1 for tasks that the fit lacks, and a message."""
    coding, votes = data.coding, data.votes
    if votes.task is None or coding.tasks is None:
        raise JudgeBayesError("This fit is hierarchical: add --set task=COLUMN.")
    table, new = _places(coding.tasks, fitted_tasks)
    messages = [
        f"Task {', '.join(new)} is not in the fit: its answers use the mean over the fitted tasks."
    ]
    votes = replace(votes, task=jnp.asarray(table)[votes.task], n_tasks=len(fitted_tasks))
    return votes, messages if new else []


def _align_judges(data: Study, votes: Votes, fitted_judges: list[str]) -> tuple[Votes, list[str]]:
    """Return the votes with judges in the order of the fit, and messages on new and absent judges."""
    names = [str(name) for name in data.coding.judges]
    _, new = _places(names, fitted_judges)
    places, absent = _places(fitted_judges, names)
    if len(new) == len(names):
        raise JudgeBayesError(
            f"None of the judges {', '.join(names[:8])} is in the fit; its judges are "
            f"{', '.join(fitted_judges[:8])}."
        )
    messages = []
    if new:
        messages.append(
            f"The votes of {', '.join(new)} are not used: these judges are not in the fit."
        )
    if absent:
        messages.append(
            f"{len(absent)} judge(s) of the fit have no votes in this file: {', '.join(absent)}."
        )
    return votes.of_judges(places), messages
