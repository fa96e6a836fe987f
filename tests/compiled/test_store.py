"""Atomic files, the lock of their folder, and the removal of old ones."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from judgebayes.compiled.store import HALF, clear_half_written, locked, prune, read_or_none
from judgebayes.errors import JudgeBayesError

HOLDER = """
import sys
from pathlib import Path
from judgebayes.compiled.store import locked

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


def test_reading_updates_the_time_of_use_and_unreadable_files_give_none(tmp_path: Path) -> None:
    path = tmp_path / "number"
    assert read_or_none(path, lambda file: int(file.read())) is None
    path.write_text("7")
    os.utime(path, (1000, 1000))
    assert read_or_none(path, lambda file: int(file.read())) == 7
    assert path.stat().st_mtime > 1000
    path.write_text("seven")
    assert read_or_none(path, lambda file: int(file.read())) is None


def put(folder: Path, name: str, used: float, size: int = 10, source: str = "own") -> Path:
    path = folder / f"{name}-{source}-0.kept"
    path.write_bytes(b"x" * size)
    os.utime(path, (used, used))
    return path


def pruned(folder: Path, files: int, size: int = 1000) -> None:
    prune(folder, ".kept", "-own-", files=files, size=size)


def names(folder: Path) -> str:
    return "".join(sorted(path.name.lstrip(".")[0] for path in folder.iterdir()))


@pytest.mark.parametrize(
    ("files", "space", "left"),
    [
        (9, 1000, "abcdef"),
        (4, 1000, "acef"),
        (1, 1000, "f"),
        (9, 35, "aef"),
        (9, 30, "ef"),
        (9, 5, ""),
    ],
)
def test_files_of_other_sources_are_removed_first_then_the_least_recently_used(
    files: int, space: int, left: str, tmp_path: Path
) -> None:
    for used, name in enumerate("cae"):
        put(tmp_path, name, 1000 + used)
    put(tmp_path, "f", 1005, size=13)
    put(tmp_path, "b", 1006, source="another")
    put(tmp_path, "d", 1007, source="another")
    pruned(tmp_path, files, space)
    assert names(tmp_path) == left


def test_only_own_files_and_half_written_files_are_removed(tmp_path: Path) -> None:
    old, new = tmp_path / f".old{HALF}", tmp_path / f".new{HALF}"
    for path in (old, new, tmp_path / "mine.txt"):
        path.write_text("x")
    os.utime(old, (1000, 1000))
    (tmp_path / "folder.kept").mkdir()
    (tmp_path / "link.kept").symlink_to(tmp_path / "mine.txt")
    put(tmp_path, "a", 1000)
    pruned(tmp_path, 0)
    clear_half_written(tmp_path, before=1001)
    assert names(tmp_path) == "flmn"
    clear_half_written(tmp_path)
    assert names(tmp_path) == "flm"


def test_several_may_prune_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [put(tmp_path, str(used), 1000 + used) for used in range(200)]
    with ThreadPoolExecutor(8) as threads:
        for done in [threads.submit(pruned, tmp_path, 20) for _ in range(8)]:
            done.result()
    assert set(tmp_path.iterdir()) == set(files[-20:])
    # A process that lists the folder before another one removes files.
    listed = list(os.scandir(tmp_path))
    for path in files[-20:-10]:
        path.unlink()
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", lambda _: listed)
        pruned(tmp_path, 20)
    assert set(tmp_path.iterdir()) == set(files[-10:])
