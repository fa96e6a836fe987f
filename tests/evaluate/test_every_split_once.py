"""A sweep returns every split once, in order, whatever the batches."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from judgebayes import NUTS, BaseRate, MajorityVote, OneCoin
from judgebayes.compiled.float64 import in_float64
from judgebayes.evaluate import engine
from judgebayes.evaluate.engine import Cell, Engine, call_of
from judgebayes.evaluate.splits import Splits
from judgebayes.evaluate.sweeps import evaluate_splits
from judgebayes.votes import Votes

SIZES = (40, 60_000, 100_000, 300_000)
"""Numbers of items: on the larger ones, only some splits of a batch are fitted together."""
N_SPLITS = st.integers(1, 30)
BATCH_SIZE = st.none() | st.integers(1, 14)
FOUND = (100_000, 10, 3)
"""Ten splits on 100,000 items in batches of three had twelve results."""


class Coins:
    """A method that is not JAX code."""

    def fit(self, votes: Votes, labels: object, *, weight: object = None, key: object = None):  # noqa: ARG002
        return lambda some: np.full((some.n_items, 2), np.log(0.5))


@cache
def panel(n_items: int) -> tuple[Votes, np.ndarray]:
    numbers = np.arange(n_items)
    index = jnp.asarray(numbers % 2, jnp.int8)[:, None, None]
    return Votes(index, None, None, None, 2), numbers % 2


def splits_of(n_splits: int, n_items: int) -> Splits:
    """Small splits, each with items of its own number."""
    first = np.arange(n_splits)[:, None]
    return Splits(first + np.arange(2), n_items - 1 - first - np.arange(2))


@contextmanager
def batches_of(size: int | None) -> Iterator[None]:
    """Give batches a size; None leaves it to the memory."""
    with pytest.MonkeyPatch.context() as patch:
        if size is not None:
            patch.setattr(engine, "splits_in_memory", lambda *_: size)
        yield


def check(method: object, n_items: int, n_splits: int, batch_size: int | None) -> None:
    splits = splits_of(n_splits, n_items)
    with batches_of(batch_size):
        result = evaluate_splits(method, *panel(n_items), splits, fit_on="calibration")
    assert len(result.status) == n_splits
    np.testing.assert_array_equal(np.asarray(result.items)[:, :2], splits.evaluation)


@given(st.sampled_from(SIZES[:3]), N_SPLITS, BATCH_SIZE)
@example(*FOUND)
@settings(max_examples=8, deadline=None)
def test_a_sweep_by_a_loop(n_items: int, n_splits: int, batch_size: int | None) -> None:
    check(Coins(), n_items, n_splits, batch_size)


@pytest.mark.parametrize("method", [MajorityVote(), BaseRate()])
def test_a_compiled_sweep(method: object) -> None:
    check(method, *FOUND)


@given(
    st.sampled_from(SIZES),
    N_SPLITS,
    BATCH_SIZE,
    st.sampled_from([OneCoin(), OneCoin(NUTS()), BaseRate()]),
    st.sampled_from(["calibration", "all"]),
)
@example(*FOUND, BaseRate(), "all")
@settings(max_examples=100, deadline=None)
@in_float64
def test_the_batches_of_any_method(
    n_items: int, n_splits: int, batch_size: int | None, method: object, fit_on: str
) -> None:
    splits = splits_of(n_splits, n_items)
    ((_, items, padded),) = Engine([Cell(*panel(n_items), splits)])._groups
    with batches_of(batch_size):
        size, shape = call_of(method, items, padded, fit_on, None)
    assert 0 < shape.splits <= size
    assert size < n_splits + shape.splits  # only the last splits that run together are repeated
