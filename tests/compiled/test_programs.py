"""How many programs are compiled."""

from collections.abc import Callable, Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from panels import judged

from judgebayes import DRPS, Beta, Calibrated, Davidson, DawidSkene, OneCoin, Stacking, priors
from judgebayes.evaluate.engine import _keys
from judgebayes.evaluate.splits import random_splits
from judgebayes.evaluate.sweeps import evaluate_splits
from judgebayes.inference.fit import Method
from judgebayes.measures.scores import absolute_loss, accuracy, bayes_action, ece
from judgebayes.votes import Votes

COMPILED = "/jax/core/compile/backend_compile_duration"


class Compilations:
    """The number of programs compiled since the last call."""

    def __init__(self) -> None:
        self.number = 0

    def seen(self, event: str, _: float, **_more: object) -> None:
        self.number += event == COMPILED

    def during(self, run: Callable[[], object]) -> int:
        before = self.number
        jax.block_until_ready(run())
        return self.number - before


@pytest.fixture
def compilations() -> Iterator[Compilations]:
    events = Compilations()
    jax.monitoring.register_event_duration_secs_listener(events.seen)
    yield events
    jax.monitoring.unregister_event_duration_listener(events.seen)


def davidson(alpha: float, noise: float) -> Method:
    return Davidson(DRPS(starts=1), alpha=alpha, label_noise=noise)


def one_coin(alpha: float, noise: float) -> Method:
    return Calibrated(
        OneCoin(priors.OneCoin((alpha, 1.0)), label_noise=noise),
        Beta(label_noise=noise),
        cross_fit=2,
    )


def dawid_skene(alpha: float, noise: float) -> Method:
    del alpha
    return DawidSkene(label_noise=noise)


def stacking(alpha: float, noise: float) -> Method:
    return Stacking(prior=priors.Stacking(kappa=alpha), label_noise=noise)


METHODS = (davidson, one_coin, dawid_skene, stacking)
methods = pytest.mark.parametrize("make", METHODS)


def panel(items: int, seed: int) -> tuple[Votes, np.ndarray]:
    return judged(np.array([0.9, 0.75, 0.6]), items, samples=2, missing=0.1, seed=seed)


def test_compilations_are_counted(compilations: Compilations) -> None:
    assert compilations.during(lambda: jax.jit(lambda x: x + 1)(jnp.ones(3))) > 0


def test_small_functions_are_one_program_outside_compiled_code(
    compilations: Compilations,
) -> None:
    rng = np.random.default_rng(0)
    log_probs = np.log(rng.dirichlet(np.ones(3), 53))
    labels, loss = rng.integers(0, 3, 53), absolute_loss(3)
    votes, _ = panel(53, 3)
    some = np.arange(7)
    assert compilations.during(lambda: bayes_action(log_probs, loss)) == 1
    assert compilations.during(lambda: accuracy(labels, labels)) == 1
    assert compilations.during(lambda: ece(log_probs, labels)) == 1
    assert compilations.during(votes.counts) == 1
    assert compilations.during(lambda: votes.take(some)) == 1


@methods
def test_a_sweep_compiles_once_for_all_splits_tables_values_and_numbers_of_votes(
    make: Callable[[float, float], Method], compilations: Compilations
) -> None:
    tables = {items: panel(items, items) for items in (47, 48)}
    first = tables[48][0].first(1)
    _keys.cache_clear()  # or seeds used in other tests need no new program, but the last one does

    def run(items: int, seed: int, alpha: float, noise: float, n: int = 2) -> object:
        votes, labels = tables[items]
        splits = random_splits(items, splits=3, calibration=30, seed=seed)
        votes = votes if n == 2 else first
        return evaluate_splits(
            make(alpha, noise), votes, labels, splits, fit_on="calibration", seed=seed
        )

    run(48, 0, 1.0, 0.0)
    assert compilations.during(partial(run, 48, 0, 1.0, 0.0)) == 0  # the same again
    assert compilations.during(partial(run, 48, 1, 2.0, 0.05)) == 0  # other splits and values
    assert compilations.during(partial(run, 48, 1, 2.0, 0.05, n=1)) == 0
    assert (
        compilations.during(partial(run, 47, 2, 1.0, 0.0)) == 0
    )  # another table, same padded size


@methods
def test_a_fit_compiles_once_for_all_values_seeds_and_hyperparameters(
    make: Callable[[float, float], Method], compilations: Compilations
) -> None:
    tables = [panel(40, seed) for seed in range(3)]

    def run(seed: int, alpha: float, noise: float) -> object:
        votes, labels = tables[seed]
        return make(alpha, noise).fit(votes, labels, key=jax.random.key(seed))

    run(0, 1.0, 0.0)
    assert compilations.during(partial(run, 0, 1.0, 0.0)) == 0
    assert compilations.during(partial(run, 1, 1.0, 0.0)) == 0
    assert compilations.during(partial(run, 2, 1.7, 0.05)) == 0
