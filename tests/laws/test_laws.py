"""Every estimator obeys every law, or the registry has a reason why not."""

import dataclasses
import importlib
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import pytest
from laws.laws import LAWS, Runs
from laws.registry import CASES

HOLDS = "holds"
each = pytest.mark.parametrize("name", list(CASES))


def outcomes(name: str, thorough: bool, folder: Path) -> dict[str, str]:
    """Return the outcome of each law: that it holds, the reason why not, or the failure."""
    case, results = CASES[name], {}
    runs = Runs(case, thorough, folder)
    for law, (holds, slow, more) in LAWS.items():
        if law in case.reasons:
            results[law] = case.reasons[law]
            continue
        if not thorough and (slow or (more and case.costly)):
            continue
        results[law] = outcome(holds, runs, case.breaks.get(law))
    return results


def outcome(holds: Callable[[Runs], None], runs: Runs, why: str | None) -> str:
    """Return that a law holds, or its failure; if a failure is expected, the reason."""
    try:
        holds(runs)
    except AssertionError as error:
        return why or f"BROKEN: {error}"[:1000]
    except Exception as error:
        return f"BROKEN: {type(error).__name__}: {error}"[:1000]
    return HOLDS if why is None else f"BROKEN: it holds, but should not: {why}"


def obeys(name: str, thorough: bool, folder: Path) -> dict[str, str]:
    """Return the outcomes, computed in double precision."""
    with jax.enable_x64(True):
        return outcomes(name, thorough, folder)


def broken(results: dict[str, str]) -> str:
    """Return the broken laws, one per line."""
    return "\n".join(f"{law}: {text}" for law, text in results.items() if text.startswith("BROKEN"))


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if not case.slow_only])
def test_an_estimator_obeys_the_laws(
    name: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    results = obeys(name, False, tmp_path)
    record_property("laws", results)
    assert not broken(results), broken(results)


@pytest.mark.slow
@each
def test_an_estimator_obeys_the_laws_at_all_classes_and_uncompiled(
    name: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    results = obeys(name, True, tmp_path)
    record_property("laws", results)
    assert not broken(results), broken(results)


PUBLIC = (
    "",
    ".generators",
    ".item_response",
    ".majority",
    ".panel.judges",
)
NO_ESTIMATORS = {
    "Labelling": "collects labels and fits `Stratified`",
    "SplitCurve": "takes splits, not arrays; its laws are in tests/majority/test_split_curve.py",
    "SklearnCalibrator": "wraps a map; `fit` changes it, as in scikit-learn",
}


def parts(value: Any) -> Iterator[Any]:
    """Yield a value and all values that it contains."""
    yield value
    if dataclasses.is_dataclass(value):
        for each in dataclasses.fields(value):
            yield from parts(getattr(value, each.name))
    if isinstance(value, tuple):
        for each in value:
            yield from parts(each)


def test_every_estimator_of_the_public_api_is_in_the_registry() -> None:
    modules = [importlib.import_module(f"judgebayes{name}") for name in PUBLIC]
    public = {n: getattr(m, n) for m in modules for n in getattr(m, "__all__", ["Curated"])}
    learns = {
        name
        for name, value in public.items()
        if inspect.isclass(value)
        and not getattr(value, "_is_protocol", False)
        and (hasattr(value, "fit") or hasattr(value, "choose"))
    }
    learns |= {"mean_prediction", "logit_shift", "rogan_gladen", "as_published", "true_minimum"}
    estimators = [value for case in CASES.values() for value in parts(case.estimator)]
    tested = {type(value).__name__ for value in estimators} | {
        value.__name__ for value in estimators if inspect.isfunction(value)
    }
    tested |= {
        name for name in ("as_published", "true_minimum") if f"{name}_from_one_start" in tested
    }
    assert learns - tested == set(NO_ESTIMATORS)


def test_a_law_that_is_excused_exists() -> None:
    excused = {law for case in CASES.values() for law in (*case.reasons, *case.breaks)}
    assert excused <= set(LAWS)
    assert all(not set(case.reasons) & set(case.breaks) for case in CASES.values())
