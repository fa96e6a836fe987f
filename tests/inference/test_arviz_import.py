"""ArviZ is imported by processes that start at the same time, on a machine that is new to it."""

import os
import subprocess
import sys
from pathlib import Path


def test_an_import_that_another_process_disturbed_is_tried_again(tmp_path: Path) -> None:
    code = (
        "import pathlib\n"
        "replace, calls = pathlib.Path.replace, []\n"
        "def disturbed(path, target):\n"
        "    if 'daily_warning' in path.name and not calls:\n"
        "        calls.append(replace(path, target))\n"
        "    return replace(path, target)\n"
        "pathlib.Path.replace = disturbed\n"
        "from judgebayes.inference.posterior import arviz\n"
        "print(len(calls), arviz().__name__)\n"
    )
    environment = os.environ | {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    # A version that keeps no day is not disturbed.
    assert done.stdout.split() in (["1", "arviz"], ["0", "arviz"])
