"""Priors: immutable, used or rejected, and equal in the models, the methods and the command line."""

import dataclasses
import inspect
import json
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from laws import registry
from laws.data import drawn
from laws.families import AGGREGATOR, ITEMS_OF_GENERATORS, PRECISION

import judgebayes as jb
from judgebayes import inference
from judgebayes.aggregators.dawid_skene import EM
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.experiments.betaconform.binomial import Binomial
from judgebayes.experiments.betaconform.importance import PriorImportance
from judgebayes.experiments.betaconform.paper_em import PaperEM
from judgebayes.experiments.beyond_consensus.item_level import ItemLevel
from judgebayes.experiments.beyond_consensus.regression import as_published
from judgebayes.experiments.beyond_consensus.true_minimum import true_minimum
from judgebayes.experiments.distribution_calibrated.minimum_loss import MinimumLoss
from judgebayes.generators import Panel
from judgebayes.generators.labelling import Stratified
from judgebayes.inference.problem import USE_PRIOR
from judgebayes.majority import BetaBinomial, SplitCurve, Thinning
from judgebayes.measures.scores import drps, nll
from judgebayes.votes import Classes
from judgebayes.workflow.fit_file import SavedFit, load_fit, profile, save_fit

INFERENCES = {
    "drps": jb.DRPS(starts=1),
    "ml": jb.MinimumScore(nll, starts=1),
    "loss": MinimumLoss(candidates=64),
    "map": jb.MAP(starts=1),
    "drps with prior": jb.MAP(temperature=0.5, score=drps, starts=1),
    "nuts": jb.NUTS(draws=20, warmup=20, chains=2),
    "normal": inference.NormalAtMode(draws=20),
    "importance": PriorImportance(draws=500, kept=50),
}
NO_PRIOR = ("drps", "ml", "loss")
OWN = {
    jb.DawidSkene: {"em": EM(), "nuts": INFERENCES["nuts"]},
    jb.SharedDifficulty: {"em": jb.SharedDifficulty().inference, "nuts": INFERENCES["nuts"]},
    jb.Stacking: {
        "laplace": jb.Laplace(),
        "nuts": INFERENCES["nuts"],
    },
}
"""Methods with their own inferences."""
BOUNDED = ("mixture", "pooled")
"""Methods whose parameters have bounds, which a normal at the mode ignores."""
METHODS = {
    name: case
    for name, case in registry.CASES.items()
    if "prior" in getattr(case.estimator, "__dataclass_fields__", ())
}


def shifted(prior: Any) -> Any:
    """Return a prior with all numbers changed."""
    return jax.tree.map(lambda x: x + 0.5, prior)


def pairs() -> list[Any]:
    """Return all pairs of method and inference; those that take long are marked slow."""
    pairs_of_fits = []
    for name, case in METHODS.items():
        own: dict[str, Any] = OWN.get(type(case.estimator), INFERENCES)
        if isinstance(case.estimator, jb.ItemResponse):
            own = INFERENCES | {"mode": None} if name == "irt" else {"mode": None}
        if not hasattr(case.estimator, "inference"):
            own = {"closed form": None}
        for how, each in own.items():
            if how == "normal" and name in BOUNDED:
                continue
            quick = how in NO_PRIOR or not case.costly or (name == "mixture" and how == "map")
            marks = [] if quick and how != "nuts" else [pytest.mark.slow]
            pairs_of_fits.append(pytest.param(name, each, marks=marks, id=f"{name}, {how}"))
    return pairs_of_fits


@pytest.mark.parametrize(("name", "how"), pairs())
@in_float64
def test_another_prior_is_used_or_rejected(name: str, how: Any) -> None:
    case = METHODS[name]
    family, change = (
        case.family,
        {} if not hasattr(case.estimator, "inference") else {"inference": how},
    )
    usual = dataclasses.replace(case.estimator, **change)
    given = family.takes(drawn(case.n_classes[0]))
    prior = shifted(jb.priors.DawidSkene() if usual.prior is None else usual.prior)
    # Scores are not defined for models of generators, which raise an error.
    scored = family in (PRECISION, ITEMS_OF_GENERATORS) and getattr(how, "score", None) is not None
    if scored or not getattr(how, "uses_prior", True):
        with pytest.raises(JudgeBayesError, match="MAP"):
            family.fit(dataclasses.replace(usual, prior=prior), given)
        return
    methods = usual, dataclasses.replace(usual, prior=prior)
    answers = [family.answer(family.fit(one, given), given) for one in methods]
    one, two = (np.concatenate([np.ravel(x) for x in jax.tree.leaves(a)]) for a in answers)
    assert np.isfinite(two).all()
    assert np.abs(one - two).max() > 1e-4


@pytest.mark.parametrize("how", NO_PRIOR)
@pytest.mark.parametrize(
    ("method", "prior"),
    [
        (jb.Davidson, jb.priors.Davidson(beta=(0.1, 0.5))),
        (jb.HierarchicalDavidson, jb.priors.HierarchicalDavidson(differ=2.0)),
        (BetaBinomial, jb.priors.BetaBinomial(share=(1, 1))),
        (SplitCurve, jb.priors.SplitCurve(slope=(1, 1))),
        (jb.ItemResponse, jb.priors.ItemResponse(difficulty=(0, 1))),
    ],
)
def test_the_error_for_an_ignored_prior_names_inferences_that_use_it(
    how: str, method: Any, prior: Any
) -> None:
    with pytest.raises(JudgeBayesError, match="does not use the prior") as refused:
        method(inference=INFERENCES[how], prior=prior)
    assert all(name in str(refused.value) for name in USE_PRIOR)
    assert method(inference=INFERENCES[how], prior=type(prior)()).prior == type(prior)()
    assert method(inference=jb.MAP(), prior=prior).prior == prior


def test_methods_without_a_prior_do_not_accept_one() -> None:
    """P4's regressions, P3's EM, the Binomial: the argument is unknown instead of ignored."""
    makers = {as_published, true_minimum, PaperEM, Binomial, Thinning}
    makers |= {type(case.estimator) for n, case in registry.CASES.items() if n not in METHODS}
    for make in makers:
        assert "prior" not in inspect.signature(make).parameters, make


@pytest.mark.parametrize("name", jb.priors.__all__)
def test_a_prior_is_frozen_and_is_that_of_the_method_of_its_name(name: str) -> None:
    kind = getattr(jb.priors, name)
    prior = kind()
    with pytest.raises(AttributeError):
        setattr(prior, kind._fields[0], 1)
    makers = {m.__name__: m for m in (BetaBinomial, SplitCurve, Panel, Stratified)}
    makers |= {"ItemLevel": ItemLevel}
    # Dawid and Skene's judges are pooled or not, which the labels decide if there is no prior.
    makers |= {n: partial(jb.DawidSkene, prior=kind()) for n in ("DawidSkene", "PooledDawidSkene")}
    method = makers[name] if name in makers else getattr(jb, name)
    given = (jb.Platt(),) if name == "BayesianMap" else ()
    assert method(*given).prior == prior


@pytest.mark.parametrize(
    "method",
    [
        jb.Davidson(jb.MAP(starts=1), prior=jb.priors.Davidson(beta=(0.1, 0.5))),
        jb.OneCoin(jb.priors.OneCoin((8.0, 2.0))),
        jb.DawidSkene(prior=jb.priors.DawidSkene(right=9.0)),
        jb.Stacking(prior=jb.priors.Stacking(kappa=0.0)),
    ],
    ids=lambda method: type(method).__name__,
)
@in_float64
def test_a_saved_fit_has_the_results_of_its_prior(method: Any, tmp_path: Path) -> None:
    votes, labels, weight = AGGREGATOR.takes(drawn(3))
    same_inference = dataclasses.replace(method, prior=type(method)().prior)
    fit, usual = (m.fit(votes, labels, weight=weight) for m in (method, same_inference))
    save_fit(tmp_path / "f.json", SavedFit("m", fit, Classes((-1, 0, 1), True), profile(votes)))
    again = load_fit(tmp_path / "f.json").fitted
    np.testing.assert_array_equal(again(votes), fit(votes))
    assert np.abs(np.asarray(again(votes) - usual(votes))).max() > 1e-4
    if hasattr(method, "reliability"):
        for ours, saved in zip(fit.reliability(), again.reliability(), strict=True):
            np.testing.assert_array_equal(saved, ours)
    assert json.loads((tmp_path / "f.json").read_text())["version"] == 4
