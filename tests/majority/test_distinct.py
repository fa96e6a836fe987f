"""The different rows of a table, against NumPy's own, on any whole numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from judgebayes.majority.counts import distinct_rows

LARGE = 2**62
SHAPES = array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=6)
LONG = arrays(np.int64, (30, 2), elements=st.integers(-2, 2))
"""More rows than there can be different ones."""
TABLES = arrays(np.int64, SHAPES, elements=st.integers(-3, 3) | st.sampled_from([-LARGE, LARGE]))


@given(TABLES.filter(lambda table: table.shape[1] > 0) | LONG)
def test_the_rows_are_those_of_numpy(table: np.ndarray) -> None:
    expected = np.unique(table, axis=0, return_index=True, return_inverse=True)
    for own, other in zip(distinct_rows(table), expected, strict=True):
        np.testing.assert_array_equal(own, other.reshape(own.shape))


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
def test_small_types_do_not_overflow(dtype: type) -> None:
    ends = np.iinfo(dtype)
    table = np.array([[ends.max, ends.min], [ends.min, ends.max], [ends.max, ends.min]], dtype)
    different, first, which = distinct_rows(table)
    assert different.tolist() == [[ends.min, ends.max], [ends.max, ends.min]]
    assert (first.tolist(), which.tolist()) == ([1, 0], [1, 0, 1])
