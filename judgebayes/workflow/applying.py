"""Save a fit to a file, and apply it to new votes."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import jax.numpy as jnp
import numpy as np
import pandas as pd

from judgebayes import __version__
from judgebayes.aggregators.wrapped import DecidedBy
from judgebayes.arrays import LogProbs
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.inference import Status
from judgebayes.inference.fit import status_of
from judgebayes.io.columns import plain_label
from judgebayes.io.options import split_names
from judgebayes.votes import MISSING, Coding, Votes
from judgebayes.workflow.answers import AnsweredItems, Decisions, decisions_of
from judgebayes.workflow.asking import open_files
from judgebayes.workflow.binning import bins_from
from judgebayes.workflow.calibration import Calibration
from judgebayes.workflow.data import Study, encoded
from judgebayes.workflow.fit_file import (
    SavedFit,
    answers,
    drift,
    load_fit,
    profile,
    save_fit,
    using,
)
from judgebayes.workflow.losses import Losses, check_losses, losses_of
from judgebayes.workflow.methods import load_plugins, traits_of
from judgebayes.workflow.next_steps import applied_steps
from judgebayes.workflow.options import ROLES, ApplyRequest, Fixed, ReadingOptions, ReadRequest
from judgebayes.workflow.records import with_options
from judgebayes.workflow.sources import Earlier, Opened

KEPT = ("wide", "missing", "undecided", "encoding", "skip_rows", "verdicts")
"""The options for reading that a fit keeps for later files, which may give others."""


@dataclass(frozen=True, repr=False)
class Applied(AnsweredItems):
    """The answers of a saved fit on new votes."""

    schema: ClassVar[str] = "judgebayes.applied/1"
    saved: SavedFit
    data: Study
    votes: Votes
    """The new votes with judges and tasks in the order of the fit."""
    log_probs: LogProbs
    decisions: Decisions
    losses: Losses
    """The loss of each decision."""
    said: list[str]
    """What was read, and which columns were not."""
    warnings: list[str]
    """How the new votes differ from those of the fit."""

    @property
    def sentences(self) -> list[str]:
        """Which fit it is, what was read, what differs, and what was decided."""
        return [*self.said, *self.warnings, self.decided_words]

    @property
    def next_steps(self) -> list[str]:
        """Whether to calibrate again."""
        return applied_steps(warnings=len(self.warnings))

    @property
    def numbers(self) -> dict[str, Any]:
        """The method, the numbers of items and judges, and how often each class was decided."""
        return {
            "method": self.saved.method,
            "items": self.votes.n_items,
            "judges": len(self.data.coding.judges),
            "decisions": self.decided_counts,
        }

    @property
    def voted(self) -> tuple[Coding, Votes]:
        """The votes that are answered, with their names."""
        return self.data.coding, self.votes

    @property
    def decider(self) -> str | None:
        """The name of the rule that decided, if one did."""
        rule = _decider(self.saved, self.losses)
        return None if rule is None else rule.name

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The answers."""
        return {"answers": self.answers}


def save(calibration: Calibration, path: Path | str) -> None:
    """Save a fit to a file (JSON), for `apply`.

    Raises
    ------
    JudgeBayesError
        If the fit failed, its class cannot be saved, or the file cannot be written.
    """
    data = calibration.given
    judges = [str(name) for name in data.coding.judges]
    notes = {
        "labels": int((data.labels >= 0).sum()),
        "items": data.votes.n_items,
        "version": __version__,
        "seed": calibration.request.seed,
        "judges": judges,
        **reading_notes(data.opened),
    }
    tasks = [] if data.coding.tasks is None else [str(name) for name in data.coding.tasks]
    judge_order = judges if traits_of(calibration.choice.method).knows_judges else []
    classes, vote_profile = data.coding.classes, profile(data.votes)
    saved = SavedFit(
        calibration.choice.name,
        calibration.fitted,
        classes,
        vote_profile,
        tasks,
        judge_order,
        notes,
    )
    save_fit(path, saved)


def reading_notes(opened: Opened) -> dict[str, Any]:
    """Return the reading options to save with a fit, for later files of such votes."""
    columns = {role: name for role, name in opened.columns.items() if name is not None}
    request = opened.request
    one_label = opened.label is None or request.label in (None, opened.label)
    annotators = [] if one_label else split_names(str(request.label))
    return {
        **{name: getattr(request, name) for name in KEPT},
        "repeats": request.repeats,
        "columns": columns if opened.label is None else columns | {"label": opened.label},
        "ignore": [*request.left_out, *annotators],
        **({} if opened.bins is None else {"bins": opened.bins.to_json()}),
    }


def apply_notes(request: ReadRequest, notes: Mapping[str, Any]) -> tuple[ReadRequest, Earlier]:
    """Return the request and what is known, by what `reading_notes` saved, which was checked."""
    judges, label = notes.get("judges", []), request.label
    earlier = {
        role: name
        for role, name in notes.get("columns", {}).items()
        if role in ROLES and not (role == "label" and name in judges)
    }
    if label is None and "label" not in earlier and plain_label(judges):
        label = "none"  # a judge with the name of a label
    kept = {
        name: notes[name]
        for name in KEPT
        if name in notes and getattr(request, name) is getattr(ReadRequest, name)
    }
    repeats = request.repeats or notes.get("repeats", False)
    return (
        replace(request, **kept, label=label, repeats=repeats),
        Earlier(earlier, tuple(notes.get("ignore", ())), bins_from(notes.get("bins"))),
    )


@with_options
@in_float64
def apply(request: Annotated[ApplyRequest, Fixed({"out": None})]) -> Applied:
    """Apply a saved fit to new votes, and check whether they have drifted from the fitted ones.

    The function behind `judgebayes apply`, with the same options; `votes` is a path or a table.

    Raises
    ------
    JudgeBayesError
        If the file is not a fit, or for bad input.
    """
    load_plugins(request.plugin)
    check_losses(request)
    saved = load_fit(request.fit)
    losses = losses_of(request, saved.classes)
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
    with using(saved):
        warnings += [*changes, *drift(saved.profile, profile(votes), saved.classes)]
    log_probs = answers(saved, votes)
    rule = _decider(saved, losses)
    decisions = decisions_of(log_probs, losses, None if rule is None else rule.rule(votes))
    return Applied(saved, data, votes, log_probs, decisions, losses, lines, warnings)


def _decider(saved: SavedFit, losses: Losses) -> DecidedBy | None:
    """Return the rule that decides, if the fit has one for this loss."""
    fitted = saved.fitted
    if not isinstance(fitted, DecidedBy) or losses.person is not None:
        return None
    same = np.shape(fitted.loss) == np.shape(losses.matrix)
    return fitted if same and np.allclose(fitted.loss, losses.matrix) else None


def _align_tasks(data: Study, fitted_tasks: list[str]) -> tuple[Votes, list[str]]:
    """Return the votes with the fit's task indices, -1 for tasks that the fit lacks, and a message."""
    coding, votes = data.coding, data.votes
    if votes.task is None or coding.tasks is None:
        raise JudgeBayesError("This fit is hierarchical: add --set task=COLUMN.")
    index_of = {name: i for i, name in enumerate(fitted_tasks)}
    names = [str(name) for name in coding.tasks]
    table = np.array([index_of.get(name, MISSING) for name in names])
    new = ", ".join(name for name in names if name not in index_of)
    messages = (
        [f"Task {new} is not in the fit: its answers use the mean over the fitted tasks."]
        if new
        else []
    )
    return replace(votes, task=jnp.asarray(table)[votes.task], n_tasks=len(fitted_tasks)), messages


def _align_judges(data: Study, votes: Votes, fitted_judges: list[str]) -> tuple[Votes, list[str]]:
    """Return the votes with judges in the order of the fit, and messages on new and absent judges."""
    index_of = {name: j for j, name in enumerate(fitted_judges)}
    names = [str(name) for name in data.coding.judges]
    if not set(names) & set(index_of):
        raise JudgeBayesError(
            f"None of the judges {', '.join(names[:8])} is in the fit; its judges are "
            f"{', '.join(fitted_judges[:8])}."
        )
    new = [name for name in names if name not in index_of]
    absent = [name for name in fitted_judges if name not in names]
    messages = []
    if new:
        messages.append(
            f"The votes of {', '.join(new)} are not used: these judges are not in the fit."
        )
    if absent:
        messages.append(
            f"{len(absent)} judge(s) of the fit have no votes in this file: {', '.join(absent)}."
        )
    indices = np.array([index_of.get(name, MISSING) for name in names])
    return votes.align_judges(indices, len(fitted_judges)), messages
