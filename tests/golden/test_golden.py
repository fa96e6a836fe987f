"""The contract: what "nothing changed" means. A case is a file: what is asked, and the numbers.

`GOLDEN=write pytest tests/golden -k NAME` writes the numbers of a case again. A case whose numbers
change on purpose says why in its `changed`. With other versions than those of `constraints.txt`,
numbers may differ by 1e-5.
"""

import json
import os
from fnmatch import fnmatch
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from cases.asking import FILES, result_of, run
from few_draws import with_few_draws
from golden import files as panels
from golden.adapter import ROWS, numbers_of
from runner import CliRunner

from judgebayes.cli import app
from judgebayes.experiments.core import default_data
from judgebayes.workflow.methods import Choice, build

HERE = Path(__file__).parent
CASES = sorted((HERE / "cases").glob("*.json"))
PINNED = (HERE.parents[1] / "constraints.txt").read_text()
ELSEWHERE = 0.0 if f"jaxlib=={version('jaxlib')}" in PINNED else 1e-5
"""The tolerance with other versions than those that the numbers are from."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of all cases, the example among them."""
    folder = tmp_path_factory.mktemp("golden")
    panels.write_all(folder, default_data())
    run("example", folder / "example")
    return folder


def answered(case: dict[str, Any], files: Path) -> dict[str, Any]:
    """Return the numbers of a case: of a command, or of a method's fit."""
    if "method" in case:
        return fitted(case["method"], case["map"], case["on"])
    names = {"example": files / "example", "cases": FILES, "files": files}
    for before in case.get("after", ()):
        run(*(word.format(**names) for word in before))
    words = [word.format(**names) for word in case["ask"]]
    return numbers_of(result_of(*words, out=files / "answer.json"))


def fitted(method: str, calibration_map: str, on: str) -> dict[str, Any]:
    """Return the probabilities of every tenth item, and the numbers that the fit keeps of its data."""
    votes, labels, classes = panels.arrays(on)
    choice = Choice(method, calibration_map)
    fit = build(choice, classes, votes).fit(votes, labels, key=jax.random.key(0))
    probs = np.exp(np.asarray(fit(votes), np.float64))
    numbers = {
        f"probability.{i}.{c}": probs[i, c]
        for i in range(0, len(probs), 10)
        for c in range(probs.shape[1])
    }
    numbers["mean_square"] = float((probs**2).mean())
    numbers["status"] = int(np.max(np.asarray(fit.status)))
    loss = getattr(fit, "loss", None)
    if loss is not None:
        numbers["loss"] = float(np.asarray(loss))
    return numbers


def within(case: dict[str, Any], name: str) -> float:
    """Return the tolerance of a number: of the first pattern that fits, else of the case."""
    looser = (bound for glob, bound in case.get("looser", {}).items() if fnmatch(name, glob))
    return max(float(next(looser, case["within"])), ELSEWHERE)


def differences(case: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Return the names that are missing or new, and the numbers that differ."""
    before = case["numbers"]
    changes = [f"{name} is missing" for name in before if name not in now]
    changes += [f"{name} is new" for name in now if name not in before]
    for name in before.keys() & now.keys():
        old, new = before[name], now[name]
        if isinstance(old, int | float) and isinstance(new, int | float):
            bound = within(case, name)
            same = np.isclose(new, old, rtol=bound, atol=bound, equal_nan=True)
            if name == "loss":  # never a worse optimum
                same = new <= old + max(1e-10 * max(1, abs(old)), ELSEWHERE)
        else:
            same = old == new
        if not same:
            changes.append(f"{name}: {old!r} was the answer, now {new!r}")
    return sorted(changes)


@pytest.mark.parametrize("path", CASES, ids=[path.stem for path in CASES])
def test_nothing_changed(path: Path, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = json.loads(path.read_text())
    if case.get("few_draws"):  # NUTS answers in the other cases
        with_few_draws(monkeypatch)
    if case.get("needs") and default_data() is None:
        pytest.skip(f"NO DATA: set JUDGEBAYES_DATA to ask {path.stem}")
    now = answered(case, files)
    if os.environ.get("GOLDEN") == "write":
        case["numbers"] = {name: _short(value) for name, value in now.items()}
        path.write_text(json.dumps(case, indent=1, ensure_ascii=False) + "\n")
    changes = differences(case, now)
    assert not changes, "\n".join(
        [f"{len(changes)} of {len(now)} numbers differ", *changes[: 3 * ROWS]]
    )


def _short(value: Any) -> Any:
    return float(f"{value:.12g}") if isinstance(value, float) else value


TALKS = {
    "calibrate": (
        "calibrate",
        "example/votes.csv",
        "--labels",
        "example/labels.csv",
        "--splits",
        "10",
    ),
    "ensemble": ("ensemble", "pairs.csv", "--labels", "pairs_labels.csv"),
    "precision": ("precision", "generators.csv", "--next", "3"),
}


@pytest.mark.parametrize("name", TALKS)
def test_what_is_printed(name: str, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three transcripts hold the words and the layout of the console; no other test does."""
    monkeypatch.chdir(files)
    kept = HERE / "transcripts" / f"{name}.txt"
    said = CliRunner().invoke(app, [*TALKS[name]]).output
    if os.environ.get("GOLDEN") == "write":
        kept.write_text(said)
    assert said == kept.read_text()
