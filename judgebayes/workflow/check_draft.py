"""The options to read files, as far as a check knows them, and its findings."""

import shlex
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.finding import Severity
from judgebayes.io.in_memory import InMemory
from judgebayes.workflow.item_ids import Matching
from judgebayes.workflow.options import Annotators, Columns, ReadingOptions
from judgebayes.workflow.reading import open_files
from judgebayes.workflow.records import changed
from judgebayes.workflow.sources import Opened


@dataclass(frozen=True)
class CheckFinding:
    """A problem, a guess or what is fine, with the option that settles it."""

    severity: Severity
    topic: str
    """What it is about: file, columns, repeats, order, scale, labels, ids or items."""
    sentence: str
    option: str = ""
    """The option, as at the command line; "" if none is needed or none would do."""

    @property
    def text(self) -> str:
        """The sentence with its option."""
        return f"{self.sentence} Option: {self.option}" if self.option else self.sentence


@dataclass(frozen=True)
class Draft:
    """The options to read files, as far as they are known, and the findings so far."""

    columns: Columns
    reading: ReadingOptions
    annotators: Annotators
    classes: str | None
    drop_unknown: bool
    findings: tuple[CheckFinding, ...] = ()
    matching: Matching | None = None

    def with_finding(self, severity: Severity, topic: str, text: str, option: str = "") -> "Draft":
        """Return the draft with another finding."""
        finding = CheckFinding(severity, topic, text, option)
        return replace(self, findings=(*self.findings, finding))

    def with_columns(self, **names: Any) -> "Draft":
        """Return the draft with other columns."""
        return replace(self, columns=replace(self.columns, **names))

    def with_reading(self, **options: Any) -> "Draft":
        """Return the draft with other options for reading."""
        return replace(self, reading=replace(self.reading, **options))

    def options(self) -> dict[str, Any]:
        """Return the options that are not their defaults, by name."""
        options: dict[str, Any] = {}
        for record in (self.columns, self.reading, self.annotators):
            options |= {name: getattr(record, name) for name in changed(record)}
        if self.classes is not None:
            options["classes"] = self.classes
        if self.drop_unknown:
            options["drop_unknown_labels"] = True
        return options


@dataclass(frozen=True)
class Tables:
    """The tables of a check; `votes` may have other columns after a step."""

    path: Path | InMemory
    labels_path: Path | InMemory | None
    votes: pd.DataFrame
    labels: pd.DataFrame | None
    opened: dict[Hashable, Opened | JudgeBayesError] = field(default_factory=dict, compare=False)
    """What opening the files gave with the options of a draft, so that each is opened once."""


def word(name: str, value: str) -> str:
    """Return an option and its value as at the command line."""
    return shlex.join([f"--{name}", value])


def opened_by(draft: Draft, tables: Tables) -> Opened:
    """Open the files with the options of a draft, as every command does.

    Raises
    ------
    JudgeBayesError
        If they cannot be opened with these options.
    """
    options = (draft.columns, draft.reading, draft.annotators)
    if options not in tables.opened:
        try:
            opened = open_files(
                tables.path, tables.labels_path, *options[:2], annotators=draft.annotators
            )
        except JudgeBayesError as error:
            tables.opened[options] = error
        else:
            tables.opened[options] = opened
    result = tables.opened[options]
    if isinstance(result, JudgeBayesError):
        raise result
    return result


def try_open(draft: Draft, tables: Tables) -> Opened | None:
    """Return what `opened_by` does, None if that is an error."""
    try:
        return opened_by(draft, tables)
    except JudgeBayesError:
        return None  # the error is found when the files are read
