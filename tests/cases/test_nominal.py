"""Classes without a known order: ten genres, not a scale."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from runner import CliRunner

from judgebayes.cli import app

GENRES = ["rock", "jazz", "pop", "folk", "blues", "metal", "soul", "funk", "disco", "house"]
FEW = ("--method", "sc")


def run(*args: object) -> Any:
    return CliRunner().invoke(app, [str(a) for a in args])


def result_of(folder: Path, *args: object) -> dict:
    """Calibrate the two files of a folder, and return the results as JSON."""
    path = folder / "result.json"
    files = (folder / "votes.csv", "--labels", folder / "labels.csv")
    done = run("calibrate", *files, "--json", path, "--splits", 5, *args)
    assert done.exit_code == 0, done.output
    return {**json.loads(path.read_text())["result"], "output": done.output}


def write(folder: Path, words: list[str], *, labelled: int = 60, seed: int = 0) -> Path:
    """Write the votes of two judges on 80 items, and the labels of the first ones."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, len(words), 80)
    votes = [
        (f"i{i}", judge, words[y if rng.random() < 0.7 else rng.integers(0, len(words))])
        for judge in ("ann", "ben")
        for i, y in enumerate(truth)
    ]
    pd.DataFrame(votes, columns=["item", "judge", "vote"]).to_csv(folder / "votes.csv", index=False)
    labels = [(f"i{i}", words[y]) for i, y in enumerate(truth[:labelled])]
    pd.DataFrame(labels, columns=["item", "label"]).to_csv(folder / "labels.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def genres(tmp_path_factory: pytest.TempPathFactory) -> dict:
    return result_of(write(tmp_path_factory.mktemp("genres"), GENRES), *FEW)


def test_ten_genres_are_nominal_and_the_answer_says_so(genres: dict) -> None:
    assert sorted(genres["decisions"]) == sorted(GENRES)
    said = " ".join(genres["sentences"])
    assert "in no order" in said
    assert "The classes are read as having no order" in said
    assert "compare two responses" not in said
    assert "class steps" not in said
    assert "Loss of a decision: 1 if it is not the label" in said


def test_nominal_classes_have_no_mae(genres: dict) -> None:
    (method, *_) = genres["tables"]["held out"]
    assert "accuracy" in method
    assert "mae" not in method
    assert "MAE" not in genres["output"]


def test_class_steps_of_nominal_classes_are_refused(tmp_path: Path) -> None:
    write(tmp_path, GENRES)
    files = (tmp_path / "votes.csv", "--labels", tmp_path / "labels.csv")
    done = run("calibrate", *files, *FEW, "--loss", "absolute")
    assert "have no known order" in str(done.exception)
    done = run("ensemble", *files, "--decision", "median")
    assert "--decision median needs ordered classes" in str(done.exception)


@pytest.mark.parametrize(
    ("words", "options", "in_order"),
    [
        (["poor", "good", "fair"], (), "poor, fair, good (low to high)"),
        (
            ["rock", "jazz", "pop"],
            ("--set", "classes=pop,jazz,rock"),
            "pop, jazz, rock (low to high)",
        ),
        (["rock", "jazz", "pop"], (), "jazz, pop, rock (in no order)"),
    ],
)
def test_an_order_comes_from_the_words_or_the_user(
    tmp_path: Path, words: list[str], options: tuple[str, ...], in_order: str
) -> None:
    result = result_of(write(tmp_path, words), *FEW, *options)
    assert in_order in " ".join(result["sentences"])
    ordered = "low to high" in in_order
    assert ("mae" in result["tables"]["held out"][0]) == ordered


def test_a_class_that_only_labels_have_is_a_class(tmp_path: Path) -> None:
    write(tmp_path, ["rock", "jazz", "pop"])
    labels = pd.read_csv(tmp_path / "labels.csv")
    labels.loc[:2, "label"] = "folk"
    labels.to_csv(tmp_path / "labels.csv", index=False)
    assert list(result_of(tmp_path, *FEW)["decisions"]) == ["folk", "jazz", "pop", "rock"]


def test_an_odd_word_among_verdicts_is_no_class(tmp_path: Path) -> None:
    write(tmp_path, ["valid", "invalid"])
    votes = pd.read_csv(tmp_path / "votes.csv")
    votes.loc[:2, "vote"] = "cannot say"
    votes.to_csv(tmp_path / "votes.csv", index=False)
    done = run("calibrate", tmp_path / "votes.csv", "--labels", tmp_path / "labels.csv")
    assert "votes are not one of invalid, valid: 'cannot say' 3" in str(done.exception)


def test_ties_of_nominal_classes_are_drawn(tmp_path: Path) -> None:
    """Two judges, of which one votes a and one c: b was between them."""
    words = ["aa", "bb", "cc"]
    rows = [(f"i{i}", judge, v) for i in range(60) for judge, v in (("x", "aa"), ("y", "cc"))]
    rows += [(f"j{i}", judge, words[i % 3]) for i in range(30) for judge in "xy"]
    votes = pd.DataFrame(rows, columns=["item", "judge", "vote"])
    votes.to_csv(tmp_path / "votes.csv", index=False)
    labels = [(f"j{i}", words[i % 3]) for i in range(30)]
    pd.DataFrame(labels, columns=["item", "label"]).to_csv(tmp_path / "labels.csv", index=False)

    def decided() -> pd.Series:
        result_of(tmp_path, *FEW, "--out", tmp_path / "answers.csv")
        answers = pd.read_csv(tmp_path / "answers.csv").set_index("item")["decision"]
        return answers[answers.index.str.startswith("i")]

    first = decided()
    assert set(first) == {"aa", "cc"}
    assert 15 < (first == "aa").sum() < 45
    assert first.equals(decided())


def test_a_saved_fit_keeps_that_classes_have_no_order(tmp_path: Path) -> None:
    write(tmp_path, GENRES)
    result_of(tmp_path, *FEW, "--save", tmp_path / "fit.json")
    done = run("apply", tmp_path / "fit.json", tmp_path / "votes.csv")
    assert done.exit_code == 0, done.output
    assert "in no order" in done.output
    steps = ("--loss", "absolute")
    done = run("apply", tmp_path / "fit.json", tmp_path / "votes.csv", *steps)
    assert "have no known order" in str(done.exception)


def test_no_more_labels_are_forecast_where_all_items_have_one(tmp_path: Path) -> None:
    for labelled, advised in ((60, True), (80, False)):
        steps = " ".join(result_of(write(tmp_path, GENRES, labelled=labelled), *FEW)["next_steps"])
        assert ("more labels would gain" in steps) == advised
