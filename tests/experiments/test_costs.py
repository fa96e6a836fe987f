"""Costs of experiments, written and read again, and the time that a run still needs."""

from pathlib import Path

import planted
import pytest

from judgebayes.experiments import costs
from judgebayes.experiments.core import experiments
from judgebayes.experiments.costs import TimeLeft, expected_seconds, known_costs, write_costs
from judgebayes.experiments.runner import Cost
from judgebayes.experiments.sharding import divided


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "costs.csv"
    monkeypatch.setattr(costs, "COSTS", path)
    by_seconds = dict(zip(planted.ALL, (60.0, 120.0, 600.0), strict=True))
    write_costs(path, {e: Cost(s, 2 * 10**9, 7) for e, s in by_seconds.items()}, twins=False)
    return path


def test_the_guide_states_the_time_of_a_whole_run() -> None:
    hours = sum(cost.seconds for cost in known_costs(twins=False).values()) / 3600
    guide = Path(__file__).parents[2] / "docs" / "guides" / "reproducing.md"
    assert f"about {hours:.0f} hours" in guide.read_text(encoding="utf-8")


def test_the_time_left_is_the_measured_one_at_the_speed_of_this_run(measured: Path) -> None:
    one, two, three = planted.ALL
    left = TimeLeft(planted.ALL, twins=False)
    assert left.text() == ""
    left.took(one, 30)  # twice as fast as measured
    assert left.text() == "about 6 min left"
    left.skip(three)
    assert left.text() == "about 1 min left"
    left.took(two, 240)
    assert left.text() == "about 1 s left"


@pytest.mark.parametrize("of", [1, 3, 200])
def test_shards_take_about_the_same_time(of: int) -> None:
    chosen = [*experiments()]
    seconds = expected_seconds(chosen, twins=False)
    parts = divided(chosen, of, twins=False)
    assert set(parts) == set(chosen)
    loads = [sum(seconds[e] for e in chosen if parts[e].number == n + 1) for n in range(of)]
    assert max(loads) <= max(1.01 * sum(loads) / of, *seconds.values())


def test_every_experiment_has_a_measured_cost() -> None:
    names = {f"{e.paper}/{e.name}" for e in experiments()}
    assert set(known_costs(twins=False)) == names
    assert set(known_costs(twins=True)) == {f"{e.paper}/{e.name}" for e in experiments() if e.twins}
