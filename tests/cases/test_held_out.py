"""What a calibration says of the methods that it compares on held-out labels."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from cases.asking import FILES
from runner import CliRunner

from judgebayes.cli import app


def calibrated(*args: object, out: Path) -> dict[str, Any]:
    command = ["calibrate", *map(str, args), "--json", str(out)]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, (done.output, done.exception)
    return json.loads(out.read_text())["result"]


def test_a_method_that_decides_clearly_better_is_named(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 80)
    votes = np.where(rng.random(80) < 0.9, labels, 1 - labels)
    table = pd.DataFrame({"item": range(80), "judge": "gpt", "vote": votes, "label": labels})
    table.to_csv(tmp_path / "votes.csv", index=False)
    few = ("--splits", 10)
    result = calibrated(
        tmp_path / "votes.csv", "--method", "best-constant", *few, out=tmp_path / "r.json"
    )
    (said,) = [s for s in result["sentences"] if "decides clearly better" in s]
    assert said.startswith(
        "On held-out labels sc decides clearly better than best-constant: a mean"
    )
    other = calibrated(tmp_path / "votes.csv", "--method", "sc", *few, out=tmp_path / "r.json")
    assert "decides clearly better" not in " ".join(other["sentences"])


def test_two_methods_that_are_equally_good_are_not_called_different(tmp_path: Path) -> None:
    """Where judges disagree half of the labels are valid, so that each split's majority misleads.

    On 400,000 fresh items sc and pool have a mean loss of .1766 and .1770.
    """
    noisy = ("--set", "labels_merge=noisy", "--set", "annotator=annotator")
    result = calibrated(
        *(FILES / "ls_judges.csv", "--labels", FILES / "ls_export.csv"),
        *("--item", "id", "--label", "sentiment", "--splits", 40, *noisy),
        out=tmp_path / "r.json",
    )
    said = " ".join(result["sentences"])
    assert "clearly better" not in said
    rows = {row["method"]: row for row in result["tables"]["held out"]}
    assert set(rows) >= {"sc", "best-constant"}
