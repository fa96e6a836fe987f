"""Posteriors in files that were changed: one sentence each, and no memory for what they claim."""

import contextlib
import io
import json
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest

from judgebayes.errors import JudgeBayesError
from judgebayes.inference import posterior
from judgebayes.inference.posterior import REST
from judgebayes.inference.problem import Chains

CHAINS, DRAWS, ITEMS = 2, 50, 6
LABEL, A = "log_likelihood/label", "posterior/a"

Arrays = dict[str, np.ndarray]


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
        {"log_likelihood": {"label": -rng.exponential(size=(*shape, ITEMS))}},
        coords={"item": [f"i{n}" for n in range(ITEMS)]},
        dims={"label": ["item"]},
        attributes={"model": "m", "seed": 3},
    )
    path = tmp_path_factory.mktemp("posterior") / "p.npz"
    posterior.save(data, path)
    return path


def scored(path: Path) -> pd.DataFrame:
    return posterior.leave_one_out(posterior.load(path), "label")


def test_an_unchanged_posterior_is_scored(saved: Path) -> None:
    loo = scored(saved)
    assert loo.index.tolist() == [f"i{n}" for n in range(ITEMS)]
    assert np.isfinite(loo.elpd).all()
    attributes = posterior.load(saved).attrs
    assert (attributes["model"], attributes["seed"]) == ("m", 3)


def one_value(name: str, value: float) -> Callable[[Arrays], None]:
    def change(arrays: Arrays) -> None:
        arrays[name][0, 0] = value

    return change


def other(name: str, values: object) -> Callable[[Arrays], None]:
    return lambda arrays: arrays.__setitem__(name, np.asarray(values))


def an_item_twice(arrays: Arrays) -> None:
    rest = json.loads(arrays[REST].tobytes())
    rest["coords"]["log_likelihood"]["item"][1] = "i0"
    arrays[REST] = np.frombuffer(json.dumps(rest).encode(), np.uint8)


def json_of(value: object) -> Callable[[Arrays], None]:
    return other(REST, np.frombuffer(json.dumps(value).encode(), np.uint8))


CHANGES: dict[str, Callable[[Arrays], object]] = {
    "no posterior": lambda arrays: arrays.pop(A),
    "draws of text": other(A, np.full((CHAINS, DRAWS), "x")),
    "draws that are pickled": other(A, np.full((CHAINS, DRAWS), None)),
    "one draw": other(A, 1.0),
    "other chains": other(A, np.zeros((3, 50))),
    "an array without axes": other("posterior/b", np.zeros((CHAINS, DRAWS))),
    "NaN": one_value(LABEL, np.nan),
    "infinite": one_value(LABEL, np.inf),
    "never": one_value(LABEL, -np.inf),
    "a probability above 1": one_value(LABEL, 3.0),
    "other items": other(LABEL, np.zeros((2, 50, 7))),
    "an item twice": an_item_twice,
    "an infinite draw": one_value(A, -np.inf),
    "a draw that is NaN": one_value(A, np.nan),
    "a bomb": other("posterior/b", np.zeros((CHAINS, DRAWS, 250_000))),
    "no JSON": lambda arrays: arrays.pop(REST),
    "JSON of something else": json_of([1]),
    "JSON without axes": json_of({"coords": {}, "attributes": {}}),
    "axes of something else": json_of({"coords": {}, "attributes": {}, "axes": 3}),
}


@pytest.mark.parametrize("how", CHANGES)
def test_a_changed_posterior_is_refused(saved: Path, tmp_path: Path, how: str) -> None:
    path = tmp_path / "p.npz"
    with np.load(saved) as content:
        arrays = dict(content)
    CHANGES[how](arrays)
    with path.open("wb") as file:
        np.savez_compressed(file, allow_pickle=True, **arrays)
    del arrays
    tracemalloc.start()
    with pytest.raises(JudgeBayesError):
        scored(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6


@pytest.mark.parametrize("shape", ["(9, 10000000000)", "(2, 49)"])
def test_an_array_that_claims_another_size_is_refused(
    saved: Path, tmp_path: Path, shape: str
) -> None:
    path, content = tmp_path / "p.npz", io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": eval(shape)}
    np.lib.format.write_array_header_1_0(content, header)
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
        new.writestr("posterior/b.npy", content.getvalue() + bytes(8 * CHAINS * DRAWS))
    with pytest.raises(JudgeBayesError, match="is damaged, or no posterior"):
        posterior.load(path)


@pytest.mark.parametrize("place", range(4, 4000, 90))
def test_flipped_bytes_end_in_a_sentence_or_in_finite_scores(
    saved: Path, tmp_path: Path, place: int
) -> None:
    whole = bytearray(saved.read_bytes())
    whole[place] ^= 0xFF
    path = tmp_path / "p.npz"
    path.write_bytes(whole)
    with contextlib.suppress(JudgeBayesError):
        assert np.isfinite(scored(path).elpd).all()


def test_netcdf_is_an_export(saved: Path, tmp_path: Path) -> None:
    pytest.importorskip("h5netcdf")
    import arviz

    path = tmp_path / "p.nc"
    posterior.save(posterior.load(saved), path)
    exported = arviz.from_netcdf(str(path))
    with np.load(saved) as content:
        np.testing.assert_array_equal(exported["posterior"]["a"].to_numpy(), content[A])
    with pytest.raises(JudgeBayesError, match="is netCDF, which is written for other programs"):
        posterior.load(path)


def test_a_missing_package_is_named(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posterior, "ENGINE", "h5netcdf_of_nobody")
    with pytest.raises(JudgeBayesError, match=r"pip install 'judgebayes\[netcdf\]'"):
        posterior.save(posterior.load(saved), tmp_path / "p.nc")
