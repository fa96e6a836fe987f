"""A user's files of votes and labels: how to read them, and what is in them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from judgebayes.io.in_memory import InMemory
from judgebayes.io.options import split_names
from judgebayes.workflow.annotators import Doubt
from judgebayes.workflow.binning import Bins
from judgebayes.workflow.options import Annotators, Columns, ReadingOptions


@dataclass(frozen=True)
class Source:
    """A file or table of votes, and how to read it."""

    path: Path | InMemory
    columns: Columns = field(default_factory=Columns)
    reading: ReadingOptions = field(default_factory=ReadingOptions)
    earlier: Mapping[str, str] = field(default_factory=dict)
    """Columns of an earlier file by role, used if this file has them and none is named."""
    ignored: tuple[str, ...] = ()
    """Columns that are not judges, if the file has them."""
    annotators: Annotators = field(default_factory=Annotators)
    bins: Bins | None = None
    """The cut points that an earlier file was read with."""

    @property
    def left_out(self) -> tuple[str, ...]:
        """The columns that the user leaves out (`--ignore`)."""
        return tuple(split_names(self.reading.ignore)) if self.reading.ignore else ()


@dataclass(frozen=True)
class Labels:
    """A table with labels, and its item and label columns."""

    table: pd.DataFrame
    item: str
    label: str
    annotator: str | None = None
    """The column of the annotator, if labels are merged and there is one."""


@dataclass(frozen=True)
class Opened:
    """A file of votes with the roles of its columns, before encoding."""

    source: Source
    table: pd.DataFrame
    columns: dict[str, str | None]
    labels: Labels | None
    notes: tuple[str, ...] = ()
    """What was left out of the files or read as something else, in sentences."""
    judges: tuple[str, ...] = ()
    """The columns of judges, of a wide table."""
    bins: Bins | None = None
    """The cut points that made classes of scores."""
    classes: tuple[str, ...] | None = None
    """The classes from lowest to highest, if the source names them."""
    doubt: Doubt | None = None
    """How probable the classes of labelled items are, if the labels may be wrong."""

    @property
    def label(self) -> str | None:
        """The column of the labels, in either file."""
        return None if self.labels is None else self.labels.label

    @property
    def tables(self) -> list[tuple[pd.DataFrame, str]]:
        """The table of the votes and, if there are labels, their table, each with its item column."""
        tables = [(self.table, str(self.columns["item"]))]
        if self.labels is not None:
            tables.append((self.labels.table, self.labels.item))
        return tables
