"""The engine of the coverage checks: right intervals pass, and wrong ones are detected."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import judgebayes.experiments.coverage
from judgebayes.experiments.coverage import maps
from judgebayes.experiments.coverage.engine import Trials, assess, at_levels, holm, trials
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


def test_holm_is_the_step_down_of_bonferroni() -> None:
    p = np.random.default_rng(4).random(9) ** 3
    naive, largest = np.zeros(9), 0.0
    for step, place in enumerate(np.argsort(p)):
        largest = max(largest, min(1.0, p[place] * (9 - step)))
        naive[place] = largest
    np.testing.assert_allclose(holm(p), naive)
    np.testing.assert_allclose(holm(np.array([0.01, 0.04, 0.03])), [0.03, 0.06, 0.06])


def test_the_readme_names_every_family() -> None:
    page = (RESULTS / "README.md").read_text()
    assert all(f"`{name}`" in page for name in SUBJECTS)


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
