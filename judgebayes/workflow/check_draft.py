"""How files are read, as far as it is decided, and what was found on the way."""

import shlex
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.finding import Finding, Severity
from judgebayes.io.gathering import Imported
from judgebayes.io.options import as_pair
from judgebayes.workflow.item_ids import Matching
from judgebayes.workflow.leaves import leaves
from judgebayes.workflow.options import ReadRequest
from judgebayes.workflow.reading import open_votes, with_labels
from judgebayes.workflow.sources import UNSEEN, Earlier, Labels, Opened

LEAVES = {
    leaf.name: leaf for leaf in leaves(ReadRequest, {}) if leaf.name not in ("votes", "labels")
}
"""The options for reading, without the files."""
KEYS = {name for name, leaf in LEAVES.items() if leaf.option.key}
"""Those that the command line has as keys of the study."""


@dataclass(frozen=True)
class CheckFinding(Finding):
    """A problem, a guess or what is fine, with the option that settles it.

    Its topic is file, columns, repeats, order, scale, labels, ids or items. A bad one with an option is
    a question, whose recommended answer is the option; one without must be mended in the files.
    """

    others: tuple[Mapping[str, Any], ...] = ()
    """Other options that would settle it another way."""
    question: str = ""
    """What is wrong without the option; "" if the sentence says it."""


@dataclass(frozen=True)
class Draft:
    """The request to read files, with the options and columns that are decided, and the findings."""

    request: ReadRequest
    """With the options that settle the findings."""
    tables: ReadRequest
    """The request with tables in place of files, and what the log of a tool says by itself."""
    earlier: Earlier = UNSEEN
    log: Imported | None = None
    """What the log of a tool has, if the votes are in one."""
    said: tuple[str, ...] = ()
    """Sentences about what is read without a word."""
    columns: Mapping[str, str | None] = field(default_factory=dict)
    """The column of each role in the votes."""
    gold: Labels | None = None
    """The labels, if they are in a file of their own."""
    findings: tuple[CheckFinding, ...] = ()
    matching: Matching | None = None
    opened: dict[Hashable, Opened | JudgeBayesError] = field(default_factory=dict)
    """What opening the files gave with some options, so that each is opened once."""

    @property
    def votes(self) -> pd.DataFrame:
        """The table of the votes."""
        table: pd.DataFrame = self.tables.votes.table
        return table

    @property
    def labels(self) -> pd.DataFrame | None:
        """The table of the labels, if they are in a file of their own."""
        return None if self.tables.labels is None else self.tables.labels.table

    def with_finding(
        self,
        severity: Severity,
        topic: str,
        text: str,
        *others: Mapping[str, Any],
        question: str = "",
        **options: Any,
    ) -> "Draft":
        """Return the draft with another finding, and with the options that settle it."""
        line = shlex.join(words_of(options))
        finding = CheckFinding(severity, text, topic, option=line, others=others, question=question)
        return replace(
            self,
            request=replace(self.request, **options),
            tables=replace(self.tables, **options),
            findings=(*self.findings, finding),
        )

    @property
    def problems(self) -> tuple[CheckFinding, ...]:
        """The findings that must be mended, or answered."""
        return tuple(each for each in self.findings if each.severity == "bad")

    def saying(self, topic: str, text: str, **options: Any) -> "Draft":
        """Return the draft with a decision that every command says."""
        return replace(self.with_finding("note", topic, text, **options), said=(*self.said, text))

    def options(self) -> dict[str, Any]:
        """Return the options for reading that are not their defaults, by name, without files."""
        given = ((name, getattr(self.request, name), leaf.default) for name, leaf in LEAVES.items())
        return {name: value for name, value, default in given if value != default}

    def keys(self) -> dict[str, Any]:
        """Return the keys of a study file that reads the same: the columns by role, and the options."""
        wide = self.tables.wide
        roles = {} if self.log else {r: n for r, n in self.columns.items() if n or not wide}
        if roles.get("label", "") is None:
            del roles["label"]  # it may be in a file of its own
        return {role: name or "none" for role, name in roles.items()} | self.options()

    def open_votes(self) -> Opened:
        """Open the votes with what is decided.

        Raises
        ------
        JudgeBayesError
            For bad input.
        """
        apart = self.labels is not None
        key = (*self.columns.items(), *self.options().items())
        if key not in self.opened:
            try:
                opened = open_votes(self.tables, self.columns, self.earlier, elsewhere=apart)
                self.opened[key] = replace(opened, classes=self.log.classes if self.log else None)
            except JudgeBayesError as error:
                self.opened[key] = error
        votes = self.opened[key]
        if isinstance(votes, JudgeBayesError):
            raise votes
        return replace(votes, notes=(*self.said, *votes.notes), how=self.keys())

    def read(self) -> Opened:
        """Open the files with what is decided.

        Raises
        ------
        JudgeBayesError
            For bad input.
        """
        votes = self.open_votes()
        if self.labels is not None and self.gold is None:
            return votes
        return with_labels(votes, self.gold, self.earlier, self.log.letters if self.log else {})


def words_of(options: Mapping[str, Any]) -> list[str]:
    """Return options as words of a command line."""
    words = []
    for name, value in options.items():
        if name in KEYS or str(value).startswith("-"):  # every option can be a key
            words += ["--set", as_pair(name, value)]
        else:
            words += [f"--{name}", str(value)]
    return words


def try_open(draft: Draft) -> Opened | None:
    """Open the files with what a draft has decided; None if that is an error, which reading raises."""
    try:
        return draft.read()
    except JudgeBayesError:
        return None
