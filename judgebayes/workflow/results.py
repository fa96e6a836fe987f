"""What all results of the workflow have in common: sentences, tables, and two ways to show them."""

import json
from abc import ABC, abstractmethod
from html import escape
from typing import Any, ClassVar

import pandas as pd

from judgebayes.sentence import sentence

__all__ = ["Result"]

SHOWN = 10
"""Rows of each table that a notebook shows."""


class Result(ABC):
    """A frozen result: sentences that say what was found, and tables with the numbers."""

    schema: ClassVar[str]
    """The name and version of what `to_dict` returns: `judgebayes.calibration/1`."""

    @property
    @abstractmethod
    def sentences(self) -> list[str]:
        """What was read, done and found."""

    @property
    @abstractmethod
    def tables(self) -> dict[str, pd.DataFrame]:
        """The numbers, by name, the most important table first."""

    def to_dict(self) -> dict[str, Any]:
        """Return sentences and tables (a list of rows each) as plain values, which JSON can hold."""
        return {
            "schema": self.schema,
            "sentences": [sentence(each) for each in self.sentences],
            "tables": {
                name: json.loads(table.to_json(orient="records", double_precision=15))
                for name, table in self.tables.items()
            },
        }

    def __str__(self) -> str:
        """Return the sentences, a line each."""
        return "\n".join(sentence(each) for each in self.sentences)

    def _repr_html_(self) -> str:
        """Return the sentences and the first rows of every table, for a notebook."""
        lines = "".join(f"<li>{escape(sentence(each))}</li>" for each in self.sentences)
        parts = [f"<ul>{lines}</ul>"]
        for name, table in self.tables.items():
            rows = f", the first {SHOWN} of {len(table)} rows" if len(table) > SHOWN else ""
            parts.append(f"<p><b>{escape(name)}</b>{rows}</p>")
            parts.append(
                table.head(SHOWN).to_html(index=False, border=0, float_format="{:.4g}".format)
            )
        return "".join(parts)
