"""The base class of the workflow's results: sentences, tables, JSON and HTML."""

import json
from abc import ABC, abstractmethod
from html import escape
from typing import Any, ClassVar

import pandas as pd

from judgebayes.sentence import sentence

__all__ = ["Result"]

SHOWN = 10
"""Number of rows of each table in a notebook."""


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

    def to_dict(self) -> dict[str, Any]:
        """Return sentences and tables (a list of rows each) as plain values for JSON."""
        return {
            "schema": self.schema,
            "sentences": [sentence(each) for each in self.sentences],
            "tables": {
                name: json.loads(table.to_json(orient="records", double_precision=15))
                for name, table in self.tables.items()
            },
        }

    def __str__(self) -> str:
        """Return the sentences, one per line."""
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
