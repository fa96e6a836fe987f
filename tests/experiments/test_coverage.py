"""The engine of the coverage checks: right intervals pass, and wrong ones are detected."""

import importlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

import judgebayes.experiments.coverage
from judgebayes.experiments.core import Run
from judgebayes.experiments.coverage import maps
from judgebayes.experiments.coverage.engine import (
    LEVELS,
    Setting,
    Trials,
    assess,
    at_levels,
    holm,
    trials,
)
from judgebayes.experiments.coverage.subjects import SUBJECTS
from judgebayes.measures.significance import share_interval

RESULTS = Path(judgebayes.experiments.coverage.__file__).parent
REPLAYS, LABELS = 600, 40


def shares(name: str, squeezed: float) -> Trials:
    """The interval of a share under its prior, narrowed by a factor."""
    rng = np.random.default_rng(3)
    truth = rng.random(REPLAYS)
    hits = rng.binomial(LABELS, truth).astype(float)

    def ends(level: float, count: float) -> tuple[float, float]:
        low, high = share_interval(np.asarray(count), np.asarray(float(LABELS)), level=level)
        middle, half = (low + high) / 2, squeezed * (high - low) / 2
        return float(middle - half), float(middle + half)

    return trials(
        name,
        "simulated",
        [
            (at_levels(lambda level, count=count: ends(level, count)), float(p))
            for count, p in zip(hits, truth, strict=True)
        ],
    )


@pytest.fixture(scope="module")
def assessed() -> pd.DataFrame:
    return assess([shares("honest", 1.0), shares("narrow", 0.75), shares("wide", 1.3)])


def test_an_honest_interval_holds_and_others_are_caught(assessed: pd.DataFrame) -> None:
    verdicts = assessed.groupby("interval")["verdict"].unique()
    assert list(verdicts["honest"]) == ["holds"]
    assert list(verdicts["narrow"]) == ["too narrow"]
    assert list(verdicts["wide"]) == ["too wide"]


def test_misses_below_and_above_are_distinct_and_add_up(assessed: pd.DataFrame) -> None:
    np.testing.assert_allclose(assessed["coverage"] + assessed["below"] + assessed["above"], 1.0)
    one = trials("x", "y", [([(1.0, 2.0)] * 4, 0.0), ([(1.0, 2.0)] * 4, 3.0)] * 3)
    np.testing.assert_allclose(assess([one])[["below", "above"]], 0.5)


def test_a_level_named_wrong_is_too_wide_and_only_there() -> None:
    honest = shares("mislabelled", 1.0)
    low, high = honest.low.copy(), honest.high.copy()
    low[:, 1], high[:, 1] = low[:, 2], high[:, 2]  # 90 % ends printed as 80 %
    table = assess([honest._replace(low=low, high=high)]).set_index("level")
    assert table["verdict"].to_dict() == {
        0.5: "holds",
        0.8: "too wide",
        0.9: "holds",
        0.95: "holds",
    }


def test_what_is_not_printed_is_counted_and_left_out() -> None:
    nothing = (np.nan, np.nan)
    one = trials("x", "y", [([(0.0, 1.0)] * 4, 0.5), ([nothing] * 4, 0.5), ([(0.5, 0.5)] * 4, 0.5)])
    table = assess([one])
    assert (table["replays"] == 2).all()
    assert (table["without"] == 1).all()
    assert (table["coverage"] == 1.0).all()


def test_holm_is_the_step_down_of_bonferroni() -> None:
    p = np.random.default_rng(4).random(9) ** 3
    naive, largest = np.zeros(9), 0.0
    for step, place in enumerate(np.argsort(p)):
        largest = max(largest, min(1.0, p[place] * (9 - step)))
        naive[place] = largest
    np.testing.assert_allclose(holm(p), naive)
    np.testing.assert_allclose(holm(np.array([0.01, 0.04, 0.03])), [0.03, 0.06, 0.06])


def test_the_command_counts_one_family(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JUDGEBAYES_DATA", raising=False)
    app = typer.Typer()
    app.command()(importlib.import_module("judgebayes.experiments.coverage.__main__").check)
    result = CliRunner().invoke(app, ["judges", "--replays", "60", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    table = pd.read_csv(tmp_path / "coverage.csv")
    assert list(dict.fromkeys(table["interval"])) == [
        "judge's accuracy",
        "judge's TPR",
        "judge's TNR",
    ]
    assert list(table["level"]) == [*LEVELS] * 3
    assert (table["verdict"] == "holds").all()
    assert (tmp_path / "coverage.png").stat().st_size > 3000
    assert "| judge's TPR | simulated" in result.output
    wrong = CliRunner().invoke(app, ["judge"])
    assert wrong.exit_code == 2
    assert "There is no 'judge'" in wrong.output


def test_the_readme_names_every_family() -> None:
    page = (RESULTS / "README.md").read_text()
    assert all(f"`{name}`" in page for name in SUBJECTS)


@pytest.mark.slow
@pytest.mark.parametrize("name", SUBJECTS)
def test_every_family_runs_on_simulated_data(name: str) -> None:
    all_trials = list(SUBJECTS[name].trials(Setting(Run(), 6)))
    assert all_trials
    table = assess(all_trials)
    assert table["data"].str.startswith("simulated").all()
    assert (table["coverage"].dropna() <= 1).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", SUBJECTS)
def test_every_family_runs_on_real_data(name: str, data: Path) -> None:
    all_trials = list(SUBJECTS[name].trials(Setting(Run(data), 6)))
    assert all(len(one.truth) == len(one.low) for one in all_trials)


def test_no_interval_of_a_calibrated_probability_is_too_narrow() -> None:
    cells = pd.read_csv(RESULTS / "maps.csv")
    page = (RESULTS / "README.md").read_text()
    assert set(cells["map"]) == set(maps.MAPS)
    again = maps.assess(cells[["method", "map", "classes", "labels", "replays", "inside", "width"]])
    np.testing.assert_array_equal(again["excluded"], cells["excluded"])
    offered = cells[[maps.METHODS[method].offered for method in cells["method"]]]
    assert (offered["replays"] == 500).all()
    assert (offered["high"] >= maps.LEVEL).all()
    # The page names the cells with too wide intervals: both of them, and no other.
    wide = offered[offered["excluded"]]
    assert set(zip(wide["map"], wide["world"], wide["input"], strict=True)) == {
        ("beta", "not sure enough", 0.05)
    }
    sentence = (
        "the beta map whose intervals contain the truth too often: answers that are not sure enough, "
        "at the input 0.05"
    )
    assert sentence in " ".join(page.split())


def test_worlds_of_maps_draw_labels_at_their_own_truth() -> None:
    rng = np.random.default_rng(0)
    log_probs, labels, truth = maps.draw("beta", maps.WORLDS["bent"], 2, 40_000, 1, rng)
    near = np.abs(log_probs[0, :, 1] - np.log(maps.INPUTS[2][1, 1])) < 0.1
    assert labels[0, near].mean() == pytest.approx(truth[0, 1], abs=0.05)
