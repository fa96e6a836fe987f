"""Shared fixtures. All annotations of the library, including array shapes, are checked in tests."""

import gc
import os
from importlib.metadata import version
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "Agg")
# The matrices are small and many, so threads within one factorisation only add overhead.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Most of the time of a test is compilation of a program that runs once, on a few numbers. This saves
# two thirds of it; `JUDGEBAYES_TEST_OPTIMISED=1` tests the library as users run it: programs optimised,
# annotations not checked.
AS_USERS_RUN_IT = bool(os.environ.get("JUDGEBAYES_TEST_OPTIMISED"))
if not AS_USERS_RUN_IT:
    os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
    # The workers keep all cores busy, so compiling a program in 32 parts only adds work.
    flags = "--xla_cpu_parallel_codegen_split_count=1"
    # Versions from 0.11 on have no other emitters.
    if [int(part) for part in version("jaxlib").split(".")[:2]] < [0, 11]:
        flags += " --xla_cpu_use_fusion_emitters=false"
    os.environ.setdefault("XLA_FLAGS", flags)
# Many tests compile the same program, so compiled programs are shared over processes and runs.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".jax_cache"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.05")
# The source line of an operation only matters to readers of compiled programs.
os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")

# Tracing creates hundreds of thousands of objects, few of them garbage: collecting after every 700 takes
# a tenth of the time.
gc.set_threshold(100_000, 20, 100)

from jaxtyping import install_import_hook

if not AS_USERS_RUN_IT:
    install_import_hook("judgebayes", "typecheck.checker")

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from judgebayes.experiments.core import Run, default_data
from judgebayes.votes import Votes, from_counts

# How long Hypothesis takes to make its first examples depends on what else the machine does.
settings.register_profile("busy", suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

ROOMY, MORE = 3e9, 5e8
"""Bytes that a test process may use, and that it may add to memory that it could not free."""


SLOW = set((Path(__file__).parent / "slow.txt").read_text().splitlines())


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that `slow.txt` lists."""
    for item in items:
        if item.nodeid in SLOW:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of public data sets; without it, the test is skipped with a message."""
    folder = default_data()
    if folder is None or not folder.is_dir():
        pytest.skip("NO DATA: set JUDGEBAYES_DATA to run this test on real votes")
    return folder


@pytest.fixture(scope="session")
def real(data: Path) -> Run:
    """A run on real data."""
    return Run(data=data, splits=100)


@pytest.fixture(scope="session")
def counts() -> np.ndarray:
    """Ternary vote counts of 60 items, four votes each, some missing."""
    rng = np.random.default_rng(11)
    quality = rng.normal(size=60)
    p = np.stack([np.exp(-quality), np.full(60, 0.7), np.exp(quality)], 1)
    votes = rng.multinomial(4, p / p.sum(1, keepdims=True))
    votes[3] = 0
    votes[7] = (1, 0, 0)
    return votes


@pytest.fixture(scope="session")
def votes(counts: np.ndarray) -> Votes:
    """The counts as votes."""
    return from_counts(counts)


@pytest.fixture(scope="session")
def labels(counts: np.ndarray) -> np.ndarray:
    """Labels that follow the votes with noise; a sixth unknown."""
    rng = np.random.default_rng(12)
    margin = counts[:, 2] - counts[:, 0] + rng.normal(scale=1.5, size=60)
    labels = np.where(margin > 1, 2, np.where(margin < -1, 0, 1))
    labels[::6] = -1
    return labels


@pytest.fixture(scope="session")
def tasked(votes: Votes) -> Votes:
    """The votes with three tasks."""
    task = jnp.asarray(np.arange(60) % 3, jnp.int32)
    return Votes(votes.index, votes.score, votes.order, task, 3, 3)


@pytest.fixture(scope="module", autouse=True)
def _compiled_programs_forgotten(held: dict[str, int]) -> object:
    """Drop compiled programs of finished files before they fill the memory."""
    yield
    # Compared with the last time, because freed memory is not always returned to the system.
    if resident() > max(ROOMY, held["after"] + MORE):
        jax.clear_caches()
        held["after"] = resident()


@pytest.fixture(scope="session")
def held() -> dict[str, int]:
    """The memory of this process after it last dropped its programs."""
    return {"after": 0}


def resident() -> int:
    """Return the memory of this process in bytes, 0 on systems without /proc (Linux has it)."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGESIZE") if statm.exists() else 0


@pytest.fixture(autouse=True)
def _setting_unchanged() -> object:
    """Check that no test leaves JAX in 64-bit mode."""
    before = jax.config.jax_enable_x64
    yield
    assert jax.config.jax_enable_x64 == before
