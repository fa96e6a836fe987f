"""The different rows of a table of whole numbers."""

import numpy as np
import pandas as pd
from jaxtyping import Int


def distinct_rows(
    rows: Int[np.ndarray, "row column"],
) -> tuple[Int[np.ndarray, "different column"], Int[np.ndarray, " different"], np.ndarray]:
    """Return the different rows in ascending order, the first place of each, and which each row is.

    The result is that of `numpy.unique` with `axis=0`, which sorts rows as texts of bytes: that takes
    most of the time of a fit to 500,000 items.
    """
    frame = pd.DataFrame(rows)
    which = frame.groupby(list(frame.columns), sort=True).ngroup().to_numpy()
    first = np.unique(which, return_index=True)[1]
    return rows[first], first, which
