"""Cells in plain form, and columns of numbers or of text."""

import pandas as pd

from judgebayes.io.cells import plain_column
from judgebayes.votes.classes import mapped, written


def test_equal_cells_of_other_types_are_other_cells() -> None:
    column = pd.Series([True, 1, 1.0, "1", None, [1]], dtype=object)
    assert mapped(column, written).tolist() == ["True", "1", "1", "1", None, "[1]"]


def test_a_column_is_of_numbers_or_of_text() -> None:
    def plain(*cells: object) -> pd.Series:
        return plain_column(pd.Series(cells, dtype=object))

    assert plain("c", 1.0, None).tolist() == ["c", "1", None]
    assert plain(1, None, 0.5).fillna(-1).tolist() == [1.0, -1.0, 0.5]
    assert plain(2**70, 1).tolist() == [float(2**70), 1.0]
    assert plain(1, 2).dtype == "int64"
