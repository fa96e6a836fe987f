"""The parts of the benchmarks: timed programs give the same answers as those compared with them."""

import gc
from collections.abc import Iterator

import numpy as np
import pytest

from judgebayes.evaluate.splits import Splits
from judgebayes.experiments.speed import measure, p1_sweep
from judgebayes.experiments.speed.measure import Row, Side, markdown, race
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


def test_scipys_loop_ends_at_our_objective(votes: Votes, labels: np.ndarray) -> None:
    labelled = np.flatnonzero(labels >= 0)
    work = p1_sweep.Work(votes, labels, Splits(labelled[None, :40], labelled[None, 40:]))
    ours = p1_sweep.our_minimum(work, 0)
    part, truth = p1_sweep.calibration_part(work, 0)
    evidence = p1_sweep.features_of(part)
    for analytic in (True, False):
        assert ours == pytest.approx(p1_sweep.by_scipy(evidence, truth, analytic), abs=1e-6)
