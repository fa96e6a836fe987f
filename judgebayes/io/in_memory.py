"""Tables in memory, in place of a file."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from judgebayes.errors import JudgeBayesError


@dataclass(frozen=True)
class InMemory:
    """A table in memory, with a name for messages (as a path has one)."""

    table: pd.DataFrame = field(repr=False)
    name: str

    def __str__(self) -> str:
        """Return the name."""
        return self.name


def file_or_table(given: Any, name: str) -> Path | InMemory:
    """Return a path as a `Path`, and a table as a pandas table in an `InMemory`.

    Parameters
    ----------
    given
        A path; or a table of pandas, polars, PyArrow or any library with the Arrow interface, with a row
        per vote, item or label. A named index becomes a column. A Series contains labels; its index
        contains the items.
    name
        The name of the table in messages.

    Raises
    ------
    JudgeBayesError
        If it is neither a path nor a table.
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
            f"The {name} are of type {type(given).__name__}; pass a path, or a table of "
            "pandas, polars or PyArrow."
        )
    if any(title is not None for title in given.index.names):
        given = given.reset_index()
    numbered = given.set_axis(np.arange(1, len(given) + 1), axis=0)
    return InMemory(numbered.set_axis([str(title) for title in given.columns], axis=1), name)
