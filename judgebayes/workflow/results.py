"""The base class of the workflow's results: blocks, numbers and tables, for people and for machines."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.finding import Finding
from judgebayes.sentence import rounded, sentence
from judgebayes.show.page import Block, Findings, Paragraph, Plot, Table, markup
from judgebayes.workflow.machine import CommandResult, Estimate, plain

SHORT = 40
"""Longer texts are left out of the repr."""
FIRST = 5
"""The rows of a long table that are shown."""

Written: TypeAlias = pd.DataFrame | Callable[[Path], None]
"""What a file gets: a table, or what a function writes."""


@dataclass(frozen=True)
class Parts:
    """What people and machines read of a result; `Result` says what each part is."""

    blocks: Sequence[Block] = ()
    tables: Mapping[str, pd.DataFrame | None] = field(default_factory=dict)
    """None for one that there is not."""
    numbers: Mapping[str, Any] = field(default_factory=dict)
    next_steps: Sequence[str] = ()
    files: Mapping[str, tuple[str, Written]] = field(default_factory=dict)
    exit_code: int = 0


class Result:
    """A frozen result: blocks that people read, and numbers and tables that machines read."""

    schema: ClassVar[str]
    """The name and version of what `to_dict` returns: `judgebayes.calibration/1`."""
    parts: Parts = Parts()
    """The parts, of a result that does not work them out when they are asked for."""

    @property
    def blocks(self) -> Sequence[Block]:
        """What was read and done, and the conclusions, as the console, a notebook and a page show it."""
        return self.parts.blocks

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables by name, the most important first."""
        return {name: each for name, each in self.parts.tables.items() if each is not None}

    @property
    def numbers(self) -> Mapping[str, Any]:
        """The numbers that a reader looks for first, by name; NaN where one is not known."""
        return self.parts.numbers

    @property
    def next_steps(self) -> list[str]:
        """What to do next, in sentences; empty if nothing follows from this result."""
        return list(self.parts.next_steps)

    @property
    def files(self) -> Mapping[str, tuple[str, Written]]:
        """What is written where an option names a file: by option, in words, and what it is."""
        return self.parts.files

    @property
    def next_commands(self) -> Mapping[str, str]:
        """Commands to run next on the same files, by what they are for."""
        return {}

    @property
    def exit_code(self) -> int:
        """The exit code of the command with this result."""
        return self.parts.exit_code

    @property
    def sentences(self) -> list[str]:
        """The sentences among the blocks."""
        said: list[str] = []
        for block in self.blocks:
            match block:
                case Paragraph(text):
                    said.append(text)
                case Findings(findings):
                    said += [each.text for each in findings]
        return said

    @property
    def all_findings(self) -> list[Finding]:
        """The findings of diagnostics, and the warnings as notes."""
        return [*getattr(self, "findings", []), *as_notes(getattr(self, "warnings", []))]

    def plot(self) -> Any:
        """Return the first figure, as Matplotlib's.

        Raises
        ------
        JudgeBayesError
            If there is none.
        """
        figure = next((block for block in self.blocks if isinstance(block, Plot)), None)
        if figure is None:
            raise JudgeBayesError("There is nothing to draw here.")
        return figure.draw()

    def for_machines(self) -> CommandResult:
        """Return what a command with this result hands to a machine."""
        return CommandResult(self.to_dict(), self.all_findings, self.exit_code)

    def to_dict(self) -> dict[str, Any]:
        """Return numbers, sentences and tables (a list of rows each) as plain values for JSON."""
        return {
            "schema": self.schema,
            **plain(self.numbers),
            "sentences": [sentence(each) for each in self.sentences],
            "next_steps": [sentence(each) for each in self.next_steps],
            "tables": {name: rows_of(table) for name, table in self.tables.items()},
        }

    def __repr__(self) -> str:
        """Return the name of the type and the numbers that are single values, in a line."""
        shown = (
            f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value!r}"
            for name, value in self.numbers.items()
            if isinstance(value, str | int | float) and len(str(value)) <= SHORT
        )
        return f"{type(self).__name__}({', '.join(shown)})"

    def __str__(self) -> str:
        """Return the sentences, and what to do next, one per line."""
        return "\n".join(sentence(each) for each in [*self.sentences, *self.next_steps])

    def _repr_html_(self) -> str:
        """Return the blocks and what to do next, for a notebook."""
        return markup([*self.blocks, *map(Paragraph, self.next_steps)])


@dataclass(frozen=True, repr=False, kw_only=True)
class Answer(Result):
    """A result whose parts are made with it."""

    parts: Parts


def as_notes(lines: Sequence[str]) -> list[Finding]:
    """Return sentences as notes of their own topic."""
    return [Finding("note", each, "warning") for each in lines]


def first_rows(title: str, table: pd.DataFrame, most: int = FIRST) -> Table:
    """Return the first rows of a table of any values."""
    rows = [
        [rounded(cell) if isinstance(cell, float) else str(cell) for cell in row]
        for row in table.head(most).itertuples(index=False)
    ]
    texts = [n for n, name in enumerate(table) if not pd.api.types.is_numeric_dtype(table[name])]
    more = f", the first {most} of {len(table)} rows" if len(table) > most else ""
    return Table(f"{title}{more}", [str(name) for name in table], rows, texts)


def rows_of(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table as plain values for JSON; a value that is not finite is None."""
    rows: list[dict[str, Any]] = json.loads(table.to_json(orient="records", double_precision=15))
    return rows


def ends(estimate: float, low: float, high: float) -> Estimate:
    """Return an estimate and its interval by name."""
    return {"estimate": float(estimate), "low": float(low), "high": float(high)}
