"""The parts of the benchmarks: timed programs give the same answers as those compared with them."""

import gc
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from judgebayes.evaluate.splits import Splits
from judgebayes.experiments.speed import item_response, measure, nuts, p1_sweep
from judgebayes.experiments.speed.dawid_skene import numpy_em
from judgebayes.experiments.speed.growth import slope
from judgebayes.experiments.speed.measure import Row, Side, markdown, peak, race
from judgebayes.experiments.speed.panels import dense_panel
from judgebayes.models import irt
from judgebayes.votes import Votes


@pytest.fixture(autouse=True)
def _earlier_tests_not_collected() -> Iterator[None]:
    """Keep the collector off what earlier tests left: a full collection of a worker takes 2 s."""
    gc.freeze()
    yield
    gc.unfreeze()


def test_sides_run_in_turns_and_shares_scale_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "TURN", 0.0)
    turns = []
    sides = [Side(lambda: turns.append("a") or 1), Side(lambda: turns.append("b") or 2, 0.5)]
    race(sides, 2)
    assert turns == ["a", "b"] * 3
    assert [s.answer for s in sides] == [1, 2]
    assert [len(s.seconds) for s in sides] == [2, 2]
    sides[0].seconds, sides[1].seconds = [1.0, 1.0, 1.0], [2.0, 3.0, 7.0]
    table = markdown([Row("work", "peer", *sides, 2.0, "equal")])
    assert "| work | peer (sample) |" in table
    assert "| 3 (2 to 7) | 2 |" in table


def test_a_turn_is_filled_with_calls_and_their_mean_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "TURN", 0.05)
    calls = []
    short, long = Side(lambda: calls.append(time.sleep(0.01))), Side(lambda: time.sleep(0.1))
    race([short, long], 1)
    assert 2 <= len(calls) - 1 <= 5
    assert 0.01 <= short.seconds[0] < 0.05
    assert long.seconds[0] >= 0.1


@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="needs Linux's memory statistics"
)
def test_memory_that_was_freed_before_is_counted_when_it_is_taken_again() -> None:
    pieces = [np.ones(8000) for _ in range(1000)]
    above = np.ones(8000)  # the allocator does not return freed memory below memory in use
    del pieces
    with peak() as usage:
        pieces = [np.ones(8000) for _ in range(1000)]
    assert len(above) == len(pieces[0])
    assert usage.megabytes == pytest.approx(64_000_000 / 2**20, rel=0.2)


def test_the_slope_is_the_power_of_the_size() -> None:
    sizes = [10, 20, 40]
    assert slope(sizes, [3 * n**1.5 for n in sizes]) == pytest.approx(1.5)


def test_the_numpy_peer_recovers_the_labels() -> None:
    votes, labels = dense_panel(400, 20, seed=2)
    responsibilities = numpy_em(votes, 1e-9)
    assert ((responsibilities[:, 1] > 0.5) == labels).mean() > 0.95


def test_scipys_loop_ends_at_our_objective(votes: Votes, labels: np.ndarray) -> None:
    labelled = np.flatnonzero(labels >= 0)
    work = p1_sweep.Work(votes, labels, Splits(labelled[None, :40], labelled[None, 40:]))
    ours = p1_sweep.our_minimum(work, 0)
    part, truth = p1_sweep.calibration_part(work, 0)
    evidence = p1_sweep.features_of(part)
    for analytic in (True, False):
        assert ours == pytest.approx(p1_sweep.by_scipy(evidence, truth, analytic), abs=1e-6)


def test_the_2pl_data_are_the_models_and_recovery_grants_shift_and_stretch() -> None:
    truth, right = item_response.simulated(2000, 30, seed=3)
    chance = 1 / (1 + np.exp(-np.asarray(irt.link(truth))))
    assert np.abs(right - chance).mean() == pytest.approx(
        (2 * chance * (1 - chance)).mean(), abs=0.01
    )
    ability, difficulty, slope = (np.asarray(x) for x in truth)
    shifted = item_response.in_arrays(3 * ability + 1, 3 * difficulty + 1, slope)
    assert (
        item_response.recovery(shifted, truth) == "ability 1.000, 0.000 and difficulty 1.000, 0.000"
    )


@pytest.mark.slow
def test_numpyros_example_samples_our_posterior(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("funsor")
    monkeypatch.setattr(nuts, "WARMUP", 300)
    votes, _ = dense_panel(150, nuts.JUDGES, missing=0.0)
    peer, mine = (
        nuts.summary(sampler(votes, 300)(0))
        for sampler in (partial(nuts.example, "vectorized"), nuts.ours)
    )
    error = np.hypot(peer["mcse_mean"], mine["mcse_mean"])
    assert (np.abs(peer["mean"] - mine["mean"]) / error).max() < 5
