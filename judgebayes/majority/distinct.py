"""The different rows of a table of whole numbers."""

import math

import numpy as np
from jaxtyping import Int


def distinct_rows(
    rows: Int[np.ndarray, "row column"],
) -> tuple[Int[np.ndarray, "different column"], Int[np.ndarray, " different"], np.ndarray]:
    """Return the different rows in ascending order, the first place of each, and which each row is.

    The result is that of `numpy.unique` with `axis=0`. That sorts rows as texts of bytes, which takes
    most of the time of a fit to 500,000 items; here, a row of small whole numbers is one number.
    """
    if rows.size and np.issubdtype(rows.dtype, np.integer):
        low = [int(column.min()) for column in rows.T]
        sizes = [int(column.max()) - a + 1 for column, a in zip(rows.T, low, strict=True)]
        if math.prod(sizes) < 2**62:
            number = np.zeros(len(rows), np.int64)
            for column, size, least in zip(rows.T, sizes, low, strict=True):
                number = number * size + (column.astype(np.int64) - least)
            if math.prod(sizes) <= len(rows):
                first, which = _by_table(number, math.prod(sizes))
            else:
                _, first, which = np.unique(number, return_index=True, return_inverse=True)
            return rows[first], first, which.ravel()
    different, first, which = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return different, first, which.ravel()


def _by_table(
    number: Int[np.ndarray, " row"], most: int
) -> tuple[Int[np.ndarray, " different"], Int[np.ndarray, " row"]]:
    """Return the first place of each number below `most` that occurs, and which one each is."""
    place = np.full(most, -1)
    place[number[::-1]] = np.arange(len(number))[::-1]  # of repeated places, the last one stays
    occurs = place >= 0
    return place[occurs], (occurs.cumsum() - 1)[number]
