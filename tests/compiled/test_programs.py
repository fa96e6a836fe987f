"""Programs stored for later processes, and numbers of compilations."""

import contextlib
import importlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from panels import judged

from judgebayes import priors
from judgebayes.aggregators import BaseRate, Calibrated, Davidson, DawidSkene, OneCoin, Stacking
from judgebayes.aggregators.base import Aggregator
from judgebayes.calibrators import Beta, Identity
from judgebayes.compiled import digest, programs
from judgebayes.compiled.float64 import in_float64
from judgebayes.compiled.programs import cached_export
from judgebayes.evaluate.batches import _keys
from judgebayes.evaluate.one_split import Evaluation
from judgebayes.evaluate.splits import random_splits
from judgebayes.evaluate.sweeps import evaluate_calibrators, evaluate_splits
from judgebayes.inference import DRPS, MAP
from judgebayes.measures.decide import absolute_loss, bayes_action
from judgebayes.measures.scores import accuracy, ece
from judgebayes.votes import Votes

COMPILED = "/jax/core/compile/backend_compile_duration"


class Compilations:
    """The number of programs compiled since the last call."""

    def __init__(self) -> None:
        self.number = 0

    def seen(self, event: str, _: float, **_more: object) -> None:
        self.number += event == COMPILED

    def during(self, run: Callable[[], object]) -> int:
        before = self.number
        jax.block_until_ready(run())
        return self.number - before


@pytest.fixture
def compilations() -> Iterator[Compilations]:
    events = Compilations()
    jax.monitoring.register_event_duration_secs_listener(events.seen)
    yield events
    jax.monitoring.unregister_event_duration_listener(events.seen)


def davidson(alpha: float, noise: float) -> Aggregator:
    return Davidson(DRPS(starts=1), alpha=alpha, label_noise=noise)


def one_coin(alpha: float, noise: float) -> Aggregator:
    return Calibrated(
        OneCoin(priors.OneCoin((alpha, 1.0)), label_noise=noise),
        Beta(label_noise=noise),
        cross_fit=2,
    )


def dawid_skene(alpha: float, noise: float) -> Aggregator:
    del alpha
    return DawidSkene(label_noise=noise)


def stacking(alpha: float, noise: float) -> Aggregator:
    return Stacking(prior=priors.Stacking(kappa=alpha), label_noise=noise)


METHODS = (davidson, one_coin, dawid_skene, stacking)
methods = pytest.mark.parametrize("make", METHODS)


def panel(items: int, seed: int) -> tuple[Votes, np.ndarray]:
    return judged(np.array([0.9, 0.75, 0.6]), items, samples=2, missing=0.1, seed=seed)


def test_compilations_are_counted(compilations: Compilations) -> None:
    assert compilations.during(lambda: jax.jit(lambda x: x + 1)(jnp.ones(3))) > 0


def test_small_functions_are_one_program_outside_compiled_code(
    compilations: Compilations,
) -> None:
    rng = np.random.default_rng(0)
    log_probs = np.log(rng.dirichlet(np.ones(3), 53))
    labels, loss = rng.integers(0, 3, 53), absolute_loss(3)
    votes, _ = panel(53, 3)
    some = np.arange(7)
    assert compilations.during(lambda: bayes_action(log_probs, loss)) == 1
    assert compilations.during(lambda: accuracy(labels, labels)) == 1
    assert compilations.during(lambda: ece(log_probs, labels)) == 1
    assert compilations.during(votes.counts) == 1
    assert compilations.during(lambda: votes.take(some)) == 1


@methods
def test_a_sweep_compiles_once_for_all_splits_tables_values_and_numbers_of_votes(
    make: Callable[[float, float], Aggregator], compilations: Compilations
) -> None:
    tables = {items: panel(items, items) for items in (47, 48)}
    first = tables[48][0].first(1)
    _keys.cache_clear()  # or seeds used in other tests need no new program, but the last one does

    def run(items: int, seed: int, alpha: float, noise: float, n: int = 2) -> object:
        votes, labels = tables[items]
        splits = random_splits(items, splits=3, calibration=30, seed=seed)
        votes = votes if n == 2 else first
        return evaluate_splits(
            make(alpha, noise), votes, labels, splits, fit_on="calibration", seed=seed
        )

    run(48, 0, 1.0, 0.0)
    assert compilations.during(partial(run, 48, 0, 1.0, 0.0)) == 0  # the same again
    assert compilations.during(partial(run, 48, 1, 2.0, 0.05)) == 0  # other splits and values
    assert compilations.during(partial(run, 48, 1, 2.0, 0.05, n=1)) == 0
    assert (
        compilations.during(partial(run, 47, 2, 1.0, 0.0)) == 0
    )  # another table, same padded size


@methods
def test_a_fit_compiles_once_for_all_values_seeds_and_hyperparameters(
    make: Callable[[float, float], Aggregator], compilations: Compilations
) -> None:
    tables = [panel(40, seed) for seed in range(3)]

    def run(seed: int, alpha: float, noise: float) -> object:
        votes, labels = tables[seed]
        return make(alpha, noise).fit(votes, labels, key=jax.random.key(seed))

    run(0, 1.0, 0.0)
    assert compilations.during(partial(run, 0, 1.0, 0.0)) == 0
    assert compilations.during(partial(run, 1, 1.0, 0.0)) == 0
    assert compilations.during(partial(run, 2, 1.7, 0.05)) == 0


TRACED: list[str] = []


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Line:
    slope: jax.Array | float
    offset: jax.Array | float
    name: str = field(default="a", metadata={"static": True})


@partial(jax.jit, static_argnames="power")
def shifted_line(line: Line, x: jax.Array, key: jax.Array, power: int) -> tuple[Line, jax.Array]:
    TRACED.append(line.name)
    y = line.slope * x**power + line.offset + jax.random.normal(key, x.shape)
    return Line(y.mean(), line.offset, line.name), y


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(programs.FOLDER, str(tmp_path))
    # Programs with functions and classes of this file are stored, as are those of the package.
    monkeypatch.setattr(digest, "OWN", {*digest.OWN, __name__.partition(".")[0]})
    forget(monkeypatch)
    return tmp_path


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Act as a new process: nothing is loaded, nothing traced."""
    monkeypatch.setattr(programs, "LOADED", {})
    shifted_line.clear_cache()
    TRACED.clear()


@in_float64
def call(line: Line, seed: int = 0, size: int = 5, power: int = 2) -> tuple[Line, jax.Array]:
    return cached_export(
        shifted_line, line, jnp.arange(size) / 7, jax.random.key(seed), power=power
    )


@in_float64
def plainly(line: Line, seed: int = 0, size: int = 5, power: int = 2) -> tuple[Line, jax.Array]:
    return shifted_line(line, jnp.arange(size) / 7, jax.random.key(seed), power=power)


def same(one: tuple[Line, jax.Array], other: tuple[Line, jax.Array]) -> bool:
    assert jax.tree.structure(one) == jax.tree.structure(other)
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.allclose(a, b, rtol=1e-14, atol=0) for a, b in pairs)


def test_a_cached_program_returns_what_the_function_does(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert same(call(Line(2.0, 0.5)), plainly(Line(2.0, 0.5)))
    forget(monkeypatch)
    for slope, seed in ((2.0, 0), (3.0, 0), (3.0, 4)):
        result = call(Line(slope, 0.5), seed)
        assert TRACED == []  # values and seeds do not matter: the program was read, not traced
        assert same(result, plainly(Line(slope, 0.5), seed))
        TRACED.clear()
    assert len(list(folder.iterdir())) == 1


def test_threads_that_need_the_same_program_make_it_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, written = threading.Barrier(2), []
    write = programs._write

    def slowly(path: Path, *content: Any) -> None:
        written.append(path)
        time.sleep(0.3)  # the other thread is here by now
        write(path, *content)

    monkeypatch.setattr(programs, "_write", slowly)
    twice = jax.jit(lambda x: 2 * x)

    def call(number: float) -> float:
        started.wait()
        return float(cached_export(twice, jnp.asarray(number)))

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(call, (1.0, 2.0))) == [2.0, 4.0]
    assert len(written) == 1
    assert len(list(folder.glob("*.program"))) == 1


@pytest.mark.parametrize(
    ("line", "change"),
    [
        (Line(2.0, 0.5), {"size": 6}),
        (Line(2.0, 0.5), {"power": 3}),
        (Line(2.0, 0.5, "b"), {}),
        (Line(jnp.ones(5), 0.5), {}),
    ],
)
def test_another_shape_structure_or_static_value_is_another_program(
    folder: Path, line: Line, change: dict[str, int]
) -> None:
    call(Line(2.0, 0.5))
    assert same(call(line, **change), plainly(line, **change))
    assert len(list(folder.iterdir())) == 2


def test_other_source_or_versions_make_another_program(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call(Line(2.0, 0.5))
    monkeypatch.setattr(digest, "source_digest", lambda: "other")
    forget(monkeypatch)
    call(Line(2.0, 0.5))
    assert len(list(folder.iterdir())) == 2
    assert TRACED == ["a"]


def test_other_settings_of_jax_make_another_program(folder: Path) -> None:
    highest = partial(jax.default_matmul_precision, "highest")
    for settings in (contextlib.nullcontext, highest, contextlib.nullcontext, highest):
        with settings():
            call(Line(2.0, 0.5))
    assert len(list(folder.iterdir())) == 2


SCORE = """
import jax.numpy as jnp
from helper import FACTOR

def score(log_probs, label):
    return -{factor} * FACTOR * log_probs[label]
"""


def test_an_edited_score_or_its_helper_changes_the_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files of a later process differ; the stored program knew only those of pytree classes."""
    monkeypatch.setenv(programs.FOLDER, str(tmp_path / "programs"))
    monkeypatch.syspath_prepend(str(tmp_path))
    votes, labels = panel(40, 0)
    splits = random_splits(40, splits=2, calibration=30)

    def answers(factor: float, of_helper: float) -> np.ndarray:
        for name, text in {
            "score_of_a_user": SCORE.format(factor=factor),
            "helper": f"FACTOR = {of_helper}",
        }.items():
            (tmp_path / f"{name}.py").write_text(text)
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        shutil.rmtree(tmp_path / "__pycache__", ignore_errors=True)
        forget(monkeypatch)
        score = importlib.import_module("score_of_a_user").score
        method = Davidson(MAP(score=score, starts=1))
        return np.asarray(
            evaluate_splits(method, votes, labels, splits, fit_on="calibration").log_probs
        )

    first = answers(1.0, 1.0)
    np.testing.assert_allclose(answers(1.0, 1.0), first)
    for other in ((0.2, 1.0), (1.0, 0.2)):
        changed = answers(*other)
        assert np.abs(changed - first).max() > 0.01
    assert not (tmp_path / "programs").exists()


def test_a_damaged_file_or_an_unwritable_folder_is_no_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = plainly(Line(2.0, 0.5))
    call(Line(2.0, 0.5))
    (file,) = folder.iterdir()
    file.write_bytes(file.read_bytes()[:100])
    forget(monkeypatch)
    assert same(call(Line(2.0, 0.5)), expected)
    assert TRACED == ["a"]
    monkeypatch.setenv(programs.FOLDER, str(file / "inside a file"))
    assert same(call(Line(2.0, 0.5)), expected)


def test_a_program_with_any_changed_bit_is_made_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = plainly(Line(2.0, 0.5))
    call(Line(2.0, 0.5))
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    for place in np.linspace(0, len(whole) - 1, 12).astype(int):
        changed = bytearray(whole)
        changed[place] ^= 1 << int(place % 8)
        file.write_bytes(changed)
        forget(monkeypatch)
        assert same(call(Line(2.0, 0.5)), expected)
        assert TRACED == ["a"]


def test_the_structure_of_a_result_survives_json() -> None:
    form = {"a": (Line(programs.Leaf, 0.5, "*"), [None, True]), "b": Line(programs.Leaf, 1, "c")}
    assert programs.from_json(json.loads(json.dumps(programs.to_json(form)))) == form
    with pytest.raises(TypeError):
        programs.to_json(Line(programs.Leaf, 0.5, print))  # type: ignore[arg-type]


def test_a_new_program_replaces_the_least_recently_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "MOST_FILES", 2)
    call(Line(2.0, 0.5))
    (first,) = folder.iterdir()
    os.utime(first, (1000, 1000))
    second = folder / f"second{programs._source_tag()}0{programs.SUFFIX}"
    second.touch()
    os.utime(second, (2000, 2000))
    forget(monkeypatch)
    call(Line(2.0, 0.5))  # read, and so used last
    assert TRACED == []
    call(Line(2.0, 0.5), size=6)
    assert first.exists()
    assert not second.exists()
    assert len(list(folder.iterdir())) == 2


@jax.jit
def with_a_function(x: jax.Array) -> Line:
    TRACED.append("function")
    return Line(x, x, abs)  # type: ignore[arg-type]


def test_a_result_without_a_json_form_is_not_stored(folder: Path) -> None:
    for _ in range(2):
        assert cached_export(with_a_function, jnp.ones(2)).name is abs
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    "encoded",
    [
        {"class": ["os", "system"], "fields": {"command": {"value": "exit 3"}}},
        {"class": ["subprocess", "Popen"], "fields": {"args": {"value": "true"}}},
        {"class": ["a module that is not there", "Line"], "fields": {}},
    ],
)
def test_a_file_can_only_create_dataclasses(encoded: dict[str, object]) -> None:
    with pytest.raises((TypeError, KeyError)):
        programs.from_json(encoded)


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str], str]:
    """The folder of programs of two processes, the values that they print, and the second's digest."""
    folder = tmp_path_factory.mktemp("programs")
    values = (
        "import jax, jax.numpy as jnp; from judgebayes.compiled.programs import cached_export;"
        "values = jax.jit(jnp.linalg.eigvalsh); print(cached_export(values, jnp.diag(jnp.arange(3.0))))"
    )
    of_method = (
        "; from judgebayes.aggregators import Davidson;"
        "from judgebayes.compiled import digest, programs;"
        "tree = jax.tree.structure((Davidson(), {'b': 1, 'a': 2}));"
        "print(digest.digest_of(None, 'x', programs._blank(tree), [((3,), 'int8')], {}))"
    )
    printed = []
    for number, script in enumerate((values, values + of_method)):
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            env={**os.environ, programs.FOLDER: str(folder), "PYTHONHASHSEED": str(number)},
        )
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout.splitlines())
    return folder, [lines[0] for lines in printed], printed[1][1]


def test_a_later_process_runs_a_cached_factorisation(
    processes: tuple[Path, list[str], str],
) -> None:
    folder, values, _ = processes
    assert len(list(folder.glob("*.program"))) == 1
    assert values == ["[0. 1. 2.]"] * 2


def test_nothing_is_stored_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(programs.FOLDER, raising=False)
    monkeypatch.chdir(tmp_path)
    assert same(call(Line(2.0, 0.5)), plainly(Line(2.0, 0.5)))
    assert list(tmp_path.iterdir()) == []


def test_a_sweep_by_cached_programs_is_the_sweep(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    votes, labels = panel(48, 0)
    splits = random_splits(48, splits=3, calibration=30)
    maps = {"raw": Identity(), "again": Identity()}

    def run() -> dict[str, Evaluation]:
        return evaluate_calibrators(BaseRate(), maps, votes, labels, splits, fit_on="all", seed=3)

    result = run()
    assert len(list(folder.iterdir())) == 2  # one for the aggregator, one for both maps
    monkeypatch.delenv(programs.FOLDER)
    for own, other in zip(jax.tree.leaves(result), jax.tree.leaves(run()), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-10)


def test_the_digest_of_a_method_is_that_of_another_process(
    processes: tuple[Path, list[str], str],
) -> None:
    tree = jax.tree.structure((Davidson(), {"b": 1, "a": 2}))
    assert digest.digest_of(None, "x", programs._blank(tree), [((3,), "int8")], {}) == processes[2]
