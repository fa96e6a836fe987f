"""A user's files of votes and labels, and what is known of them before they are read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pandas as pd

from judgebayes.votes.classes import Classes, canonical, mapped
from judgebayes.workflow.options import ReadRequest

if TYPE_CHECKING:
    from judgebayes.workflow.binning import Bins


@dataclass(frozen=True)
class Earlier:
    """What is known of a file of votes before it is read, from an earlier one or from a command."""

    columns: Mapping[str, str] = field(default_factory=dict)
    """Columns of the earlier file by role, used if this file has them and none is named."""
    ignored: tuple[str, ...] = ()
    """Columns that are not judges, if the file has them."""
    bins: "Bins | None" = None
    """The cut points that the earlier file was read with."""
    classes: Classes | None = None
    """The classes of the earlier file."""


JUDGE, VOTE = "column of the judge", "vote of the judge"
"""The columns of a table that has had a column of votes per judge."""
UNSEEN = Earlier()
"""Nothing is known of a file before it is read."""


@dataclass(frozen=True)
class Labels:
    """A table with labels, and its item and label columns."""

    table: pd.DataFrame
    item: str
    label: str
    annotator: str | None = None
    """The column of the annotator, if labels are merged and there is one."""

    @property
    def items(self) -> pd.Series:
        """The item of each row with a label."""
        return self.table.loc[mapped(self.table[self.label], canonical).notna(), self.item]


@dataclass(frozen=True)
class Opened:
    """A file of votes with the roles of its columns, before encoding."""

    request: ReadRequest
    """How the files are read; its votes are a path or a table in memory."""
    table: pd.DataFrame
    """A row per vote; that of a wide file has the columns `JUDGE` and `VOTE`."""
    columns: dict[str, str | None]
    """The column of each role in the file."""
    labels: Labels | None
    notes: tuple[str, ...] = ()
    """What was left out of the files or read as something else, in sentences."""
    rows: pd.DataFrame | None = None
    """The rows of a wide file, with all its columns."""
    bins: "Bins | None" = None
    """The cut points that made classes of scores."""
    classes: tuple[str, ...] | None = None
    """The classes from lowest to highest, if the source names them."""
    how: Mapping[str, Any] = field(default_factory=dict)
    """The keys of a study file that reads the same."""

    @property
    def items(self) -> pd.Series:
        """The item of each row of the votes."""
        return self.table[str(self.columns["item"])]

    @property
    def judge(self) -> str | None:
        """The column of the judge in the table; None if all votes are of one."""
        return JUDGE if self.request.wide else self.columns["judge"]

    @property
    def votes(self) -> pd.Series:
        """The vote of each row."""
        return self.table[VOTE if self.request.wide else str(self.columns["vote"])]

    @property
    def label(self) -> str | None:
        """The column of the labels, in either file."""
        return None if self.labels is None else self.labels.label

    @property
    def tables(self) -> list[tuple[pd.DataFrame, str]]:
        """The table of the votes and, if there are labels, their table, each with its item column."""
        rows = self.table if self.rows is None else self.rows
        tables = [(rows, str(self.columns["item"]))]
        if self.labels is not None:
            tables.append((self.labels.table, self.labels.item))
        return tables
