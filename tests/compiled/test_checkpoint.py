"""Killed and resumed sweeps: bit for bit the result of an uninterrupted one."""

import errno
import hashlib
import importlib
import io
import os
import random
import signal
import subprocess
import sys
import time
import tracemalloc
import zipfile
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest

import judgebayes.evaluate.sweeps as sweeps
from judgebayes.aggregators import BaseRate, Davidson, MajorityVote
from judgebayes.calibrators import Temperature
from judgebayes.compiled.checkpoint import kept_part
from judgebayes.compiled.digest import digest_of
from judgebayes.compiled.store import clear_half_written
from judgebayes.errors import JudgeBayesError
from judgebayes.evaluate.batches import memory, splits_per_batch
from judgebayes.evaluate.one_split import Evaluation
from judgebayes.evaluate.splits import Splits, random_splits
from judgebayes.evaluate.sweeps import evaluate_splits, sweep
from judgebayes.inference import DRPS
from judgebayes.votes import Votes

METHODS = {"sc": MajorityVote(), "rate": BaseRate()}


@pytest.fixture(scope="module")
def parts(labels: np.ndarray) -> Splits:
    return random_splits(60, splits=5, calibration=30, among=np.flatnonzero(labels >= 0))


def table(votes: Votes, labels: np.ndarray, parts: Splits, folder: Path | None) -> pd.DataFrame:
    return sweep(
        METHODS, votes, labels, parts, fit_on="calibration", batch_size=2, checkpoint=folder
    )


def test_an_interrupted_sweep_resumes_with_the_same_bits(
    votes: Votes, labels: np.ndarray, parts: Splits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = table(votes, labels, parts, tmp_path / "whole")
    pd.testing.assert_frame_equal(whole, table(votes, labels, parts, None), check_exact=True)
    names = {file.name for file in (tmp_path / "whole").iterdir()}
    assert len(names) == 2 * 3  # methods x batches of two of five splits
    computed: list[str] = []

    def counting(folder: Path, name: str, make: object, shapes: object) -> object:
        if not (folder / f"{name}.part").exists():
            computed.append(name)
            if len(computed) == 4:
                raise KeyboardInterrupt
        return kept_part(folder, name, make, shapes)  # type: ignore[arg-type]

    monkeypatch.setattr(sweeps, "kept_part", counting)
    with pytest.raises(KeyboardInterrupt):
        table(votes, labels, parts, tmp_path / "cut")
    resumed = table(votes, labels, parts, tmp_path / "cut")
    assert len(computed) == 4 + 3  # three are stored; the fourth and two more are computed
    pd.testing.assert_frame_equal(whole, resumed, check_exact=True)
    assert {f.name for f in (tmp_path / "cut").iterdir()} == names
    for name in names:
        one, other = ((tmp_path / home / name).read_bytes() for home in ("whole", "cut"))
        assert one == other


def test_maps_of_a_method_are_stored_with_it(
    votes: Votes, labels: np.ndarray, parts: Splits, tmp_path: Path
) -> None:
    def run() -> pd.DataFrame:
        return sweep(
            {"rate": BaseRate()},
            votes,
            labels,
            parts,
            fit_on="all",
            calibrators={"t": Temperature()},
            share=None,
            checkpoint=tmp_path,
        )

    pd.testing.assert_frame_equal(run(), run(), check_exact=True)
    assert len(list(tmp_path.iterdir())) == 1


def test_the_name_of_a_part_depends_on_all_inputs(
    votes: Votes, labels: np.ndarray, parts: Splits, tmp_path: Path
) -> None:
    base = {"fit_on": "calibration", "seed": 0, "checkpoint": tmp_path}
    few = Davidson(DRPS(starts=1))
    digests = [
        digest_of((method, votes, labels, parts.calibration), settings)
        for method in (few, Davidson(DRPS(starts=2)), MajorityVote(), MajorityVote("outer"))
        for settings in ("calibration", "all")
    ]
    assert len(set(digests)) == len(digests)
    other = labels.copy()
    other[1] = (other[1] + 1) % 3
    for change in (
        {},
        {"seed": 1},
        {"labels": other},
        {"fit_on": "all"},
        {"votes": votes.first(2)},
    ):
        given = {"votes": votes, "labels": labels} | base | change
        evaluate_splits(BaseRate(), splits=parts, **given)  # type: ignore[arg-type]
    assert len(list(tmp_path.iterdir())) == 5
    with pytest.raises(JudgeBayesError, match="cannot be stored in a folder"):
        digest_of(lambda: 0)
    with pytest.raises(JudgeBayesError, match="at the top level of a module"):
        sweep(
            {"rate": BaseRate()},
            votes,
            labels,
            parts,
            fit_on="all",
            metrics={"mine": lambda answers: answers.decisions.mean()},
            checkpoint=tmp_path,
        )


def test_an_edited_method_of_a_user_is_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))

    def name(constant: int) -> str:
        text = f"class Mine:\n    def fit(self):\n        return {constant}\n"
        (tmp_path / "method_of_a_user.py").write_text(text)
        sys.modules.pop("method_of_a_user", None)
        importlib.invalidate_caches()
        return digest_of(None, importlib.import_module("method_of_a_user").Mine())

    assert len({name(1), name(22)}) == 2
    assert name(1) == name(1)


def test_answers_are_stored_too(
    votes: Votes, labels: np.ndarray, parts: Splits, tmp_path: Path
) -> None:
    def run(folder: Path | None, size: int | None = 2) -> Evaluation:
        return evaluate_splits(
            BaseRate(), votes, labels, parts, fit_on="all", checkpoint=folder, batch_size=size
        )

    first, again, whole, at_once = run(tmp_path), run(tmp_path), run(None), run(None, None)
    assert len(list(tmp_path.iterdir())) == 3
    for other in (again, whole, at_once):
        for one, two in zip(jax.tree.leaves(first), jax.tree.leaves(other), strict=True):
            assert one.dtype == two.dtype
            np.testing.assert_array_equal(one, two)
    with pytest.raises(JudgeBayesError, match="batch_size=0; it must be 1 or more"):
        run(None, 0)


SHAPE = {"x": (1000,)}


def forged(**arrays: np.ndarray) -> bytes:
    """Return a file with any arrays and their right digest."""
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **arrays)
    whole = content.getvalue()
    return hashlib.sha256(whole).hexdigest().encode() + b"\n" + whole


def declared_large() -> bytes:
    """Return a file whose array says that it has a billion numbers."""
    header, name = io.BytesIO(), io.BytesIO()
    described = {"descr": "<f8", "fortran_order": False, "shape": (10**9,)}
    np.lib.format.write_array_header_1_0(header, described)
    with zipfile.ZipFile(name, "w") as archive:
        archive.writestr("x.npy", header.getvalue())
    whole = name.getvalue()
    return hashlib.sha256(whole).hexdigest().encode() + b"\n" + whole


DAMAGED = {
    "empty": lambda whole: b"",
    "cut": lambda whole: whole[: len(whole) // 2],
    "a flipped bit": lambda whole: whole[:4000] + bytes([whole[4000] ^ 1]) + whole[4001:],
    "no digest": lambda whole: whole.split(b"\n", 1)[1],
    "another shape": lambda whole: forged(x=np.zeros((1000, 1))),
    "fewer numbers": lambda whole: forged(x=np.zeros(3)),
    "another name": lambda whole: forged(y=np.zeros(1000)),
    "one more array": lambda whole: forged(x=np.zeros(1000), y=np.zeros(1)),
    "text": lambda whole: forged(x=np.array(["a"] * 1000)),
    "complex numbers": lambda whole: forged(x=np.zeros(1000, complex)),
    "a billion numbers": lambda whole: declared_large(),
    "a file without end": lambda whole: whole + bytes(2**20),
}


@pytest.mark.parametrize("how", DAMAGED)
def test_a_damaged_part_is_computed_again(tmp_path: Path, how: str) -> None:
    wanted = {"x": np.arange(1000.0)}
    kept_part(tmp_path, "a", lambda: wanted, SHAPE)
    path = tmp_path / "a.part"
    whole = path.read_bytes()
    path.write_bytes(DAMAGED[how](whole))
    tracemalloc.start()
    part = kept_part(tmp_path, "a", lambda: wanted, SHAPE)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_array_equal(part["x"], wanted["x"])
    assert path.read_bytes() == whole
    assert peak < 4 * 2**20  # a billion numbers have 8 GB


def test_a_whole_part_is_not_computed_again(tmp_path: Path) -> None:
    kept_part(tmp_path, "a", lambda: {"x": np.arange(1000.0)}, SHAPE)
    part = kept_part(tmp_path, "a", lambda: pytest.fail("computed again"), SHAPE)
    np.testing.assert_array_equal(part["x"], np.arange(1000.0))


def test_a_full_disk_raises_an_error_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept_part(tmp_path, "first", lambda: {"x": np.zeros(3)})

    def full(file: Path, content: bytes) -> None:
        with file.open("wb") as half:
            half.write(content[: len(content) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        with pytest.raises(
            JudgeBayesError, match=r"No space left on device. Finished parts are not lost"
        ):
            kept_part(tmp_path, "second", lambda: {"x": np.ones(3)})
    assert [file.name for file in tmp_path.iterdir()] == ["first.part"]
    (tmp_path / "no folder").touch()
    with pytest.raises(JudgeBayesError, match="cannot be written"):
        kept_part(tmp_path / "no folder", "x", lambda: {"x": np.ones(3)})


@pytest.mark.parametrize(("items", "judges"), [(100, 5), (20_000, 50)])
def test_batches_grow_smaller_with_the_votes(items: int, judges: int) -> None:
    index = np.zeros((items, judges, 1), np.int8)
    votes = Votes(index, None, None, None, 2)  # type: ignore[arg-type]
    parts = Splits(np.zeros((4, items // 2), int), np.zeros((4, items // 2), int))
    held = memory()
    assert held > 2**28
    expected = held * 0.25 / (items * (2 * judges + 2) * 8 * 6)
    assert splits_per_batch(Davidson(), votes, parts, "calibration") == int(expected)


# The killed program writes parts of some size, one after the other, to a folder.
WRITER = """
import sys
from pathlib import Path
import numpy as np
from judgebayes.compiled.checkpoint import kept_part

for n in range(40):
    part = {"x": np.random.default_rng(n).normal(size=20_000)}
    kept_part(Path(sys.argv[1]), str(n), lambda: part)
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
    command += ["--smoke", "--batch-size", "2", "--out"]
    out = {name: tmp_path / name / "out" for name in ("first", "whole", "cut")}
    for folder in out.values():
        folder.parent.mkdir()
    for name in ("first", "whole"):  # the first traces the programs
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


@pytest.mark.parametrize("other", ["folder", "pipe", "device"])
def test_what_is_no_plain_file_is_never_read(other: str, tmp_path: Path) -> None:
    part = tmp_path / "a.part"
    if other == "folder":
        part.mkdir()
    elif other == "pipe":
        os.mkfifo(part)
    else:
        part.symlink_to("/dev/zero")

    def make() -> dict[str, np.ndarray]:
        return {"x": np.arange(3)}

    with pytest.raises(JudgeBayesError, match="is a folder, pipe or device; remove it"):
        kept_part(tmp_path, "a", make)
