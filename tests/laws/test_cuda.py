"""Every estimator, map and sampler lowers for CUDA, also on a machine without it."""

from dataclasses import replace
from typing import Any

import jax
import pytest
from laws.families import CALIBRATOR
from laws.laws import Runs, run
from laws.registry import CASES, Case

from judgebayes import (
    BayesianMap,
    Beta,
    Davidson,
    DawidSkene,
    HierarchicalDavidson,
    Platt,
    Stacking,
    Temperature,
)
from judgebayes.experiments.betaconform.importance import PriorImportance
from judgebayes.inference import NUTS, NormalAtMode

SAMPLER = NUTS(draws=20, warmup=20, chains=2)
SAMPLED = {
    f"{type(own).__name__}, {inference}": BayesianMap(own, inference)
    for own in (Temperature(), Platt(), Beta())
    for inference in (NormalAtMode(), NormalAtMode(weighted=True), SAMPLER, PriorImportance())
}
AGGREGATORS = (
    Davidson(SAMPLER),
    HierarchicalDavidson(SAMPLER),
    Stacking(SAMPLER),
    DawidSkene(SAMPLER),
)
COMPILED = {name: case for name, case in CASES.items() if case.family.compiled} | {
    f"{type(own).__name__}, NUTS": Case(CASES["davidson"].family, own) for own in AGGREGATORS
}


def lowered(case: Case, tmp_path: Any) -> str:
    """Return the program, lowered for CUDA."""
    inputs = Runs(case, False, tmp_path).inputs
    with jax.enable_x64(True):
        traced = jax.jit(lambda fit, new: run(case, fit, new)).trace(*inputs)
        return str(traced.lower(lowering_platforms=("cuda",)).as_text())


def test_what_cuda_cannot_run_is_detected(tmp_path: Any) -> None:
    def fit(estimator: Any, inputs: Any) -> Any:
        result = CALIBRATOR.fit(estimator, inputs)
        decomposed = jax.lax.linalg.schur(jax.numpy.eye(2))[0]  # implemented for the CPU only
        objective = result.details["objective"] + decomposed[0, 0]
        return replace(result, details={"objective": objective})

    def answer(fitted: Any, new: Any) -> Any:
        return {"objective": fitted.details["objective"]}

    family = replace(CALIBRATOR, fit=fit, answer=answer)
    with pytest.raises(NotImplementedError, match="not found for platform cuda"):
        lowered(Case(family, Temperature()), tmp_path)


@pytest.mark.parametrize(
    "name",
    # By default every map with one sampler, and every sampler with one map.
    [
        pytest.param(
            name,
            marks=[]
            if isinstance(own.calibrator, Platt) or own.inference == NormalAtMode()
            else [pytest.mark.slow],
        )
        for name, own in SAMPLED.items()
    ],
)
def test_a_posterior_of_a_map_lowers_for_cuda(name: str, tmp_path: Any) -> None:
    assert "func.func public @main" in lowered(Case(CALIBRATOR, SAMPLED[name]), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPILED)
def test_an_estimator_lowers_for_cuda(name: str, tmp_path: Any) -> None:
    assert "func.func public @main" in lowered(COMPILED[name], tmp_path)
