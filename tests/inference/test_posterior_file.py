"""Posteriors in files that were changed: one sentence each, and no memory for what they claim."""

import contextlib
import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import h5py
import jax
import numpy as np
import pytest

from judgebayes.errors import JudgeBayesError
from judgebayes.inference import posterior
from judgebayes.inference.posterior_file import HEAP, check_heaps
from judgebayes.inference.posterior_probe import Refused, check
from judgebayes.inference.problem import Chains

CHAINS, DRAWS, ITEMS = 2, 50, 6


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    shape = (CHAINS, DRAWS)
    with jax.enable_x64(True):
        chains = Chains(
            {"a": jax.numpy.asarray(rng.normal(size=shape))},
            *map(jax.numpy.asarray, (np.zeros(shape, bool), rng.normal(size=shape))),
            *(jax.numpy.full(shape, value) for value in (3.0, 0.9)),
        )
    data = posterior.to_arviz(
        chains,
        log_likelihood={"label": -rng.exponential(size=(*shape, ITEMS))},
        coords={"item": [f"i{n}" for n in range(ITEMS)]},
        dims={"label": ["item"]},
    )
    path = tmp_path_factory.mktemp("posterior") / "p.nc"
    posterior.save(data, path)
    return path


def scored(path: Path) -> posterior.LeaveOneOut:
    return posterior.leave_one_out(posterior.load(path), "label")


def test_an_unchanged_posterior_is_scored(saved: Path) -> None:
    loo = scored(saved)
    assert loo.items == tuple(f"i{n}" for n in range(ITEMS))
    assert np.isfinite(loo.elpd).all()


def replaced(file: h5py.File, name: str, values: object) -> None:
    """Replace an array, without the names of its axes."""
    del file[name]
    file[name] = values


def one_value(name: str, value: float) -> Callable[[h5py.File], None]:
    def change(file: h5py.File) -> None:
        file[name][0, 0] = value

    return change


def bomb(file: h5py.File) -> None:
    file.create_dataset(
        "posterior/b", shape=(CHAINS, DRAWS, 10**7), dtype="f8", chunks=(1, 1, 10**5), compression=9
    )


def many_names(file: h5py.File) -> None:
    """A megabyte that packs well, 200 times."""
    file.create_dataset("posterior/b", data=np.zeros((CHAINS, DRAWS, 10_000)), compression=9)
    for n in range(200):
        file[f"posterior/b{n}"] = file["posterior/b"]


def other_bytes(file: h5py.File) -> None:
    del file["posterior/a"]
    whole = Path(file.filename).with_name("whole.nc")
    file.create_dataset("posterior/a", (CHAINS, DRAWS), "u1", external=[(str(whole), 0, 100)])


def short_chunk(file: h5py.File) -> None:
    """Leave out the draws of a chunk: the library would read what lies behind it in memory."""
    del file["posterior/a"]
    draws = file.create_dataset("posterior/a", (CHAINS, DRAWS), "f8", chunks=(CHAINS, DRAWS))
    draws.id.write_direct_chunk((0, 0), bytes(8))


CHANGES: dict[str, Callable[[h5py.File], None]] = {
    "no posterior": lambda file: file.__delitem__("posterior"),
    "no draws": lambda file: file.__delitem__("posterior/a"),
    "draws of text": lambda file: replaced(file, "posterior/a", np.full((CHAINS, DRAWS), b"x")),
    "one draw": lambda file: replaced(file, "posterior/a", 1.0),
    "other axes": lambda file: replaced(file, "posterior/a", np.zeros((3, 4, 5))),
    "a link to nothing": lambda file: replaced(file, "posterior/a", h5py.SoftLink("/nothing")),
    "NaN": one_value("log_likelihood/label", np.nan),
    "infinite": one_value("log_likelihood/label", np.inf),
    "never": one_value("log_likelihood/label", -np.inf),
    "a probability above 1": one_value("log_likelihood/label", 3.0),
    "other items": lambda file: replaced(file, "log_likelihood/label", np.zeros((2, 50, 7))),
    "an item twice": lambda file: file["log_likelihood/item"].__setitem__(1, "i0"),
    "an infinite draw": one_value("posterior/a", -np.inf),
    "a draw that is NaN": one_value("posterior/a", np.nan),
    "a bomb": bomb,
    "one array under many names": many_names,
    "an array of another file": lambda file: replaced(
        file, "posterior/a", h5py.ExternalLink("whole.nc", "posterior/a")
    ),
    "the bytes of another file": other_bytes,
    "a short chunk": short_chunk,
    "a link": lambda file: file.__setitem__("posterior/b", h5py.SoftLink("/posterior/a")),
}


@pytest.mark.parametrize("how", CHANGES)
def test_a_changed_posterior_is_refused(saved: Path, tmp_path: Path, how: str) -> None:
    path = tmp_path / "p.nc"
    shutil.copy(saved, path)
    shutil.copy(saved, tmp_path / "whole.nc")  # what a link could lead to
    with h5py.File(path, "r+") as file:
        CHANGES[how](file)
    tracemalloc.start()
    with pytest.raises(JudgeBayesError):
        scored(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6


@pytest.mark.parametrize("how", ["an array of another file", "the bytes of another file", "a link"])
def test_numbers_that_are_stored_elsewhere_are_named(saved: Path, tmp_path: Path, how: str) -> None:
    path = tmp_path / "p.nc"
    shutil.copy(saved, path)
    with h5py.File(path, "r+") as file:
        CHANGES[how](file)
    with pytest.raises(JudgeBayesError, match=r"'posterior/[ab]' in .* is stored elsewhere"):
        posterior.load(path)


def test_an_array_counts_once_for_each_of_its_names(saved: Path, tmp_path: Path) -> None:
    """It is read as often, so that a small file would fill the memory."""
    path = tmp_path / "p.nc"
    path.write_bytes(saved.read_bytes())
    with h5py.File(path, "r+") as file:
        many_names(file)
    with pytest.raises(Refused, match="MiB of memory, which is the most for a file of its size"):
        check(path)


@pytest.mark.parametrize("place", [4, 100, 1000, 3000, 5000, 9000])
def test_flipped_bytes_end_in_a_sentence_or_in_finite_scores(
    saved: Path, tmp_path: Path, place: int
) -> None:
    whole = bytearray(saved.read_bytes())
    whole[place] ^= 0xFF
    path = tmp_path / "p.nc"
    path.write_bytes(whole)
    with contextlib.suppress(JudgeBayesError):
        assert np.isfinite(scored(path).elpd).all()


@pytest.mark.parametrize("version", ["earliest", "latest"])
def test_whole_heaps_are_accepted(tmp_path: Path, version: str) -> None:
    """Strings of many lengths, some of them written anew, and an array that is removed."""
    path, heaps = tmp_path / "strings.h5", 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        with h5py.File(path, "w", libver=version) as file:
            for name in "ab":
                strings = file.create_dataset(name, (60,), dtype=h5py.string_dtype())
                for place, length in enumerate(rng.exponential(300, size=180).astype(int)):
                    strings[place % 60] = "x" * length
            del file["b"]
        heaps += path.read_bytes().count(HEAP)
        check_heaps(path)
    assert heaps > 8


def test_an_axis_that_was_replaced_is_refused_or_read(saved: Path, tmp_path: Path) -> None:
    """netCDF knows axes by numbers, and h5py leaves them as they are; newer readers do not use them."""
    path = tmp_path / "p.nc"
    path.write_bytes(saved.read_bytes())
    with h5py.File(path, "r+") as file:
        group = file["log_likelihood"]
        del group["label"], group["item"]
        group.create_dataset("item", data=np.arange(1)).make_scale("item")
        label = group.create_dataset("label", data=-np.ones((CHAINS, DRAWS, 1)))
        for i, name in enumerate(("chain", "draw", "item")):
            label.dims[i].attach_scale(group[name])
    try:
        read = str(scored(path).items)
    except JudgeBayesError as refusal:
        read = str(refusal)
    assert read == "('0',)" or "is not that of its axes" in read


def test_a_relative_path_that_looks_like_an_address_is_read(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(saved, "httpd.nc")
    assert np.isfinite(scored(Path("httpd.nc")).elpd).all()
