"""The longest text of a table that has been read."""

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype, is_object_dtype, is_string_dtype

from judgebayes.errors import JudgeBayesError
from judgebayes.io.lengths import MAX_TEXT

__all__ = ["check_cells"]


def check_cells(table: pd.DataFrame, what: str) -> None:
    """Refuse a table with a text that is too long.

    Raises
    ------
    JudgeBayesError
        If a text is longer than `MAX_TEXT`.
    """
    for place, name in enumerate(table.columns):
        column = table.iloc[:, place]
        if is_numeric_dtype(column.dtype):
            continue
        if is_object_dtype(column.dtype):
            lengths = np.array([len(cell) if isinstance(cell, str) else 0 for cell in column])
        elif is_string_dtype(column.dtype):
            lengths = column.str.len().to_numpy(float, na_value=0)
        else:
            continue
        if lengths.max(initial=0) > MAX_TEXT:
            row = int(np.argmax(lengths))
            raise JudgeBayesError(
                f"Row {table.index[row]} of column {str(name)[:100]!r} of {what} has a text of "
                f"{int(lengths[row]):,} characters: a cell may have at most {MAX_TEXT:,}."
            )
