"""The options to read files, as far as a check knows them, and its findings."""

import shlex
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.finding import Finding, Severity
from judgebayes.workflow.item_ids import Matching
from judgebayes.workflow.options import CheckRequest
from judgebayes.workflow.reading import open_files
from judgebayes.workflow.records import changed
from judgebayes.workflow.sources import Opened


@dataclass(frozen=True)
class CheckFinding(Finding):
    """A problem, a guess or what is fine, with the option that settles it.

    Its topic is file, columns, repeats, order, scale, labels, ids or items.
    """

    option: str = ""
    """The option, as at the command line; "" if none is needed or none would do."""
    others: tuple[Mapping[str, Any], ...] = ()
    """Other options that would settle it another way."""

    @property
    def text(self) -> str:
        """The sentence with its option."""
        return f"{self.sentence} Option: {self.option}" if self.option else self.sentence


@dataclass(frozen=True)
class Draft:
    """The request to read files, with the options that are known, and the findings so far."""

    request: CheckRequest
    findings: tuple[CheckFinding, ...] = ()
    matching: Matching | None = None
    votes: pd.DataFrame = field(default_factory=pd.DataFrame)
    """The table of the votes; empty before it is read."""
    labels: pd.DataFrame | None = None
    """The table of the labels, if they are in a file of their own."""
    opened: dict[Hashable, Opened | None] = field(default_factory=dict)
    """What opening the files gave with some options, so that each is opened once."""

    def with_finding(
        self, severity: Severity, topic: str, text: str, *others: Mapping[str, Any], **options: Any
    ) -> "Draft":
        """Return the draft with another finding, and with the options that settle it."""
        line = shlex.join(words_of(options))
        finding = CheckFinding(severity, text, topic, option=line, others=others)
        request = replace(self.request, **options)
        return replace(self, request=request, findings=(*self.findings, finding))

    def options(self) -> dict[str, Any]:
        """Return the options that are not their defaults, by name, without files."""
        files = ("labels", "items", "out", "save")
        return {name: value for name, value in changed(self.request) if name not in files}


def words_of(options: Mapping[str, Any]) -> list[str]:
    """Return options as words of a command line."""
    words = []
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(flag)
        elif str(value).startswith("-"):
            words.append(f"{flag}={value}")
        else:
            words += [flag, str(value)]
    return words


def try_open(draft: Draft) -> Opened | None:
    """Open the files with the options of a draft, as every command does; None if that is an error."""
    options = (draft.request.labels is None, *draft.options().items())
    if options not in draft.opened:
        try:
            draft.opened[options] = open_files(draft.request)
        except JudgeBayesError:
            draft.opened[options] = None  # the error is found when the files are read
    return draft.opened[options]
