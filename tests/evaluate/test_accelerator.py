"""The programs of an accelerator, run on a CPU: the same answers as those of a CPU."""

from collections.abc import Iterator
from contextlib import contextmanager

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from judgebayes import DRPS, Davidson
from judgebayes.compiled import backend
from judgebayes.compiled.float64 import in_float64
from judgebayes.evaluate.engine import Cell, Engine, call_of
from judgebayes.evaluate.splits import random_splits
from judgebayes.evaluate.sweeps import sweep
from judgebayes.inference.optimise import differentiated, minimise_each
from judgebayes.votes import Votes


@contextmanager
def accelerator() -> Iterator[None]:
    """Compile the programs of an accelerator."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backend, "ACCELERATOR", True)
        jax.clear_caches()
        yield
    jax.clear_caches()


@in_float64
def test_starts_side_by_side_reach_the_same_minima() -> None:
    def rosenbrock(x: jax.Array) -> jax.Array:
        return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2

    starts = jnp.asarray([[-1.2, 1.0], [2.0, 2.0], [0.0, 0.0]])
    box = jnp.asarray([-3.0, -3.0]), jnp.asarray([0.9, 3.0])
    usual = minimise_each(differentiated(rosenbrock), starts, *box)
    with accelerator():
        own = minimise_each(differentiated(rosenbrock), starts, *box)
    np.testing.assert_allclose(own.x, usual.x, atol=1e-9)
    np.testing.assert_array_equal(own.steps, usual.steps)
    np.testing.assert_array_equal(own.status, usual.status)


def test_draws_of_one_data_set_are_made_on_the_cpu() -> None:
    def device() -> object:
        return jax.config.jax_default_device  # type: ignore[attr-defined]

    assert backend.on_cpu(device)() is None
    with accelerator():
        assert backend.on_cpu(device)() == jax.local_devices(backend="cpu")[0]


def test_a_sweep_has_the_same_answers_and_all_lanes_in_one_call() -> None:
    rng = np.random.default_rng(0)
    cells = {}
    for name in "abc":
        labels = rng.integers(0, 3, 40)
        cast = np.where(rng.random((40, 1, 4)) < 0.7, labels[:, None, None], 1)
        votes = Votes(jnp.asarray(cast, jnp.int8), None, None, None, 3)
        cells[name] = Cell(votes, labels, random_splits(40, splits=5, calibration=20))
    methods = {"davidson": Davidson(DRPS(starts=3))}
    by_name = [{name: cell[i] for name, cell in cells.items()} for i in range(3)]

    def values() -> np.ndarray:
        return sweep(methods, *by_name, fit_on="calibration", metrics=["drps"])["value"].to_numpy()

    usual = values()
    ((places, items, splits),) = Engine([*cells.values()])._groups
    with accelerator():
        np.testing.assert_allclose(values(), usual, atol=1e-8)
        size, shape = call_of(methods["davidson"], items, splits, "calibration", None)
    assert (places, size, shape.cells, shape.splits) == ((0, 1, 2), 5, 3, 5)
