"""The command line on files of the shapes that users have."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from runner import CliRunner, Result

from judgebayes.cli import app
from judgebayes.errors import JudgeBayesError

FAST = ["--splits", "3"]


@pytest.fixture(scope="module")
def long(counts: np.ndarray) -> pd.DataFrame:
    """Long-form votes of 60 items, headers as people write them."""
    rows = [
        (f"q {i}", "gpt", s, vote)
        for i, row in enumerate(counts)
        for s, vote in enumerate(np.repeat([-1, 0, 1], row))
    ]
    rows.append(("q 3", "gpt", 0, None))
    return pd.DataFrame(rows, columns=["Question ID", "Judge", "Sample", "Verdict"])


@pytest.fixture(scope="module")
def gold(labels: np.ndarray) -> pd.DataFrame:
    table = pd.DataFrame({"Question ID": [f"q {i}" for i in range(60)], "gold": labels - 1})
    return table[labels >= 0]


def run(*args: object) -> Result:
    result = CliRunner().invoke(app, [str(a) for a in args])
    if isinstance(result.exception, JudgeBayesError):
        return result
    assert result.exit_code == 0, (result.output, result.exception)
    return result


@pytest.fixture
def files(tmp_path: Path, long: pd.DataFrame, gold: pd.DataFrame) -> tuple[Path, Path]:
    long.to_csv(tmp_path / "votes.csv", index=False)
    gold.to_csv(tmp_path / "gold.csv", index=False)
    return tmp_path / "votes.csv", tmp_path / "gold.csv"


def test_drifted_votes_are_named(files: tuple[Path, Path], tmp_path: Path) -> None:
    votes, gold = files
    fit = tmp_path / "fit.json"
    run("calibrate", votes, "--labels", gold, "--save", fit, *FAST)
    moved = pd.read_csv(votes).assign(Verdict=1)
    moved.to_csv(tmp_path / "new.csv", index=False)
    said = run("apply", fit, tmp_path / "new.csv").output
    assert "share of votes for +1" in said
    assert "drifted" in said


def test_votes_in_swapped_order_are_mapped_back(
    tmp_path: Path, long: pd.DataFrame, gold: pd.DataFrame
) -> None:
    swapped = long.dropna().copy()
    odd = swapped["Sample"] % 2 == 1
    swapped["order"] = np.where(odd, "BA", "AB")
    swapped["Verdict"] = np.where(odd, -swapped["Verdict"], swapped["Verdict"]).astype(int)
    swapped.to_csv(tmp_path / "o.csv", index=False)
    gold.to_csv(tmp_path / "g.csv", index=False)
    args = ["calibrate", tmp_path / "o.csv", "--labels", tmp_path / "g.csv", *FAST]
    said = run(*args, "--set", "votes_as=shown", "--set", "drop_unknown_labels=true").output
    assert "were reversed" in said
    asked = run(*args)
    assert "--set votes_as=shown" in str(asked.exception)


BAD: list[tuple[str, Callable[[pd.DataFrame, pd.DataFrame], object], list[str], str]] = [
    ("no labels", lambda v, g: None, ["NOGOLD"], "Calibration needs labels"),
    ("unknown method", lambda v, g: None, ["--method", "magic"], "choose one of: auto, davidson"),
    ("unknown inference", lambda v, g: None, ["--method", "davidson:x"], "is fitted by drps, ml"),
    ("unknown loss", lambda v, g: None, ["--loss", "x"], "is neither absolute, zero-one"),
    (
        "unknown judge",
        lambda v, g: None,
        ["--set", "only_judge=x"],
        "no judge 'x'; choose one of: 'gpt'",
    ),
    ("unknown column", lambda v, g: None, ["--vote", "x"], "no column 'x' for the vote"),
    ("no column of tasks", lambda v, g: None, ["--method", "hierarchical"], "--set task="),
    (
        "mixed kinds",
        lambda v, g: v.update(v[["Verdict"]].abs()),
        [],
        "votes look binary .*labels look ternary",
    ),
    (
        "strange items in the labels",
        lambda v, g: g.__setitem__("Question ID", g["Question ID"] + "!"),
        [],
        "labels 50 item\\(s\\) that have no votes",
    ),
    (
        "constant labels",
        lambda v, g: g.__setitem__("gold", 1),
        [],
        "Every label in column 'gold' is 1",
    ),
]


@pytest.mark.parametrize(
    ("change", "args", "sentence"), [b[1:] for b in BAD], ids=[b[0] for b in BAD]
)
def test_bad_requests_get_their_sentence(
    tmp_path: Path,
    long: pd.DataFrame,
    gold: pd.DataFrame,
    change: Callable[[pd.DataFrame, pd.DataFrame], object],
    args: list[str],
    sentence: str,
) -> None:
    votes, labels = long.copy(), gold.copy()
    change(votes, labels)
    votes.to_csv(tmp_path / "v.csv", index=False)
    labels.to_csv(tmp_path / "g.csv", index=False)
    given = [] if "NOGOLD" in args else ["--labels", tmp_path / "g.csv"]
    result = run("calibrate", tmp_path / "v.csv", *given, *(a for a in args if a != "NOGOLD"))
    assert isinstance(result.exception, JudgeBayesError)
    with pytest.raises(JudgeBayesError, match=sentence):
        raise result.exception
