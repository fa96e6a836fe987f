"""The user's own folder, and the modes of files that are written."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from judgebayes.compiled.own_folder import own_folder
from judgebayes.compiled.store import atomically
from judgebayes.errors import JudgeBayesError


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_folder_is_the_users_alone(tmp_path: Path) -> None:
    assert mode(own_folder(tmp_path / "new" / "programs")) == 0o700
    assert own_folder(tmp_path / "new" / "programs").is_dir()


@pytest.mark.parametrize("open_to", [0o720, 0o702, 0o777])
def test_a_folder_that_others_may_write_to_is_refused(tmp_path: Path, open_to: int) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(open_to)
    with pytest.raises(JudgeBayesError, match="Other users may write"):
        own_folder(tmp_path / "shared")


def test_another_users_folder_and_a_link_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(JudgeBayesError, match="is no folder"):
        own_folder(tmp_path / "link")
    monkeypatch.setattr(os, "getuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(JudgeBayesError, match="another user"):
        own_folder(tmp_path / "real")


def test_a_command_says_that_it_keeps_no_programs(tmp_path: Path) -> None:
    (tmp_path / "judgebayes").mkdir()
    (tmp_path / "judgebayes").chmod(0o777)
    names = ("JAX_COMPILATION_CACHE_DIR", "JUDGEBAYES_PROGRAMS")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    run = subprocess.run(
        [sys.executable, "-m", "judgebayes", "--version"],
        env={**environment, "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Other users may write" in run.stderr
    assert list((tmp_path / "judgebayes").iterdir()) == []


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
