"""Labelling one item after another until the error of a majority vote is known well enough."""

import hashlib
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd

from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.io.appended import Appended, AppendedWords
from judgebayes.majority import (
    correct_counts,
    is_check,
    labelling_order,
    next_check,
    stopping_level,
)
from judgebayes.sentence import percent
from judgebayes.workflow.asking import open_files
from judgebayes.workflow.data import Data, encoded, undecided_as_class
from judgebayes.workflow.ensemble_estimates import first_of, interval_now, points
from judgebayes.workflow.ensemble_panel import check_goal, panel_of
from judgebayes.workflow.ensembling import estimates_of
from judgebayes.workflow.machine import plain
from judgebayes.workflow.options import TARGETS, EnsembleRequest, Fixed
from judgebayes.workflow.records import with_options
from judgebayes.workflow.results import Result, ends
from judgebayes.workflow.scales import classes_of
from judgebayes.workflow.sources import Labels, Opened

TARGET_WIDTH = 0.1
WORDS = AppendedWords(
    contents="labels",
    same="All labels in a file must be of the same votes, in one order.",
    other="choose another file with --session",
)


@dataclass(frozen=True, repr=False)
class SessionStep(Result):
    """The state of a labelling session after its last label."""

    schema: ClassVar[str] = "judgebayes.session_step/1"
    labels: pd.DataFrame
    """The labels so far, in the order of labelling: item and label."""
    next_item: object
    """The item to label next; None if every item with votes has a label."""
    votes: int | None
    """The number of votes of the majority; None without labels."""
    error: float
    """The estimated error of the majority; NaN without labels."""
    low: float
    high: float
    """The interval with the level of the request."""
    width: float
    """The width of the interval that decides about stopping; NaN if it is not checked now."""
    enough: bool
    """Whether that interval meets the target width."""
    sentences_said: list[str]

    @property
    def sentences(self) -> list[str]:
        """The labels so far, the error with its interval, and what to do next."""
        return self.sentences_said

    @property
    def numbers(self) -> dict[str, Any]:
        """The number of labels, the error with its interval, and whether that is narrow enough."""
        return {
            "labels": len(self.labels),
            "votes": self.votes,
            "error": ends(self.error, self.low, self.high),
            "width": self.width,
            "enough": self.enough,
            "next_item": self.next_item,
        }

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The labels so far."""
        return {"labels": self.labels}


@with_options
@in_float64
def label_session(
    request: Annotated[
        EnsembleRequest,
        Fixed(
            {"labels": None, "out": None, "plot": None, "k": None}
            | {"next_labels": None, "next_out": None}
        ),
    ],
) -> SessionStep:
    """Add a label to a session, and return the interval and the next item to label.

    The function behind `judgebayes ensemble --session`. The file of a session has a line per label and
    can be passed as `labels` to `ensemble`.

    Raises
    ------
    JudgeBayesError
        If there is no session, its votes are others, the label is of an unknown item or class, or for
        bad input.
    """
    _check(request)
    opened = open_files(request)
    if opened.labels is not None:
        raise JudgeBayesError(
            f"The votes have labels, in column {opened.labels.label!r}; a session starts without any. "
            "Use --label none, or leave out --session."
        )
    votes = _data(opened, [])
    assert request.session is not None
    settings = {"votes": _digest(votes), "seed": request.seed}
    with Appended(request.session, settings, WORDS) as file:
        known = {str(item): item for item in votes.coding.items}
        labels = _labels(file, known)
        said = []
        if file.torn:
            said.append(f"An incomplete last line of {str(request.session)!r} was removed.")
        if request.new_label is not None:
            item, label = _new_label(request.new_label, known, labels)
            # A label that cannot be read is refused here, before it is in the file.
            data = _data(opened, [*labels, (item, label)])
            file.append(plain({"item": item, "label": label}))
            labels.append((item, label))
        else:
            data = _data(opened, labels) if labels else votes
    return _step(data, request, labels, said)


def _check(request: EnsembleRequest) -> None:
    if request.session is None:
        raise JudgeBayesError("--new-label adds a label to a file: name it with --session FILE.")
    for name in ("labels", "k", "out", "plot", "next_labels", "next_out"):
        if getattr(request, name) is not None:
            option = "next" if name == "next_labels" else name.replace("_", "-")
            raise JudgeBayesError(
                f"--{option} has no effect with --session, whose labels are in its file. For the "
                f"table, use --labels {request.session} without --session."
            )
    if isinstance(request.votes, Data):
        raise JudgeBayesError("A session reads the votes itself: pass a path or a table.")
    check_goal(request)
    stopping_level(request.level)


def _data(opened: Opened, labels: list[tuple[Any, Any]]) -> Data:
    if labels:
        table = pd.DataFrame(labels, columns=["item", "label"], dtype=object)
        opened = replace(opened, labels=Labels(table, "item", "label"))
    return undecided_as_class(encoded(opened, classes_of(opened)))


def _digest(data: Data) -> str:
    """Return a digest of the items and their votes."""
    coding, digest = data.coding, hashlib.sha256()
    digest.update(repr([str(item) for item in coding.items]).encode())
    digest.update(np.asarray(data.votes.pooled_counts(), np.int64).tobytes())
    return digest.hexdigest()[:16]


def _labels(file: Appended, known: dict[str, Any]) -> list[tuple[Any, Any]]:
    labels: list[tuple[Any, Any]] = []
    for number, record in file.records:
        if set(record) != {"item", "label"} or str(record["item"]) not in known:
            raise JudgeBayesError(
                f"Line {number} of {str(file.path)!r} is not the label of an item with votes; a line is "
                '{"item": ..., "label": ...}.'
            )
        labels.append((known[str(record["item"])], record["label"]))
    return labels


def _new_label(text: str, known: dict[str, Any], labels: list[tuple[Any, Any]]) -> tuple[Any, Any]:
    name, equals, label = text.rpartition("=")
    if not equals or not name or not label:
        raise JudgeBayesError(f"--new-label {text!r} must be ITEM=LABEL, for example q17=A.")
    if name not in known:
        raise JudgeBayesError(f"--new-label: there is no item {name!r} with votes.")
    before = [old for item, old in labels if str(item) == name]
    if before:
        raise JudgeBayesError(
            f"--new-label: item {name!r} is already labelled {str(before[0])!r}. To correct it, change "
            "its line in the file."
        )
    return known[name], label


def _step(
    data: Data, request: EnsembleRequest, labels: list[tuple[Any, Any]], said: list[str]
) -> SessionStep:
    items = data.coding.items
    voted = np.flatnonzero(np.asarray(data.votes.pooled_counts()).sum(1) > 0)
    order = [items[i] for i in voted[labelling_order(len(voted), request.seed)]]
    done = {str(item) for item, _ in labels}
    left = [item for item in order if str(item) not in done]
    n, goal = len(labels), request.target_width or TARGET_WIDTH
    said = [*said, f"{n} of {len(order)} items are labelled."]
    proposed = {str(item) for item in order[:n]}
    other = len(done - proposed)
    if other:
        said.append(
            f"Of these, {other} are not those that were proposed: the interval holds only if the "
            "labelled items are a random part of all."
        )
    votes, ends_of_error, width, enough = None, (np.nan, np.nan, np.nan), np.nan, False
    if n:
        panel = panel_of(data, request)
        counts = correct_counts(panel.votes, data.labels)
        estimates, grouped = estimates_of(data, panel, counts, request)
        now = interval_now(estimates, request.level)
        votes, ends_of_error = int(now.size[0]), first_of(now)
        error, low, high = ends_of_error
        said += [
            *grouped,
            f"A decision by {votes} votes is wrong on {percent(error, 1)} of {TARGETS[request.target]}, "
            f"{percent(request.level)} interval {percent(low, 1)} to {percent(high, 1)}.",
        ]
        if is_check(n) or not left:
            stricter = stopping_level(request.level)
            checked = interval_now(estimates, stricter)
            width = float(checked.high[0] - checked.low[0])
            enough = width <= goal
            said.append(
                f"The {percent(stricter)} interval, which decides about stopping, is {points(width)} "
                f"wide; the target is {points(goal)}: {'stop' if enough else 'continue'}."
            )
    if left and not enough:
        when = "next" if n else "first"
        said.append(f"The width is checked {when} at {next_check(n)} labels. Next item: {left[0]}")
    table, next_item = pd.DataFrame(labels, columns=["item", "label"]), left[0] if left else None
    return SessionStep(table, next_item, votes, *ends_of_error, width, enough, said)
