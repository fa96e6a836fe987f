"""Every estimator, map and sampler lowers for CUDA, on a machine that may have none."""

from typing import Any

import jax
import pytest
from laws.families import CALIBRATOR
from laws.laws import Runs, run
from laws.registry import CASES, Case

from judgebayes.aggregators import Davidson, DawidSkene, HierarchicalDavidson, Stacking
from judgebayes.calibrators import BayesianMap, Beta, Platt, Temperature
from judgebayes.inference import NUTS, NormalAtMode, PriorImportance

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


def lowers(case: Case, tmp_path: Any) -> None:
    given = Runs(case, False, tmp_path).given
    with jax.enable_x64(True):
        traced = jax.jit(lambda fit, new: run(case, fit, new)).trace(*given)
        assert traced.lower(lowering_platforms=("cuda",)).as_text()


@pytest.mark.parametrize("name", SAMPLED)
def test_a_posterior_of_a_map_lowers_for_cuda(name: str, tmp_path: Any) -> None:
    lowers(Case(CALIBRATOR, SAMPLED[name]), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPILED)
def test_an_estimator_lowers_for_cuda(name: str, tmp_path: Any) -> None:
    lowers(COMPILED[name], tmp_path)
