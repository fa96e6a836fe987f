"""`judgebayes calibrate` on votes of which no table item x judge is made."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from panels import judged
from typer.testing import CliRunner, Result

from judgebayes.cli import app
from judgebayes.errors import JudgeBayesError
from judgebayes.workflow import methods, reading

ITEMS = 90


def run(*args: object) -> Result:
    result = CliRunner().invoke(app, [str(a) for a in args])
    if not isinstance(result.exception, JudgeBayesError):
        assert result.exit_code == 0, (result.output, result.exception)
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Few votes of many judges in a Parquet file, in no order, and labels of half the items."""
    folder = tmp_path_factory.mktemp("votes")
    accuracy = np.linspace(0.95, 0.6, 6)
    votes, truth = judged(accuracy, ITEMS, missing=0.5, seed=4)
    item, judge = np.nonzero(np.asarray(votes.index)[..., 0] >= 0)
    table = pd.DataFrame(
        {
            "item": [f"i{i}" for i in item],
            "judge": [f"j{j}" for j in judge],
            "vote": np.asarray(votes.index)[item, judge, 0],
        }
    )
    table.sample(frac=1, random_state=0).to_parquet(folder / "votes.parquet")
    gold = pd.DataFrame({"item": [f"i{i}" for i in range(ITEMS)], "label": truth})
    gold[gold["item"].isin(table["item"])].iloc[: ITEMS // 2].to_csv(folder / "gold.csv")
    return folder


def calibrated(folder: Path, *more: object) -> tuple[str, pd.DataFrame]:
    out = folder / "out.csv"
    said = run(
        "calibrate", folder / "votes.parquet", "--labels", folder / "gold.csv", "--out", out,
        "--splits", 3, *more,
    )  # fmt: skip
    assert said.exception is None, said.exception
    return said.output, pd.read_csv(out).set_index("item")


def held_out(said: str) -> list[str]:
    """Return the table of held-out results, and what was decided."""
    return [line for line in said.splitlines() if "+" in line or "Decisions" in line]


METHODS = (
    ["--method", "one-coin", "--conformal", "0.8"],
    ["--method", "stacking"],
    ["--method", "davidson", "--label-noise", "0.02"],
    ["--method", "sc"],
)


@pytest.mark.parametrize("more", METHODS, ids=lambda more: more[1])
def test_a_list_is_answered_as_a_table_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch, more: list[str]
) -> None:
    """Whether the list is read at once or in pieces."""
    said, table = calibrated(folder, *more)
    assert "kept as a list" not in said
    monkeypatch.setattr(reading, "DENSE_BYTES", 400)
    monkeypatch.setattr("judgebayes.workflow.fitting.SLAB_CELLS", 60)  # several slabs
    for rows in (None, 10):
        if rows is not None:
            monkeypatch.setattr(reading, "STREAM_ROWS", rows)
            monkeypatch.setattr(reading, "HEAD_ROWS", rows)
        again, listed = calibrated(folder, *more)
        assert "the votes are kept as a list" in again
        assert held_out(again) == held_out(said)
        pd.testing.assert_frame_equal(listed.loc[table.index], table, atol=1e-9)


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_auto_compares_what_a_list_allows(
    folder: Path, monkeypatch: pytest.MonkeyPatch, every: bool
) -> None:
    monkeypatch.setattr(reading, "DENSE_BYTES", 400)
    compared = ("davidson", "one-coin + beta", "stacking", "top-3 + beta")
    if not every:  # programs that the tests above have compiled, and a method for tables only
        compared = ("one-coin + beta", "stacking")
        few = ["one-coin", "stacking", "dawid-skene"]
        monkeypatch.setattr(methods, "_kinds_suited", lambda votes: few)
    said, _ = calibrated(folder, "--method", "auto")
    for name in compared:
        assert name in said
    assert "dawid-skene +" not in said
    assert "would take 5.28e-07 GB (limit 4e-07)" in said


def test_dawid_skene_is_fitted_to_the_whole_list(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = ("--method", "dawid-skene", "--calibrator", "none")
    _, table = calibrated(folder, *ask)
    monkeypatch.setattr(reading, "DENSE_BYTES", 400)
    said, listed = calibrated(folder, *ask)
    assert "There are too many votes to fit" in said
    probs = ["p(0)", "p(1)"]
    # Both stop where a step gains little, not at the very mode.
    np.testing.assert_allclose(listed.loc[table.index, probs], table[probs], atol=1e-4)


def test_what_a_list_cannot_hold_is_one_sentence(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "DENSE_BYTES", 400)
    votes, gold = folder / "votes.parquet", folder / "gold.csv"
    ask = ("calibrate", votes, "--labels", gold, "--method", "dawid-skene", "--calibrator", "beta")
    assert "use --calibrator none" in str(run(*ask).exception)
    tasks = folder / "tasks.parquet"
    pd.read_parquet(votes).assign(task="a").to_parquet(tasks)
    result = run("calibrate", tasks, "--labels", gold, "--task", "task").exception
    assert "cannot store the task; use --task none" in str(result)
    monkeypatch.setattr(reading, "DENSE_BYTES", 20)
    result = run("calibrate", votes, "--labels", gold).exception
    assert "do not fit into a table; use fewer labelled" in str(result)


def test_a_label_column_and_groups_are_read_from_the_pieces(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gold = pd.read_csv(folder / "gold.csv").set_index("item")["label"]
    table = pd.read_parquet(folder / "votes.parquet")
    table["label"] = table["item"].map(gold)
    table["question"] = table["item"].str[:2]
    path = folder / "labelled.parquet"
    table.to_parquet(path)
    ask = ("calibrate", path, "--method", "one-coin", "--group", "question", "--splits", 3)
    whole = run(*ask).output
    monkeypatch.setattr(reading, "STREAM_ROWS", 10)
    monkeypatch.setattr(reading, "HEAD_ROWS", 10)
    pieces = run(*ask).output  # read in pieces, small enough for a table
    assert pieces == whole
    assert "kept as a list" not in pieces
