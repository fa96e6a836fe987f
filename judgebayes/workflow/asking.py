"""Read files as their names and values say, or ask: the ways in which they can be read."""

import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from judgebayes.errors import AmbiguousStudy, Candidate, JudgeBayesError
from judgebayes.io.in_memory import InMemory, file_or_table
from judgebayes.io.options import Layout
from judgebayes.io.tables import check_ignored, notes_of
from judgebayes.io.vote_tables import read_votes
from judgebayes.votes.classes import listing
from judgebayes.workflow.check_columns import find_long, find_wide
from judgebayes.workflow.check_draft import LEAVES, Draft, try_open, words_of
from judgebayes.workflow.check_labels import doubtful_join, find_label, find_merged
from judgebayes.workflow.check_scales import find_order, find_scale
from judgebayes.workflow.data import Study, encoded
from judgebayes.workflow.options import ReadRequest
from judgebayes.workflow.reading import converted
from judgebayes.workflow.records import changed, with_options
from judgebayes.workflow.scales import classes_of
from judgebayes.workflow.sources import UNSEEN, Earlier, Opened

ENCODINGS = ("cp1252", "cp1250")
"""Encodings of files that are not UTF-8, tried in this order."""
MOST = 4
SHOWN = 3
"""The candidates of a question, and the items of a preview."""


@with_options
def read(request: ReadRequest) -> Study:
    """Read votes and labels once, for `calibrate`, `diagnose`, `ensemble` and `precision`.

    Pass the result in place of `votes`, without the keys that are set here. `votes` and `labels` are
    paths or tables: pandas, or any with the Arrow interface (polars, PyArrow, DuckDB). The votes may be
    a study file, which says all. Keys such as `missing="n/a"` say what the names and values of columns
    leave open.

    Raises
    ------
    AmbiguousStudy
        If the files can be read in several ways: what selects each.
    JudgeBayesError
        For other bad input.
    """
    return data_of(request, detect=True)


def data_of(request: ReadRequest, *, named: tuple[str, ...] = (), detect: bool = False) -> Study:
    """Return the `Study` that a request has in place of votes, or read its files or tables.

    `named` are columns that are not judges; `detect` is as in `classes_of`.

    Raises
    ------
    AmbiguousStudy
        If the files can be read in several ways.
    JudgeBayesError
        For other bad input, or if data that are already read come with options for reading.
    """
    if not isinstance(request.votes, Study):
        opened = open_files(request, Earlier(ignored=named))
        data = encoded(opened, classes_of(opened, detect=detect))
        doubt = doubtful_join(data)
        if doubt is None:
            return data
        return replace(data, opened=replace(data.opened, notes=(*data.opened.notes, doubt[1])))
    again = [name for name, _ in changed(request) if name == "labels" or name in LEAVES]
    if again:
        raise JudgeBayesError(
            f"The votes are already read, and {listing(again, 20)} would change how they are read: pass "
            "these options to judgebayes.read."
        )
    return request.votes


def open_files(request: ReadRequest, earlier: Earlier = UNSEEN) -> Opened:
    """Open the votes and the labels, if any, as names and values say.

    Raises
    ------
    AmbiguousStudy
        If the files can be read in several ways.
    JudgeBayesError
        For other bad input.
    """
    draft = decided(request, earlier)
    if draft.problems:
        raise _question(draft, request)
    return draft.read()


def decided(request: ReadRequest, earlier: Earlier = UNSEEN) -> Draft:
    """Return how files are read, after all steps, and what was found.

    Raises
    ------
    JudgeBayesError
        If options contradict one another, or the files are neither paths nor tables.
    """
    for name in ("annotator", "adjudicator"):
        if request.labels_merge is None and getattr(request, name) is not None:
            raise JudgeBayesError(
                f"{name} is used with --set labels_merge=majority, adjudicated or noisy only."
            )
    votes = file_or_table(request.votes, "votes")
    labels = None if request.labels is None else file_or_table(request.labels, "labels")
    request = replace(request, votes=votes, labels=labels)
    draft = Draft(request, request, earlier)
    try:
        tables, log, said = converted(request)
    except JudgeBayesError as error:
        return draft.with_finding("bad", "file", str(error))
    draft = replace(draft, tables=tables, log=log, said=said)
    draft = draft.with_finding("note", "file", said[0]) if log else _opened(draft, "votes", votes)
    if labels is not None:
        draft = _opened(draft, "labels", labels)
    if draft.tables.votes is None or (labels is not None and draft.tables.labels is None):
        return draft
    draft = find_wide(draft) or find_long(draft)
    if not draft.columns:
        return draft
    for step in (find_label, find_merged, find_scale, find_order):
        opened = try_open(draft)
        draft = draft if opened is None else step(draft, opened)
    return draft


def _opened(draft: Draft, what: str, path: Path | InMemory) -> Draft:
    """Return the draft with the table of a file, None and a problem if it cannot be read.

    If its encoding is unknown, it is read with the first that reads it.
    """
    request, refused = draft.request, None
    given, ignored = request.encoding, () if request.wide else request.left_out
    layout = Layout(request.skip_rows if what == "votes" else None, given, ignored, what == "votes")
    for encoding in (given, *(ENCODINGS if given is None else ())):
        try:
            layout = replace(layout, encoding=encoding)
            table = read_votes(path, layout, request.named())
            if what == "votes":
                check_ignored(table, request.left_out if request.wide else (), path)
        except JudgeBayesError as error:
            refused = refused or str(error)
            if "use --set encoding" in refused:
                continue
            break
        if encoding != given:
            text = f"{path.name!r} is not UTF-8; it can be read as {encoding}."
            draft = draft.with_finding(
                "bad", "file", text, question=refused or "", encoding=encoding
            )
        for note in notes_of(table):
            draft = draft.with_finding("note", "file", note)
        read: dict[str, Any] = {what: InMemory(table, path.name)}
        return replace(draft, tables=replace(draft.tables, **read))
    draft, unread = draft.with_finding("bad", "file", str(refused)), dict[str, Any]({what: None})
    return replace(draft, tables=replace(draft.tables, **unread))


def _question(draft: Draft, request: ReadRequest) -> JudgeBayesError:
    """Return the question how files are read, with the ways; or the error, if there is none."""
    stuck = next(
        (JudgeBayesError(each.sentence) for each in draft.problems if not each.option), None
    )
    if not draft.columns:
        return stuck or JudgeBayesError(draft.problems[-1].sentence)
    given, best = vars(request), draft.options()
    try:
        data = _data(draft)
    except JudgeBayesError as error:
        return error
    if stuck is not None:
        return stuck
    said = [f.sentence for f in draft.findings if f.severity == "bad" or f.sentence in draft.said]
    words = " ".join(said)
    candidates = [_candidate(words, best, given, data)]
    for other in chain.from_iterable(each.others for each in draft.findings):
        options = best | dict(other)
        again = decided(replace(draft.request, **options), draft.earlier)
        new = {name: value for name, value in options.items() if best.get(name) != value}
        if not new:
            continue
        words = f"The same, with {_line(new)}."
        with suppress(JudgeBayesError):
            if not again.problems:
                candidates.append(_candidate(words, options, given, _data(again)))
    questions = [each.question for each in draft.problems if each.question]
    plain = f"How is {draft.request.votes.name} read?"
    return AmbiguousStudy(" ".join(questions) or plain, candidates[:MOST])


def _data(draft: Draft) -> Study:
    opened = draft.read()
    return encoded(opened, classes_of(opened))


def _candidate(
    words: str, options: Mapping[str, Any], given: Mapping[str, Any], data: Study
) -> Candidate:
    new = {name: value for name, value in options.items() if given.get(name) != value}
    return Candidate(words, new, _line(new), _preview(data))


def _line(options: Mapping[str, Any]) -> str:
    line = shlex.join(words_of(options))
    return line if line.isprintable() else f"{', '.join(f'{name}=' for name in options)} in Python"


def _preview(data: Study) -> tuple[str, ...]:
    """Return the votes and the label of the first items."""
    coding, index = data.coding, data.votes.index
    lines = []
    for item in range(min(SHOWN, len(coding.items))):
        votes = [
            f"{judge} {coding.classes.names[int(vote)]}"
            for judge, own in zip(coding.judges, index[item], strict=True)
            for vote in own
            if vote >= 0
        ]
        label = int(data.labels[item])
        gold = f"; label {coding.classes.names[label]}" if label >= 0 else ""
        lines.append(f"{coding.items[item]}: {', '.join(votes[:6]) or 'no vote'}{gold}")
    return tuple(lines)
