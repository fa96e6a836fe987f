"""Fits that are kept in files, and applied to new votes."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar

import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Float

from judgebayes import __version__
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.inference import Status
from judgebayes.io.in_memory import file_or_table
from judgebayes.votes import MISSING, Votes
from judgebayes.workflow.answers import answer_table, decided_words
from judgebayes.workflow.calibrating import Calibration
from judgebayes.workflow.fit_file import SavedFit, drift, load_fit, profile, save_fit
from judgebayes.workflow.losses import Losses, check_losses, losses_of
from judgebayes.workflow.methods import traits_of
from judgebayes.workflow.options import ApplyRequest, Fixed
from judgebayes.workflow.plugins import load_plugins
from judgebayes.workflow.reading import (
    Reading,
    Source,
    open_source,
    read_votes,
    recalled,
    remembered,
)
from judgebayes.workflow.records import with_options
from judgebayes.workflow.results import Result

__all__ = ["Applied", "apply", "apply_request", "save"]


@dataclass(frozen=True, repr=False)
class Applied(Result):
    """What a kept fit answers on new votes."""

    schema: ClassVar[str] = "judgebayes.applied/1"
    saved: SavedFit
    read: Reading
    votes: Votes
    """The new votes with judges and tasks in the places that they have in the fit."""
    log_probs: Float[Array, "item class"]
    losses: Losses
    """What a decision costs."""
    said: list[str]
    """What was read, and of which columns nothing was."""
    warnings: list[str]
    """How the new votes differ from those of the fit."""

    @property
    def sentences(self) -> list[str]:
        """Which fit it is, what was read, what differs, and what was decided."""
        return [*self.said, *self.warnings, self.decided]

    @property
    def decided(self) -> str:
        """How often each class was decided."""
        return decided_words(self.read.coding, self.log_probs, self.losses)

    @property
    def answers(self) -> pd.DataFrame:
        """A row per item: probabilities, decision, expected loss and votes."""
        return answer_table(self.read.coding, self.votes, self.log_probs, self.losses)

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The answers."""
        return {"answers": self.answers}


def save(found: Calibration, path: Path | str) -> None:
    """Keep a fit in a file (JSON), for `apply`.

    Raises
    ------
    JudgeBayesError
        If the fit failed, is of a kind that no file holds, or the file cannot be written.
    """
    request, read, labels = found.request, found.given.read, found.given.labels
    judges = [str(name) for name in read.coding.judges]
    notes = {
        "labels": int((labels >= 0).sum()),
        "items": read.votes.n_items,
        "version": __version__,
        "seed": request.seed,
        "judges": judges,
        **remembered(read, found.given.source),
    }
    tasks = [] if read.coding.tasks is None else [str(name) for name in read.coding.tasks]
    known_apart = judges if traits_of(found.choice.method).knows_judges else []
    classes, seen = read.coding.classes, profile(read.votes)
    kept = SavedFit(found.choice.name, found.fitted, classes, seen, tasks, known_apart, notes)
    save_fit(path, kept)


@with_options
def apply(request: Annotated[ApplyRequest, Fixed({"out": None})]) -> Applied:
    """Apply a kept fit to new votes, and say whether they have drifted from the fitted ones.

    What `judgebayes apply` does, with its options under the same names; `votes` is a path or a table.

    Raises
    ------
    JudgeBayesError
        If the file is no fit, or for bad input.
    """
    return apply_request(request)


@in_float64
def apply_request(request: ApplyRequest) -> Applied:
    """Return what `apply` does, of options in a record."""
    load_plugins(None if request.plugin is None else Path(request.plugin))
    check_losses(request.loss, request.losses, request.abstain_cost)
    saved = load_fit(request.fit)
    losses = losses_of(request.loss, request.losses, request.abstain_cost, saved.classes)
    opened = open_source(recalled(_source(request), saved.notes), None)
    read = read_votes(opened, saved.classes)
    votes: Votes = read.votes
    moved: list[str] = []
    if saved.tasks:
        votes, moved = _with_tasks_of_fit(read, saved.tasks)
    if saved.judges:
        votes, more = _with_judges_of_fit(read, votes, saved.judges)
        moved += more
    said = [f"The fit: {saved.method}, {saved.notes.get('labels', '?')} labels.", *read.words()]
    if opened.labels is not None:
        said.append(f"Column {opened.labels.label!r} holds labels, and no votes: it is left out.")
    status = Status(int(saved.fitted.status))
    warnings = [] if status == Status.CONVERGED else [f"When it was kept: {status.sentence}"]
    others = {str(name) for name in read.coding.judges} - set(saved.notes.get("judges", []))
    if not saved.judges and "judges" in saved.notes and others:
        warnings.append(
            f"The fit is to the votes of {', '.join(saved.notes['judges'][:8])}; those of "
            f"{', '.join(sorted(others)[:8])} are answered as if they were theirs."
        )
    warnings += [*moved, *drift(saved.profile, profile(votes), saved.classes)]
    log_probs = saved.fitted(votes)
    return Applied(saved, read, votes, log_probs, losses, said, warnings)


def _source(request: ApplyRequest) -> Source:
    return Source(file_or_table(request.votes, "votes"), request.columns, request.reading)


def _with_tasks_of_fit(read: Reading, known_tasks: list[str]) -> tuple[Votes, list[str]]:
    """Return the votes with the fit's task indices, -1 for tasks that it has not seen."""
    coding, votes = read.coding, read.votes
    if votes.task is None or coding.tasks is None:
        raise JudgeBayesError("This fit is hierarchical: name the column of the task, --task.")
    place = {name: i for i, name in enumerate(known_tasks)}
    names = [str(name) for name in coding.tasks]
    table = np.array([place.get(name, MISSING) for name in names])
    new = ", ".join(name for name in names if name not in place)
    said = [f"Task {new} is new to the fit: it is answered from the tasks' centre."] if new else []
    return replace(votes, task=jnp.asarray(table)[votes.task], n_tasks=len(known_tasks)), said


def _with_judges_of_fit(
    read: Reading, votes: Votes, known_judges: list[str]
) -> tuple[Votes, list[str]]:
    """Return the votes with the judges where the fit had them, and who is new and who is absent."""
    place = {name: j for j, name in enumerate(known_judges)}
    names = [str(name) for name in read.coding.judges]
    if not set(names) & set(place):
        raise JudgeBayesError(
            f"None of the judges {', '.join(names[:8])} is known to the fit; it knows "
            f"{', '.join(known_judges[:8])}."
        )
    new = [name for name in names if name not in place]
    absent = [name for name in known_judges if name not in names]
    said = []
    if new:
        said.append(f"The votes of {', '.join(new)} are not used: the fit does not know them.")
    if absent:
        said.append(f"{len(absent)} judge(s) of the fit gave no votes here: {', '.join(absent)}.")
    places = np.array([place.get(name, MISSING) for name in names])
    return votes.align_judges(places, len(known_judges)), said
