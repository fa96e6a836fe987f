"""Parts of a killed run of experiments, which are not computed again."""

import errno
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from judgebayes import DRPS, MAP, Davidson
from judgebayes.errors import JudgeBayesError
from judgebayes.experiments import kept as kept_module
from judgebayes.experiments.folders import clear_half_written
from judgebayes.experiments.kept import kept


def test_a_part_is_made_once_for_the_same_inputs_and_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[object] = []

    def keep(made_from: object) -> None:
        part = kept(tmp_path, made_from, lambda: made.append(made_from) or {"x": np.arange(9.0)})  # type: ignore[func-returns-value]
        np.testing.assert_array_equal(part["x"], np.arange(9.0))

    inputs = [
        (Davidson(inference), np.full(3, votes), seed)
        for inference in (DRPS(), DRPS(starts=2), MAP())
        for votes in (0, 1)
        for seed in (0, 1)
    ]
    for one in inputs * 2:
        keep(one)
    assert len(made) == len(inputs)
    monkeypatch.setattr(kept_module, "source_digest", lambda: "edited")
    keep(inputs[0])
    assert len(made) == len(inputs) + 1


@pytest.mark.parametrize("content", [b"", b"PK", b"\x93NUMPY", None])
def test_a_damaged_part_is_made_again(tmp_path: Path, content: bytes | None) -> None:
    kept(tmp_path, "a", lambda: {"x": np.arange(1000)})
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    middle = len(whole) // 2
    flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    path.write_bytes(flipped if content is None else content)
    assert kept(tmp_path, "a", lambda: {"x": np.arange(1000)})["x"].tolist() == list(range(1000))
    assert path.read_bytes() == whole


def test_a_full_disk_raises_an_error_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(tmp_path, "first", lambda: {"x": np.zeros(3)})
    before = list(tmp_path.iterdir())

    def full(file: object, **_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(
        JudgeBayesError, match=r"No space left on device. Finished parts are not lost"
    ):
        kept(tmp_path, "second", lambda: {"x": np.ones(3)})
    assert list(tmp_path.iterdir()) == before


# The killed program writes parts of some size, one after the other, to a folder.
WRITER = """
import sys
from pathlib import Path
import numpy as np
from judgebayes.experiments.kept import kept

for n in range(40):
    part = {"x": np.random.default_rng(n).normal(size=20_000)}
    kept(Path(sys.argv[1]), n, lambda: part)
"""


def killed(command: list[str], after: float) -> bool:
    """Run a command and kill it; return whether it was still running."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        process.wait(timeout=after)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
        return True
    return False


def test_a_writer_killed_at_any_time_leaves_complete_parts(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER]
    start = time.monotonic()
    subprocess.run([*command, str(tmp_path / "whole")], check=True)
    lasts = time.monotonic() - start
    rng = random.Random(1)
    for _ in range(3):
        killed([*command, str(tmp_path / "cut")], lasts * rng.uniform(0.3, 0.9))
    for file in (tmp_path / "cut").glob("[!.]*"):
        assert file.read_bytes() == (tmp_path / "whole" / file.name).read_bytes()
    subprocess.run([*command, str(tmp_path / "cut")], check=True)
    assert len(list((tmp_path / "cut").glob("[!.]*"))) == 40
    (tmp_path / "cut" / ".x.csv.abc.half-written").touch()
    clear_half_written(tmp_path)
    assert len(list((tmp_path / "cut").iterdir())) == 40


REPRODUCE = ["distribution-calibrated/table3", "distribution-calibrated/table6"]


@pytest.mark.slow
def test_reproduce_survives_twenty_kills(tmp_path: Path) -> None:
    """`kill -9` at twenty random times, resumed each time: the files of an uninterrupted run."""
    command = [sys.executable, "-m", "judgebayes", "reproduce", *REPRODUCE, "--twins"]
    command += ["--smoke", "--out"]
    out = {name: tmp_path / name / "out" for name in ("first", "whole", "cut")}
    for folder in out.values():
        folder.parent.mkdir()
    for name in ("first", "whole"):  # the first compiles the programs
        start = time.monotonic()
        subprocess.run([*command, "out"], check=True, cwd=tmp_path / name)
        lasts = time.monotonic() - start
    _same(out["first"], out["whole"])
    rng = random.Random(2)
    kills = 0
    while kills < 20:
        process = subprocess.Popen([*command, "out"], cwd=tmp_path / "cut")
        time.sleep(lasts * rng.uniform(0.1, 1.0))
        if process.poll() is None:
            process.kill()
            process.wait()
            kills += 1
        else:
            assert process.returncode == 0
            _same(out["whole"], out["cut"])
    subprocess.run([*command, "out"], check=True, cwd=tmp_path / "cut")
    _same(out["whole"], out["cut"])


def _same(one: Path, other: Path) -> None:
    files = sorted(f.relative_to(one) for f in one.rglob("*") if f.is_file())
    assert len(files) > 4
    assert sorted(f.relative_to(other) for f in other.rglob("*") if f.is_file()) == files
    for file in files:
        assert (one / file).read_bytes() == (other / file).read_bytes(), file
