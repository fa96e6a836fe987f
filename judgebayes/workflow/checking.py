"""`judgebayes check`: all problems of a user's files at once, and one command that runs.

It says what is read in the end, and which questions the files can answer, by which command.
"""

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.finding import Finding, Severity, count_findings
from judgebayes.io.in_memory import InMemory, file_or_table
from judgebayes.io.options import Layout
from judgebayes.io.tables import read_table
from judgebayes.show.page import Block, Code, Findings, Paragraph, Table
from judgebayes.votes.classes import listing
from judgebayes.workflow.asking import decided
from judgebayes.workflow.check_draft import CheckFinding, Draft, words_of
from judgebayes.workflow.check_labels import doubtful_join
from judgebayes.workflow.data import Study, encoded
from judgebayes.workflow.item_ids import Matching, match_items
from judgebayes.workflow.leaves import leaves
from judgebayes.workflow.machine import BAD_INPUT, CheckNumbers, ReadNumbers
from judgebayes.workflow.methods import FEW_LABELS
from judgebayes.workflow.options import (
    CalibrateRequest,
    CheckRequest,
    DiagnoseRequest,
    EnsembleRequest,
    Fixed,
    PrecisionRequest,
)
from judgebayes.workflow.records import with_options
from judgebayes.workflow.results import Result, Written
from judgebayes.workflow.scales import classes_of
from judgebayes.workflow.study import write_study
from judgebayes.workflow.systems import EVERY, generators_of

COMMANDS: dict[str, tuple[str, type]] = {
    "calibrate": (
        "What is the probability of each class, and what should I decide?",
        CalibrateRequest,
    ),
    "diagnose": ("What is wrong with my judges or my labels?", DiagnoseRequest),
    "ensemble": ("What is the error of a majority of k votes?", EnsembleRequest),
    "precision": ("What share of each generator's items is valid?", PrecisionRequest),
}
NO_LABELS = "There are no labels: add them with --labels FILE, or name their column with --label."


def answerable(
    data: Study | None, draft: Draft, files: list[str], *, saved: bool = False
) -> pd.DataFrame:
    """Return a row per question: its command with all options, whether it runs, and why not.

    Parameters
    ----------
    data
        What the options read; None if they read nothing.
    draft
        The options.
    files
        The words of the command for the files.
    saved
        Whether these are a study file, which has the options.
    """
    rows = []
    for name, (question, record) in COMMANDS.items():
        has = {leaf.name for leaf in leaves(record, {})}
        options = {} if saved else draft.options()
        lacking = options.keys() - has - {"drop_unknown_labels"}
        can, why = (False, "The files cannot be read.") if data is None else _answer(name, data)
        if can and lacking:
            can, why = False, f"judgebayes {name} has no key {', '.join(sorted(lacking))}."
        words = words_of({key: value for key, value in options.items() if key in has})
        command = shlex.join(["judgebayes", name, *files, *words])
        rows.append((question, name, can, why, command if can else None))
    return pd.DataFrame(rows, columns=["question", "answered by", "can", "why", "command"]).astype(
        {"can": bool}
    )


def _answer(name: str, data: Study) -> tuple[bool, str]:
    """Tell whether a command can answer its question from what was read, and why not or how well."""
    known = data.labels[data.labels >= 0]
    n, distinct = len(known), len(np.unique(known))
    if name == "diagnose":
        return (
            True,
            f"With {n} labels." if n else "Without labels: judges are compared with one another.",
        )
    if name == "precision":
        return _precision(data, n)
    if n == 0:
        return False, NO_LABELS
    if distinct == 1 and name == "calibrate":
        return False, f"All {n} labels are the same class: label items of the others."
    few = ", few: intervals will be wide" if n < FEW_LABELS else ""
    return True, f"With {n} labels{few}."


def _precision(data: Study, n: int) -> tuple[bool, str]:
    classes = data.coding.classes
    if len(classes) != 2:
        return False, (
            f"The votes have {len(classes)} classes, and this needs two; if items compare systems, "
            "judgebayes calibrate --set systems=A,B gives win rates."
        )
    try:
        names, _ = generators_of(data, None)
    except JudgeBayesError as error:
        return False, str(error)
    if names == [EVERY]:
        return (
            True,
            f"All items as one system's, with {n} labels; --set generator=COLUMN names its column.",
        )
    if len(names) < 2:
        return True, f"One generator, {names[0]!r}, with {n} labels."
    return True, f"{len(names)} generators, with {n} labels."


FOUND_ALREADY = (
    *("Columns: ", "Judges: ", "match_ids=loosely: ", "Read as missing votes: "),
    "is read as judgebayes import",
)
"""What is read says these too, where a finding says it before."""


def finished(draft: Draft, data: Study) -> Draft:
    """Return the draft with what is read in the end."""
    for line in data.said:
        said = any(line in finding.sentence for finding in draft.findings)
        if not said and not any(words in line for words in FOUND_ALREADY):
            draft = draft.with_finding("good", "read", line)
    known = data.labels[data.labels >= 0]
    if data.labelled and len(np.unique(known)) == 1:
        name = data.coding.classes.names[int(known[0])]
        draft = draft.with_finding(
            "bad",
            "labels",
            f"All {len(known)} labels are {name!r}: nothing can be learnt from them.",
        )
    elif data.labelled and len(known) < FEW_LABELS:
        draft = draft.with_finding(
            "note", "labels", f"There are only {len(known)} labels: intervals will be wide."
        )
    doubt = doubtful_join(data)
    return draft if doubt is None else draft.with_finding(doubt[0], "ids", doubt[1])


KINDS: dict[Severity, str] = {"bad": "problem", "note": "guess", "good": "fine"}


@dataclass(frozen=True, repr=False)
class Check(Result):
    """What is in the files, and how to read them."""

    schema: ClassVar[str] = "judgebayes.check/1"
    findings: tuple[CheckFinding, ...]
    """All problems, guesses and what is fine, in the order in which a file is read."""
    command: str | None
    """A command that runs on these files; None if the files must be mended first."""
    options: dict[str, Any]
    """The options of that command as keywords: `jb.calibrate(votes, labels, **check.options)`."""
    questions: pd.DataFrame
    """A row per question: its command, whether these files can answer it, and why not or how well."""
    data: Study | None
    """What the command reads; None if it cannot."""
    ids: pd.DataFrame
    """A row per item of the labels: the item of the votes that it is, or the one that is similar."""
    study: dict[str, Any]
    """The keys of a study file that reads the same: the options, and the columns by role."""

    @property
    def problems(self) -> tuple[CheckFinding, ...]:
        """What a command refuses without the proposed option, or at all."""
        return tuple(each for each in self.findings if each.severity == "bad")

    @property
    def blocks(self) -> list[Block]:
        """The findings, the worst first, which questions the files can answer, and the command."""
        findings = [each for kind in KINDS for each in self.findings if each.severity == kind]
        rows = [
            (str(row.question), str(row[2]), f"{'yes' if row.can else 'no'}: {row.why}")
            for row in self.questions.itertuples()
        ]
        head = ("question", "command", "answered")
        blocks: list[Block] = [
            Findings(findings),
            Table("What these files can answer", head, rows, words=[1, 2]),
        ]
        if self.command is None:
            text = "No command can read these files as they are: mend the problems first."
            return [*blocks, Paragraph(text)]
        return [*blocks, Paragraph("This command runs:"), Code(self.command)]

    @property
    def files(self) -> dict[str, tuple[str, Written]]:
        """Which item each label is of."""
        return {"out": ("the items of the labels", self.ids)}

    @property
    def exit_code(self) -> int:
        """2 if no command can read the files."""
        return BAD_INPUT if self.command is None else 0

    @property
    def numbers(self) -> CheckNumbers:
        """The command and its options, which commands can answer, and the sizes of what is read."""
        sizes: ReadNumbers = {"items": 0, "labels": 0, "judges": 0, "votes": 0}
        can = dict(zip(self.questions["answered by"], self.questions["can"], strict=True))
        return {
            "command": self.command,
            "options": self.options,
            "can": {name: bool(each) for name, each in can.items()},
            **(sizes if self.data is None else self.data.numbers),
            **count_findings(self.all_findings),
        }

    @property
    def all_findings(self) -> list[Finding]:
        """The findings as those of a diagnostic, with their options."""
        return [replace(each, sentence=each.text) for each in self.findings]

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The findings, the questions, and the items of the labels."""
        findings = pd.DataFrame(
            [
                (KINDS[each.severity], each.topic, each.sentence, each.option)
                for each in self.findings
            ],
            columns=["kind", "topic", "finding", "option"],
        )
        return {"findings": findings, "questions": self.questions, "ids": self.ids}


@with_options
def check(
    request: Annotated[CheckRequest, Fixed({"out": None, "html": None})],
) -> Check:
    """Check files of votes and labels: all problems and guesses, and one command that runs.

    The function behind `judgebayes check`, with the same options; `votes`, `labels` and `items` are
    paths or tables. Options that are given are kept.

    Raises
    ------
    JudgeBayesError
        If a file does not exist.
    """
    files: dict[str, Any] = {"votes": file_or_table(request.votes, "votes")} | {
        name: file_or_table(given, name)
        for name in ("labels", "items")
        if (given := getattr(request, name)) is not None
    }
    for path in files.values():
        if isinstance(path, Path) and not path.exists():
            raise JudgeBayesError(f"There is no file {str(path)!r}.")
    data, draft = _read(decided(replace(request, **files)))
    if data is not None:
        draft = finished(draft, data)
        if "items" in files:
            draft = _items_checked(draft, data, files["items"])
    words = {n: n.upper() if isinstance(p, InMemory) else str(p) for n, p in files.items()}
    labels = ["--labels", words["labels"]] if "labels" in words else []
    options = draft.options() if data is not None else {}
    study = {} if data is None else data.how
    if request.save is not None and data is not None:
        write_study(request.save, {n: p for n, p in files.items() if isinstance(p, Path)}, study)
        questions = answerable(data, draft, [str(request.save)], saved=True)
    else:
        questions = answerable(data, draft, [words["votes"], *labels])
    can = questions[questions["can"]]
    return Check(
        draft.findings,
        None if data is None or can.empty else str(can["command"].iloc[0]),
        options,
        questions,
        data,
        _ids(draft.matching),
        study,
    )


def _read(draft: Draft) -> tuple[Study | None, Draft]:
    """Return what a draft reads; None and a problem if it reads nothing."""
    if not draft.columns:
        return None, draft
    try:
        opened = draft.read()
        return encoded(opened, classes_of(opened)), draft
    except JudgeBayesError as error:
        if any(str(error) == each.sentence for each in draft.problems):
            return None, draft
        return None, draft.with_finding("bad", "files", str(error))


def _items_checked(draft: Draft, data: Study, path: Path | InMemory) -> Draft:
    """Compare a file of items with the items that have votes."""
    coding = data.coding
    try:
        table = read_table(path, Layout(encoding=draft.request.encoding))
    except JudgeBayesError as error:
        return draft.with_finding("bad", "items", str(error))
    name = str(coding.items.name)
    shares = {
        str(column): match_items(coding.items, table[column].dropna().unique())
        for column in table.columns
        if table[column].map(pd.api.types.is_scalar).all()
    }
    column = max(shares, key=lambda each: (len(shares[each].item_of), each == name), default=None)
    if column is None or not shares[column].item_of:
        return draft.with_finding(
            "bad", "items", f"No column of {path.name!r} contains the items of the votes."
        )
    matching = shares[column]
    without = table[column].nunique() - len(set(matching.item_of.values()))
    text = (
        f"{matching.preview} items with votes are in column {column!r} of {path.name!r}; {without} of "
        f"its items have no votes. Not there: {listing(matching.unmatched, 3) or 'none'}."
    )
    severity: Severity = "note" if matching.folded or matching.unmatched else "good"
    return draft.with_finding(severity, "items", text)


def _ids(matching: Matching | None) -> pd.DataFrame:
    rows: list[tuple[str, str | None, str | None]] = []
    if matching is not None:
        rows += [(name, item, None) for name, item in matching.item_of.items()]
        rows += [(name, None, matching.near.get(name)) for name in matching.unmatched]
    return pd.DataFrame(rows, columns=["labels", "votes", "similar"], dtype=object)
