"""`judgebayes reproduce`, interrupted or failing: finished results stay, and the rest runs.

A child process imports for seconds, so those of runs in this process are forked from one that has
imported; runs in a process of their own start theirs as users' do.
"""

import contextlib
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import planted
import pytest
from documents import check_document

from judgebayes.errors import JudgeBayesError
from judgebayes.experiments import resuming, runner
from judgebayes.experiments.core import Experiment, Output, Run, rows
from judgebayes.experiments.folders import locked
from judgebayes.experiments.reproducing import merge_shards, reproduce_papers
from judgebayes.experiments.request import ReproduceRequest
from judgebayes.experiments.resuming import UNFINISHED
from judgebayes.workflow.machine import CommandResult, document, to_json

PAPER = planted.PAPER
ALONE = """
import signal, sys, planted
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background has it ignored
from pathlib import Path
from judgebayes.experiments import reproducing
from judgebayes.experiments.request import ReproduceRequest
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
        patch.setattr("judgebayes.experiments.reproducing.find", lambda what: planted.ALL)
        patch.setattr("judgebayes.experiments.sharding.find", lambda what: planted.ALL)
        yield


@pytest.fixture
def plant(tmp_path: Path) -> Planted:
    return Planted(tmp_path / "planted")


def reproduce(out: Path, seed: int = 0, twins: bool = True, **options: Any) -> bool:
    request = ReproduceRequest(what=["all"], twins=twins, splits=10, seed=seed, out=out, **options)
    return all_done(reproduce_papers(request, ["judgebayes", "reproduce"]))


def all_done(result: CommandResult) -> bool:
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


def alone(folder: Path) -> subprocess.Popen[bytes]:
    """A run in a process of its own, into `out` in a folder."""
    script = folder / "alone.py"
    script.write_text(ALONE)
    path = os.pathsep.join([str(Path(planted.__file__).parent), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, script, folder / "out"],
        env=os.environ | {"PYTHONPATH": path},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_run_stopped_at_any_moment_goes_on_and_ends_with_the_same_bytes(
    whole: dict[str, bytes], plant: Planted, tmp_path: Path, stop: signal.Signals
) -> None:
    plant.do("two", "wait")
    process = alone(tmp_path)
    out = tmp_path / "out"
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


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are found in /proc")
def test_ctrl_c_never_reaches_a_child_not_even_while_it_imports(
    plant: Planted, tmp_path: Path
) -> None:
    """In a terminal it reaches the parent too, which ends its children."""
    process = alone(tmp_path)
    sent = 0
    while process.poll() is None:
        for child in children(process.pid):
            os.kill(child, signal.SIGINT)
            sent += 1
        time.sleep(0.02)
    assert process.returncode == 0
    assert sent > 10
    assert plant.ran() == [1, 1, 1]


def children(parent: int) -> Iterator[int]:
    """The children of a process that run experiments."""
    for task in Path(f"/proc/{parent}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in task.read_text().split():
                if "spawn_main" in Path(f"/proc/{child}/cmdline").read_text():
                    yield int(child)


def test_merged_shards_are_the_bytes_of_one_run(
    whole: dict[str, bytes],
    plant: Planted,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    first, second, out = (tmp_path / name for name in ("first", "second", "out"))
    plant.do("three", "raise")
    assert not reproduce(first, shard="1/2")
    assert plant.ran() == [1, 0, 1]
    assert not all_done(merge_shards([first], out))
    printed = " ".join(capsys.readouterr().out.split())
    assert "failed The second: shard 2/2 is missing failed The third: shard 1/2 has no" in printed
    assert "2 of 3 experiments failed. Run their shards, then merge again." in printed
    assert "The first" in (out / "index.md").read_text()

    plant.do("three", "")
    assert reproduce(first, shard="1/2")
    assert reproduce(second, shard="2/2")
    assert plant.ran() == [0, 1, 1]
    before = files(first)
    with pytest.MonkeyPatch.context() as patch:  # where it merges, the third is of the other part
        seconds = dict(zip(planted.ALL, (3.0, 1.0, 1.0), strict=True))
        patch.setattr("judgebayes.experiments.sharding.expected_seconds", lambda *_, **__: seconds)
        assert all_done(merge_shards([second, first], out))
    assert files(out) == whole
    assert files(first) == before
    assert reproduce(first, shard="1/2")
    assert plant.ran() == [0, 0, 0]


def test_what_is_no_shard_of_the_run_is_refused(plant: Planted, tmp_path: Path) -> None:
    for shard in ("0/2", "3/2", "2", "1/2/3"):
        with pytest.raises(JudgeBayesError, match="There is no shard"):
            reproduce(tmp_path / "out", shard=shard)
    one, other, whole = (tmp_path / name for name in ("one", "other", "whole"))
    for folder, seed, shard in ((one, 0, "1/4"), (other, 1, "4/4"), (whole, 0, None)):
        assert reproduce(folder, seed=seed, shard=shard)
    copied = Path(shutil.copytree(one, tmp_path / "copied"))
    for folders, reason in (
        ([one, copied], "'.*copied' is the same shard as '.*one': 1/4"),
        ([one, other], "of another run than .*: seed"),
        ([one, whole], "no results of a shard that has ended"),
        ([one, tmp_path / "out"], "is a shard; merge into another"),
        ([], "Name the folders"),
    ):
        with pytest.raises(JudgeBayesError, match=reason):
            merge_shards(folders, tmp_path / "out")


def test_shards_of_other_data_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needing = [replace(experiment, needs=("votes",)) for experiment in planted.ALL]
    monkeypatch.setattr("judgebayes.experiments.reproducing.find", lambda what: needing)
    for content, shard in (("a", "4/5"), ("bb", "5/5")):  # without a result
        data, out = tmp_path / f"{content} data", tmp_path / content
        (data / "votes").mkdir(parents=True)
        (data / "votes" / "v.csv").write_text(content)
        assert reproduce(out, twins=False, data=data, shard=shard)
    with pytest.raises(JudgeBayesError, match=r"of another run than .*: data"):
        merge_shards([tmp_path / "a", tmp_path / "bb"], tmp_path / "out")


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
