"""Tables that a caller holds, in the place of a file."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from judgebayes.errors import JudgeBayesError

__all__ = ["InMemory", "file_or_table"]


@dataclass(frozen=True)
class InMemory:
    """A table of a caller's, with what a path tells: a name for messages."""

    table: pd.DataFrame = field(repr=False)
    name: str

    def __str__(self) -> str:
        """Return the name."""
        return self.name


def file_or_table(given: Any, name: str) -> Path | InMemory:
    """Return the path, or the table as one of pandas.

    Parameters
    ----------
    given
        A path; a table of pandas, or any with the Arrow interface (polars, PyArrow): a row per vote,
        item or label. An index that has a name is a column too. A Series holds the labels of the items
        in its index.
    name
        What messages call the table.

    Raises
    ------
    JudgeBayesError
        If it is none of these.
    """
    if isinstance(given, InMemory | Path):
        return given
    if isinstance(given, str):
        return Path(given)
    if isinstance(given, pd.Series):
        given = given.rename_axis(given.index.name or "item").rename(given.name or "label")
        given = given.reset_index()
    elif hasattr(given, "__arrow_c_stream__") and not isinstance(given, pd.DataFrame):
        import pyarrow as pa

        given = pa.table(given).to_pandas()
    if not isinstance(given, pd.DataFrame):
        raise JudgeBayesError(
            f"The {name} are given as {type(given).__name__}; right would be a path, or a table of "
            "pandas, polars or PyArrow."
        )
    if any(title is not None for title in given.index.names):
        given = given.reset_index()
    numbered = given.set_axis(np.arange(1, len(given) + 1), axis=0)
    return InMemory(numbered.set_axis([str(title) for title in given.columns], axis=1), name)
