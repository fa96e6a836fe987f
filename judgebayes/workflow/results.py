"""The base class of the workflow's results: sentences, tables, JSON and HTML."""

import json
from abc import ABC, abstractmethod
from html import escape
from typing import Any, ClassVar

import pandas as pd

from judgebayes.finding import Finding
from judgebayes.sentence import sentence
from judgebayes.workflow.machine import CommandResult, plain

SHOWN = 10
"""Number of rows of each table in a notebook."""
SHORT = 40
"""Longer texts are left out of the repr."""


class Result(ABC):
    """A frozen result: sentences with the conclusions, and tables with the numbers."""

    schema: ClassVar[str]
    """The name and version of what `to_dict` returns: `judgebayes.calibration/1`."""

    @property
    @abstractmethod
    def sentences(self) -> list[str]:
        """What was read and done, and the conclusions."""

    @property
    @abstractmethod
    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables by name, the most important first."""

    @property
    def numbers(self) -> dict[str, Any]:
        """The numbers that a reader looks for first, by name; NaN where one is not known."""
        return {}

    @property
    def next_steps(self) -> list[str]:
        """What to do next, in sentences; empty if nothing follows from this result."""
        return []

    @property
    def all_findings(self) -> list[Finding]:
        """The findings of diagnostics, and the warnings as notes."""
        warnings = getattr(self, "warnings", [])
        return [
            *getattr(self, "findings", []),
            *(Finding("note", each, "warning") for each in warnings),
        ]

    def for_machines(self, exit_code: int = 0) -> CommandResult:
        """Return what a command with this result hands to a machine."""
        return CommandResult(self.to_dict(), self.all_findings, exit_code)

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
        """Return the sentences, what to do next and the first rows of every table, for a notebook."""
        said = [*self.sentences, *self.next_steps]
        lines = "".join(f"<li>{escape(sentence(each))}</li>" for each in said)
        parts = [f"<ul>{lines}</ul>"]
        for name, table in self.tables.items():
            rows = f", the first {SHOWN} of {len(table)} rows" if len(table) > SHOWN else ""
            parts.append(f"<p><b>{escape(name)}</b>{rows}</p>")
            parts.append(
                table.head(SHOWN).to_html(index=False, border=0, float_format="{:.4g}".format)
            )
        return "".join(parts)


def rows_of(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table as plain values for JSON; a value that is not finite is None."""
    rows: list[dict[str, Any]] = json.loads(table.to_json(orient="records", double_precision=15))
    return rows


def ends(estimate: float, low: float, high: float) -> dict[str, float]:
    """Return an estimate and its interval by name."""
    return {"estimate": float(estimate), "low": float(low), "high": float(high)}
