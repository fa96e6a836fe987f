"""The error of a majority: what labels of the first items, or one label, can say."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cases.asking import result_of
from few_draws import with_few_draws

from judgebayes.majority.plurality import splits_of
from judgebayes.votes import encode
from judgebayes.workflow.ensemble_estimates import first_words


@pytest.fixture(autouse=True)
def _few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """What these tests ask of the mixture does not depend on how it is drawn."""
    with_few_draws(monkeypatch)


def panel(
    rng: np.random.Generator, right: np.ndarray, judges: int = 3
) -> tuple[pd.DataFrame, np.ndarray]:
    """Votes that are right with the probability of each item, and the labels."""
    label = rng.integers(0, 2, len(right))
    vote = np.where(rng.random((judges, len(right))) < right, label, 1 - label)
    table = pd.DataFrame(
        {
            "item": np.tile(np.arange(len(right)), judges),
            "judge": np.repeat([f"j{k}" for k in range(judges)], len(right)),
            "vote": vote.ravel(),
        }
    )
    return table, label


def note(table: pd.DataFrame, label: np.ndarray, known: np.ndarray) -> list[str]:
    votes, _ = encode(table)
    labels = np.where(known, label, -1)
    return first_words(splits_of(votes, labels, (0, 1)))


def test_labels_of_the_first_items_of_a_drifting_panel_are_noted() -> None:
    """Judges fall from 95 to 60 % along the file; the first 30 to 100 of 300 items are labelled."""
    rng = np.random.default_rng(0)
    replays = 40
    noted = 0
    for _ in range(replays):
        n = int(rng.integers(30, 101))
        table, label = panel(rng, np.linspace(0.95, 0.6, 300))
        known = np.arange(300) < n
        known[rng.integers(0, 300, n // 10)] = True  # a few others, too
        noted += bool(note(table, label, known))
    assert noted >= 0.9 * replays


def test_labels_at_random_are_not_noted() -> None:
    rng = np.random.default_rng(1)
    table, label = panel(rng, np.full(120, 0.8))
    replays = 400
    false = sum(bool(note(table, label, rng.permutation(120) < 40)) for _ in range(replays))
    assert false <= 0.01 * replays


@pytest.mark.parametrize("last", [False, True])
def test_the_command_says_so(last: bool, tmp_path: Path) -> None:
    table, label = panel(np.random.default_rng(2), np.linspace(0.95, 0.6, 150))
    known = np.arange(150) >= 120 if last else np.arange(150) < 30
    table.to_csv(tmp_path / "v.csv", index=False)
    labels = pd.DataFrame({"item": np.arange(150), "label": label})[known]
    labels.to_csv(tmp_path / "l.csv", index=False)
    result = result_of(
        *("ensemble", tmp_path / "v.csv", "--labels", tmp_path / "l.csv", "--k", "1,3"),
        out=tmp_path / "r.json",
    )
    said = " ".join(result["sentences"])
    which, other = ("last", "first") if last else ("first", "last")
    assert f"mostly among the {which} of the file (rank test, p < 0.001)" in said
    assert f"label some of the {other} items" in said
    assert "allows for this" not in said


@pytest.mark.parametrize("labelled", [1, 2, 4])
@pytest.mark.parametrize("target", ["more", "these"])
def test_few_labels_give_no_narrow_interval(labelled: int, target: str, tmp_path: Path) -> None:
    """All labels agree with all votes: Jeffreys' interval from the labels alone ends at 77, 57, 36 %."""
    table, label = panel(np.random.default_rng(3), np.ones(100))
    table.to_csv(tmp_path / "v.csv", index=False)
    labels = pd.DataFrame({"item": np.arange(labelled), "label": label[:labelled]})
    labels.to_csv(tmp_path / "l.csv", index=False)
    result = result_of(
        *("ensemble", tmp_path / "v.csv", "--labels", tmp_path / "l.csv", "--set", "classes=0,1"),
        *("--target", target),
        out=tmp_path / "r.json",
    )
    bound = {1: 0.77, 2: 0.57, 4: 0.36}[labelled]
    for row in result["tables"]["errors"]:
        if row["votes"] == 3 and row["method"] != "independent":
            assert row["low"] == 0
            assert row["high"] >= bound - 0.01, row
    (every,) = result["tables"]["panels"]
    assert every["high"] >= bound - 0.01
    assert f"There are only {labelled} label(s)" in " ".join(result["sentences"])
