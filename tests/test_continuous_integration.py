"""The script of the guide "In continuous integration": passes, and fails on a planted regression."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from documents import check_document
from runner import CliRunner
from test_guide import agree

from judgebayes.cli import app

GUIDE = Path(__file__).parents[1] / "docs" / "guides" / "continuous-integration.md"

pytestmark = pytest.mark.skipif(shutil.which("sh") is None, reason="no shell")


def block(kind: str, after: str) -> str:
    """Return the first block of a kind behind a text of the guide."""
    text = GUIDE.read_text(encoding="utf-8").partition(after)[2]
    match = re.search(rf"^```{kind}\n(.*?)^```$", text, re.M | re.S)
    assert match is not None
    return match[1]


def gate(folder: Path, votes: str) -> tuple[int, str]:
    """Run the guide's script in a folder; return its exit code and what it printed."""
    (folder / "judge-gate.sh").write_text(block("sh", "## A script"))
    # JAX, imported here, sets the level of the log that the command line sets only by default.
    environment = {k: v for k, v in os.environ.items() if k != "TF_CPP_MIN_LOG_LEVEL"}
    binaries = Path(sys.executable).parent
    done = subprocess.run(
        ["sh", "judge-gate.sh", votes, "example/labels.csv"],
        cwd=folder,
        env=environment | {"PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("job")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert CliRunner().invoke(app, ["example", "example"]).exit_code == 0
    return folder


def test_the_script_fails_on_a_planted_regression_and_passes_without(folder: Path) -> None:
    code, said = gate(folder, "example/votes.csv")
    assert agree(block("text", "On the example it prints"), said), said
    content = check_document((folder / "results.json").read_text())
    assert (code, content["exit_code"]) == (0, 0)
    assert [each["holds"] for each in content["required"]] == [True, True]

    rng = np.random.default_rng(0)
    votes = pd.read_csv(folder / "example" / "votes.csv")
    votes["vote"] = rng.choice([-1, 0, 1], len(votes))
    votes.to_csv(folder / "poor.csv", index=False)
    code, said = gate(folder, "poor.csv")
    assert agree(block("text", "answers at random"), said), said
    content = check_document((folder / "results.json").read_text())
    assert (code, content["exit_code"]) == (1, 1)
    assert [each["holds"] for each in content["required"]] == [False, False]

    code, said = gate(folder, "none.csv")
    assert (code, said) == (2, "Error: There is no file 'none.csv'.\n")
