"""Sweeps divided between processes by joblib, and resumed after a kill."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import jax
import joblib
import numpy as np
import pandas as pd
import pytest
from panels import judged

from judgebayes import BaseRate, OneCoin, Temperature
from judgebayes.errors import JudgeBayesError
from judgebayes.evaluate import sweeps
from judgebayes.evaluate.splits import random_splits
from judgebayes.evaluate.sweeps import sweep

METHODS = {"one-coin": OneCoin(), "base": BaseRate()}
RESUMED = """
import sys
import joblib
import numpy as np
import pandas as pd
import judgebayes as jb
from test_jobs import METHODS, cells

sweep = joblib.Memory(sys.argv[1], verbose=0).cache(jb.sweep)
given, tables = cells(), []
for cell in given["votes"]:
    of_cell = {name: each[cell] for name, each in given.items()}
    tables.append(sweep({"base": METHODS["base"]}, **of_cell, fit_on="calibration"))
    print(cell, flush=True)
np.save(sys.argv[2], pd.concat(tables)["value"])
"""


def cells() -> dict[str, Any]:
    """The first arguments of a sweep after the methods: three cells, two of one shape."""
    sizes = {"a": 24, "b": 24, "c": 40}
    accuracy = np.array([0.9, 0.7, 0.6])
    made = {name: judged(accuracy, n, seed=ord(name)) for name, n in sizes.items()}
    return {
        "votes": {name: votes for name, (votes, _) in made.items()},
        "labels": {name: labels for name, (_, labels) in made.items()},
        "splits": {
            name: random_splits(n, splits=5, calibration=n // 2) for name, n in sizes.items()
        },
    }


def swept(**how: Any) -> pd.DataFrame:
    maps = {"temperature": Temperature()}
    return sweep(
        METHODS, **cells(), fit_on="calibration", calibrators=maps, metrics=("nll", "mae"), **how
    )


def assert_same(one: pd.DataFrame, other: pd.DataFrame) -> None:
    """Check that tables agree to the last bit."""
    pd.testing.assert_frame_equal(one, other, check_exact=True)


@pytest.fixture(scope="module")
def in_turn() -> pd.DataFrame:
    return swept(n_jobs=1)


def test_threads_that_the_user_chose_give_the_result_of_one_job(
    in_turn: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks, of_cell = list[int](), sweeps._of_cell

    def counted(*args: Any) -> Any:
        tasks.append(threading.get_ident())
        return of_cell(*args)

    monkeypatch.setattr(sweeps, "_of_cell", counted)
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert_same(swept(), in_turn)
    assert len(tasks) == 6  # a method on a cell each
    assert threading.get_ident() not in tasks


def test_cells_in_turn_are_those_of_one_program(in_turn: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(swept(), in_turn, check_exact=False, rtol=1e-9)


@pytest.mark.slow
def test_processes_give_the_result_of_one_job(in_turn: pd.DataFrame) -> None:
    assert_same(swept(n_jobs=2), in_turn)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of Dask
def test_a_dask_cluster_gives_the_result_of_processes() -> None:
    distributed = pytest.importorskip(
        "distributed", reason="Dask is not installed; `pip install --group cluster` brings it."
    )
    processes = swept(n_jobs=2)
    local = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
    )
    with local as cluster, distributed.Client(cluster), joblib.parallel_config(backend="dask"):
        assert_same(swept(), processes)


def test_devices_and_jobs_exclude_each_other() -> None:
    said = "leave out `devices`, or `n_jobs` and joblib's"
    with pytest.raises(JudgeBayesError, match=said):
        swept(n_jobs=1, devices=jax.devices())
    with joblib.parallel_config(n_jobs=2), pytest.raises(JudgeBayesError, match=said):
        swept(devices=jax.devices())


def test_a_killed_sweep_goes_on_where_joblib_remembers_its_cells(tmp_path: Path) -> None:
    """As the guide says: a call per cell, remembered in a folder."""

    def remembered() -> dict[Path, int]:
        return {f: f.stat().st_mtime_ns for f in tmp_path.rglob("output.pkl")}

    folders = [str(Path(__file__).parent), str(Path(__file__).parents[1]), *sys.path]
    command = [sys.executable, "-c", RESUMED, str(tmp_path), str(tmp_path / "values.npy")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(folders)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"a\n"
        process.kill()
    before = remembered()
    assert 1 <= len(before) < 3
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    assert before.items() <= remembered().items()
    assert len(remembered()) == 3
    whole = sweep({"base": METHODS["base"]}, **cells(), fit_on="calibration", n_jobs=1)
    np.testing.assert_array_equal(np.load(tmp_path / "values.npy"), whole["value"])
