"""Splits that are fitted one by one: the same answers, and one program with the fit to all labels."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from judgebayes import Pool, Stacking
from judgebayes.compiled.float64 import in_float64
from judgebayes.evaluate import one_split
from judgebayes.evaluate.splits import random_splits
from judgebayes.evaluate.sweeps import evaluate_splits
from judgebayes.inference.fit import Method
from judgebayes.votes import Votes

METHODS = [Stacking(symmetric=False), Pool(symmetric=False)]


def panel() -> tuple[Votes, np.ndarray]:
    """Return 50 items, five judges, votes missing here and there, and labels of 40 items."""
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 2, 50)
    index = np.where(
        rng.random((50, 5)) < np.linspace(0.5, 0.9, 5), truth[:, None], 1 - truth[:, None]
    )
    index[rng.random((50, 5)) < 0.2] = -1
    labels = np.where(np.arange(50) < 40, truth, -1)
    return Votes(jnp.asarray(index[:, :, None], jnp.int8), None, None, None, 2), labels


@pytest.mark.parametrize("method", METHODS, ids=["stacking", "pool"])
def test_answers_are_those_of_the_vectorised_sweep(
    method: Method, monkeypatch: pytest.MonkeyPatch
) -> None:
    votes, labels = panel()
    splits = random_splits(50, splits=4, calibration=0.7, among=np.arange(40), seed=1)
    sweeps = []
    for least in (np.inf, 0.0):
        monkeypatch.setattr(one_split, "LONG_FIT", least)
        sweeps.append(evaluate_splits(method, votes, labels, splits, fit_on="calibration"))
    usual, each = sweeps
    np.testing.assert_array_equal(each.items, usual.items)
    np.testing.assert_array_equal(each.labels, usual.labels)
    np.testing.assert_array_equal(each.decisions, usual.decisions)
    np.testing.assert_array_equal(each.status, usual.status)
    np.testing.assert_allclose(each.log_probs, usual.log_probs, atol=1e-6)


@in_float64
def test_splits_and_the_fit_to_all_are_one_program(monkeypatch: pytest.MonkeyPatch) -> None:
    votes, labels = panel()
    monkeypatch.setattr(one_split, "LONG_FIT", 0.0)
    shapes = []

    fit = one_split._fit

    def seen(*args: object) -> object:
        shapes.append([np.shape(x) for x in jax.tree.leaves(args)])
        return fit(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(one_split, "_fit", seen)
    splits = random_splits(50, splits=3, calibration=0.8, among=np.arange(40), seed=1)
    evaluate_splits(METHODS[0], votes, labels, splits, fit_on="calibration")
    labelled = np.flatnonzero(labels >= 0)
    some, key = votes.take(labelled), jax.random.key(0)
    fitted = one_split.fit_one(METHODS[0], some, labels[labelled], key)
    assert len(shapes) == 4
    assert all(each == shapes[0] for each in shapes)
    direct = METHODS[0].fit(some, labels[labelled], key=key)
    np.testing.assert_allclose(fitted(votes), direct(votes), atol=1e-9)
