"""Fits that version 0.1 saved are read, and give the same answers."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from judgebayes.cli import app
from judgebayes.votes import encode
from judgebayes.workflow.fit_file import FITTED, load_fit

HOME = Path(__file__).parents[1] / "fixtures" / "fits-0.1"
FITS = sorted(path.stem for path in HOME.glob("*.json"))
BY_COMMAND = [name for name in FITS if not name.startswith("python-")]
NEWER = {"FittedBayesianMap", "FittedWithUndecided", "Verdict"}
"""Kinds that version 0.1 did not have, or wrote and could not read."""
ROUNDING = 1e-9


def votes_of(name: str) -> Path:
    """Return the votes that a fit was made on."""
    return HOME / f"{name.partition('-')[0].replace('python', 'pairs')}.csv"


@pytest.fixture(scope="module")
def answers() -> pd.DataFrame:
    """Return the log-probabilities that version 0.1 gave, by fit and item."""
    return pd.read_csv(HOME / "answers.csv").set_index(["fit", "item"])


def kinds(document: Any) -> Iterator[str]:
    """Yield the kinds of what a file holds, at every depth."""
    if isinstance(document, dict):
        if "type" in document:
            yield document["type"]
        for value in document.values():
            yield from kinds(value)
    elif isinstance(document, list):
        for value in document:
            yield from kinds(value)


def test_a_file_of_every_kind_is_here() -> None:
    fits = [json.loads((HOME / f"{name}.json").read_text())["fitted"] for name in FITS]
    assert {kind for fit in fits for kind in kinds(fit)} == FITTED.keys() - NEWER


@pytest.mark.parametrize("name", FITS)
def test_a_fit_answers_as_it_did(name: str, answers: pd.DataFrame) -> None:
    saved = load_fit(HOME / f"{name}.json")
    frame = pd.read_csv(votes_of(name))
    votes, coding = encode(
        frame, sample="sample", score="confidence", task="task", classes=saved.classes
    )
    expected = answers.loc[name].loc[list(coding.items)].iloc[:, : len(saved.classes)]
    np.testing.assert_allclose(saved.fitted(votes), expected, rtol=ROUNDING, atol=0)


@pytest.mark.parametrize("name", BY_COMMAND)
def test_the_command_applies_it(name: str, answers: pd.DataFrame, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    command = ["apply", HOME / f"{name}.json", votes_of(name), "--out", out]
    result = CliRunner().invoke(app, [str(word) for word in command])
    assert result.exit_code == 0, result.output
    answered = pd.read_csv(out).set_index("item").filter(regex=r"^p\(")
    assert answered.shape[1] == len(load_fit(HOME / f"{name}.json").classes)
    expected = np.exp(answers.loc[name].loc[list(answered.index)].iloc[:, : answered.shape[1]])
    np.testing.assert_allclose(answered, expected, rtol=ROUNDING, atol=0)
