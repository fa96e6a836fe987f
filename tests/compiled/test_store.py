"""Atomic files and their modes, and the lock of their folder."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from judgebayes.compiled.store import HALF, atomically
from judgebayes.errors import JudgeBayesError
from judgebayes.experiments.folders import clear_half_written, locked

HOLDER = """
import sys
from pathlib import Path
from judgebayes.experiments.folders import locked

with locked(Path(sys.argv[1]), "'results'"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_two_runs_in_one_folder(tmp_path: Path) -> None:
    """The second gets an error while the first runs, but not after the first has ended in any way."""
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == b"held\n"
        with pytest.raises(JudgeBayesError, match="Another run is writing to 'results'"):  # noqa: SIM117
            with locked(tmp_path, "'results'"):
                pass
        first.kill()
    with locked(tmp_path, "'results'"):
        pass


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_a_new_file_follows_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        with atomically(tmp_path / "new.csv") as path:
            path.write_text("a")
    finally:
        os.umask(before)
    assert mode(tmp_path / "new.csv") == 0o666 & ~umask


@pytest.mark.parametrize("own", [0o600, 0o640, 0o644])
def test_a_replaced_file_keeps_its_mode(tmp_path: Path, own: int) -> None:
    target = tmp_path / "kept.csv"
    target.touch()
    target.chmod(own)
    with atomically(target) as path:
        assert mode(path) == 0o600
        path.write_text("a")
    assert (mode(target), target.read_text()) == (own, "a")


def test_half_written_files_are_removed(tmp_path: Path) -> None:
    for name in (f".a{HALF}", "mine.txt"):
        (tmp_path / name).write_text("x")
    clear_half_written(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
