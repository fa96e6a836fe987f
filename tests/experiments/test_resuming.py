"""`judgebayes reproduce`, interrupted or failing: finished results stay, and the rest runs.

A child process imports for seconds, so those of runs in this process are forked from one that has
imported; runs in a process of their own start theirs as users' do.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import planted
import pytest
from documents import check_document

from judgebayes.cli.reproducing import reproduce_papers
from judgebayes.cli.requests import ReproduceRequest
from judgebayes.compiled.store import locked
from judgebayes.errors import JudgeBayesError
from judgebayes.experiments import resuming, runner
from judgebayes.experiments.core import Experiment, Output, Run, rows
from judgebayes.experiments.resuming import UNFINISHED
from judgebayes.workflow.machine import document, to_json

PAPER = planted.PAPER
ALONE = """
import signal, sys, planted
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background has it ignored
from pathlib import Path
from judgebayes.cli import reproducing
from judgebayes.cli.requests import ReproduceRequest
if __name__ == "__main__":
    reproducing.find = lambda what: planted.ALL
    out = Path(sys.argv[1])
    request = ReproduceRequest(what=["all"], twins=True, splits=10, out=out)
    sys.exit(reproducing.reproduce_papers(request, ["x"]).exit_code)
"""


class Planted:
    """The planted experiments: the behaviour of each, and how often it ran."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        planted.now().write_text(str(folder))

    def do(self, name: str, what: str) -> None:
        (self.folder / f"{name}.do").write_text(what)

    def ran(self) -> list[int]:
        files = [self.folder / f"{e.name}.ran" for e in planted.ALL]
        counts = [len(f.read_text()) if f.exists() else 0 for f in files]
        for file in files:
            file.unlink(missing_ok=True)
        return counts


class Forked:
    """`multiprocessing` whose children are forked from a process that has imported."""

    @staticmethod
    def get_context(method: str) -> Any:
        assert method == "spawn"
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["planted", "judgebayes.experiments.writing", "jax"])
        return context


@pytest.fixture(scope="module", autouse=True)
def _forked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLANTED", str(tmp_path_factory.mktemp("planted")))
        patch.setattr(runner, "multiprocessing", Forked)
        patch.setattr("judgebayes.cli.reproducing.find", lambda what: planted.ALL)
        yield


@pytest.fixture
def plant(tmp_path: Path) -> Planted:
    return Planted(tmp_path / "planted")


def reproduce(out: Path, seed: int = 0, costs: Path | None = None, jobs: int = 1) -> bool:
    request = ReproduceRequest(
        what=["all"], twins=True, splits=10, seed=seed, out=out, costs=costs, jobs=jobs
    )
    result = reproduce_papers(request, ["judgebayes", "reproduce"])
    code = result.exit_code
    content = check_document(to_json(document("reproduce", "0", result, exit_code=code)))
    assert content["result"]["failed"] == len(content["result"]["tables"]["failed"])
    assert (code == 0) == (content["result"]["failed"] == 0)
    return code == 0


def files(out: Path) -> dict[str, bytes]:
    return {str(f.relative_to(out)): f.read_bytes() for f in out.rglob("*") if f.is_file()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a run that nothing stopped."""
    folder = tmp_path_factory.mktemp("whole")
    Planted(folder / "planted")
    assert reproduce(folder / "out")
    return files(folder / "out")


def test_one_that_raises_or_dies_is_reported_and_the_others_run(
    plant: Planted, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reproduce(tmp_path / "whole", costs=tmp_path / "costs.csv")
    assert plant.ran() == [1, 1, 1]
    assert not (tmp_path / "whole" / UNFINISHED).exists()
    names = [e.name for e in planted.ALL]
    assert set(files(tmp_path / "whole")) == {
        *("index.html", "index.md", "claims.csv", "summary.csv"),
        *(f"{PAPER}/{name}{end}" for name in names for end in (".csv", ".md", "-f.png", "-f.pdf")),
    }
    head, *costs = (tmp_path / "costs.csv").read_text().splitlines()
    assert head == "experiment,twins,seconds,peak_mb,programs"
    assert [row.split(",")[0] for row in costs] == [f"{PAPER}/{name}" for name in names]
    assert "working on two" in capsys.readouterr().out

    out = tmp_path / "failed"
    plant.do("one", "raise")
    plant.do("two", "die")
    assert not reproduce(out)
    assert plant.ran() == [1, 1, 1]
    printed = " ".join(capsys.readouterr().out.split())
    logs = out / UNFINISHED / "logs"
    first, second = logs / f"{PAPER}-one.log", logs / f"{PAPER}-two.log"
    assert f"failed The first: RuntimeError: planted; log: {first}" in printed
    assert f"failed The second: its process was ended by SIGSEGV; log: {second}" in printed
    assert "2 of 3 experiments failed. Run the same command again" in printed
    assert "said before it failed" in first.read_text()
    assert "Traceback" in first.read_text()
    assert "Segmentation fault" in second.read_text()
    assert "The third" in (out / "index.md").read_text()

    for name in ("one", "two"):
        plant.do(name, "")
    assert reproduce(out)
    assert plant.ran() == [1, 1, 0]
    assert files(out) == files(tmp_path / "whole")
    assert "The third: replicated 1 (finished in an earlier run)" in capsys.readouterr().out


def test_two_at_a_time_end_with_the_same_bytes(
    whole: dict[str, bytes], plant: Planted, tmp_path: Path
) -> None:
    plant.do("two", "die")
    assert not reproduce(tmp_path / "out", jobs=2)
    plant.do("two", "")
    assert reproduce(tmp_path / "out", jobs=2)
    assert plant.ran() == [1, 2, 1]
    assert files(tmp_path / "out") == whole


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_run_stopped_at_any_moment_goes_on_and_ends_with_the_same_bytes(
    whole: dict[str, bytes], plant: Planted, tmp_path: Path, stop: signal.Signals
) -> None:
    script = tmp_path / "alone.py"
    script.write_text(ALONE)
    path = os.pathsep.join([str(Path(planted.__file__).parent), os.environ.get("PYTHONPATH", "")])
    out = tmp_path / "out"
    plant.do("two", "wait")
    process = subprocess.Popen(
        [sys.executable, script, out],
        env=os.environ | {"PYTHONPATH": path},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    for _ in range(600):
        if (plant.folder / "two.ran").exists():
            break
        time.sleep(0.1)
    before = time.monotonic()
    process.send_signal(stop)
    assert process.wait(20) != 0
    assert time.monotonic() - before < 5
    plant.do("two", "")
    assert plant.ran() == [1, 1, 0]
    assert reproduce(out)
    assert plant.ran() == [0, 1, 1]
    assert files(out) == whole


def test_only_what_would_come_out_the_same_is_kept(plant: Planted, tmp_path: Path) -> None:
    plant.do("two", "raise")
    for changed in (
        lambda: None,  # nothing: the first result is kept
        lambda: (tmp_path / PAPER / "one.csv").write_text("edited"),
        lambda: (tmp_path / PAPER / "one-f.png").unlink(),
        lambda: next((tmp_path / UNFINISHED / "results").glob("*-one-*")).write_text('{"fi'),
    ):
        assert not reproduce(tmp_path)
        changed()
    assert plant.ran()[0] == 1 + 0 + 1 + 1
    assert not reproduce(tmp_path)
    assert plant.ran()[0] == 1
    assert not reproduce(tmp_path, seed=1)
    assert plant.ran()[0] == 1


def test_a_full_disk_ends_the_run_and_loses_nothing(plant: Planted, tmp_path: Path) -> None:
    plant.do("two", "unwritable")
    with pytest.raises(JudgeBayesError, match="no room"):
        reproduce(tmp_path / "out")
    assert plant.ran() == [1, 1, 0]
    assert not [name for name in files(tmp_path / "out") if name.endswith(".half-written")]
    plant.do("two", "")
    assert reproduce(tmp_path / "out")
    assert plant.ran() == [0, 1, 1]
    (tmp_path / "file").touch()
    with pytest.raises(JudgeBayesError, match="cannot be written"):
        reproduce(tmp_path / "file")


def test_a_second_run_in_the_folder_is_refused(plant: Planted, tmp_path: Path) -> None:
    with (
        locked(tmp_path / UNFINISHED, "'out'"),
        pytest.raises(JudgeBayesError, match="Another run is writing to"),
    ):
        reproduce(tmp_path)
    assert plant.ran() == [0, 0, 0]
    reproduce(tmp_path)
    assert plant.ran() == [1, 1, 1]


def test_other_data_make_another_result(tmp_path: Path) -> None:
    one = Experiment(
        PAPER, "one", "one", "c", ("votes",), False, lambda run: Output(rows(PAPER, "one", []))
    )
    (tmp_path / "votes").mkdir()
    digests = []
    for content in ("a", "bb"):
        (tmp_path / "votes" / "v.csv").write_text(content)
        digests.append(resuming._made_from(one, Run(tmp_path)))
    digests += [resuming._made_from(one, run) for run in (Run(), Run(seed=1), Run(splits=9))]
    assert len(set(digests)) == len(digests)
