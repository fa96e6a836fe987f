"""Every fit by NUTS converts to ArviZ with all its groups, and ArviZ's functions accept it.

Compiling a sampler takes most of the time of a fit. The fits of `SAMPLED` are sampled; the others draw
from their priors here, which suffices for what is computed from draws. Their own tests sample them, and
`-m slow` does so here.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from judgebayes import (
    BayesianMap,
    Davidson,
    DawidSkene,
    HierarchicalDavidson,
    OneCoin,
    Platt,
    SharedDifficulty,
    Stacking,
)
from judgebayes.errors import JudgeBayesError
from judgebayes.evaluate.one_split import is_sampled
from judgebayes.experiments.betaconform.pooling import PooledBetaBinomial
from judgebayes.experiments.beyond_consensus.flat_program import FlatModel
from judgebayes.experiments.beyond_consensus.generator_validator import GeneratorValidator
from judgebayes.experiments.beyond_consensus.hierarchical_program import HierarchicalModel
from judgebayes.experiments.beyond_consensus.item_level import ItemLevel
from judgebayes.generators.counts import PrecisionCounts
from judgebayes.inference import NUTS, Status, posterior
from judgebayes.inference.posterior import arviz
from judgebayes.inference.problem import Chains, Problem, Result, log_density
from judgebayes.inference.registry import AGGREGATORS
from judgebayes.inference.sampled import with_source
from judgebayes.item_response import ItemResponse
from judgebayes.majority import BetaBinomial, counts_of
from judgebayes.posteriors.checks import check
from judgebayes.posteriors.compare import compare
from judgebayes.votes import Votes

az = arviz()
ITEMS, JUDGES = 24, ("ann", "bob", "cy")
NUTS_OF_TESTS = NUTS(draws=60, warmup=60, chains=2)
SAMPLED = ("davidson", "dawid-skene", "beta-binomial", "generators, flat")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class OfPrior(NUTS):
    """Draws from the prior what a sampler would draw from the posterior."""

    def solve(self, problem: Problem, key: jax.Array) -> Result:
        shape = self.chains, self.draws
        drawn = jax.lax.map(problem.draw_prior, jax.random.split(key, shape[0] * shape[1]))
        draws = {name: x.reshape(*shape, *x.shape[1:]) for name, x in drawn.items()}
        blank, energy = jnp.zeros(shape), jax.random.normal(key, shape)
        chains = Chains(draws, jnp.zeros(shape, bool), energy, blank + 3, blank + 0.9)
        return Result(drawn, jnp.asarray(int(Status.CONVERGED), jnp.int32), chains=chains)


OF_PRIOR = OfPrior(draws=60, warmup=60, chains=2)
COORDS = {
    "item": [f"item {i}" for i in range(ITEMS)],
    "judge": list(JUDGES),
    "generator": ["g one", "g two"],
    "task": ["chat", "code"],
    "set": ["a set", "another"],
}
GROUPS = (
    "posterior",
    "sample_stats",
    "log_likelihood",
    "log_prior",
    "observed_data",
    "posterior_predictive",
    "prior",
    "prior_predictive",
)


def panel(classes: int = 3) -> tuple[Votes, np.ndarray]:
    """Votes of three judges, a tenth missing, and labels of three items in four."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, classes, ITEMS)
    shape = (ITEMS, len(JUDGES), 1)
    right = rng.random(shape) < np.array([0.9, 0.75, 0.6])[:, None]
    index = np.where(right, truth[:, None, None], rng.integers(0, classes, shape))
    index = np.where(rng.random(shape) < 0.1, -1, index)
    task = jnp.asarray(np.arange(ITEMS) % 2)
    votes = Votes(jnp.asarray(index, jnp.int8), None, None, task, classes, 2)
    return votes, np.where(np.arange(ITEMS) % 4 == 1, -1, truth)


def cells() -> PrecisionCounts:
    """Whole counts of two generators, the second without labels."""
    zero = np.zeros(3)
    rows = {
        "accepted": [zero, [30, 28, 33]],
        "judged": [zero, [40, 40, 39]],
        "true_accepted": [[15, 13, 14], zero],
        "valid_judged": [[16, 15, 16], zero],
        "false_accepted": [[2, 1, 2], zero],
        "invalid_judged": [[4, 4, 3], zero],
        "valid": [16, 0],
        "invalid": [4, 0],
        "unlabelled": [0, 40],
    }
    return PrecisionCounts(**{name: jnp.asarray(np.array(x, float)) for name, x in rows.items()})


def answers() -> np.ndarray:
    """Log-probabilities of three classes."""
    return np.log(np.random.default_rng(2).dirichlet(np.ones(3), ITEMS))


def of_counts(place: int = 0) -> Any:
    correct = [5, 4, 1, 5, 3, 5, 2, 5, -1, 3] if place == 0 else [5, 5, 5, 4, 5, 2]
    return counts_of(np.array(correct), 5)


@dataclass(frozen=True)
class Case:
    fit: Callable[[NUTS], Any]
    sites: dict[str, tuple[str, ...]]
    """The log-likelihoods and their axes."""
    quantities: dict[str, tuple[str, ...]]
    """Some of the parameters, and their axes."""


LABEL: dict[str, tuple[str, ...]] = {"label": ("labelled_item",)}
OF_CELLS = {
    "valid": ("generator",),
    "accepted": ("generator", "judge"),
    "true_accepted": ("generator", "judge"),
    "false_accepted": ("generator", "judge"),
}
BY_LABEL = {"valid": ("generator",), "accepted_by_label": ("generator", "judge")}
KINDS = ("share", "mean", "dispersion")
CASES = {
    "platt's map": Case(
        lambda nuts: BayesianMap(Platt(), nuts).fit(answers(), panel()[1]),
        LABEL,
        {"slope": ("slope_group",), "intercept": ("intercept_group",)},
    ),
    "davidson": Case(
        lambda nuts: Davidson(nuts).fit(*panel()), LABEL, {"beta": (), "eta0": ("level",)}
    ),
    "davidson, label noise and weights": Case(
        lambda nuts: Davidson(nuts, label_noise=0.1).fit(
            *panel(), weight=np.where(np.arange(ITEMS) == 2, 0.0, 1.0)
        ),
        LABEL,
        {"gamma": ("level",)},
    ),
    "hierarchical davidson": Case(
        lambda nuts: HierarchicalDavidson(nuts).fit(*panel()),
        LABEL,
        {"tie_by_task": ("level", "task"), "beta_of_task": ("task",)},
    ),
    "dawid-skene": Case(
        lambda nuts: DawidSkene(nuts).fit(*panel()),
        {"votes": ("item",), **LABEL},
        {"accuracy": ("judge",), "confusion": ("judge", "class", "vote"), "pi": ("class",)},
    ),
    "stacking": Case(
        lambda nuts: Stacking(nuts).fit(*panel()),
        LABEL,
        {"tau": (), "weight": ("judge",), "level_weight": ("level", "judge")},
    ),
    "shared difficulty": Case(
        lambda nuts: SharedDifficulty(nuts).fit(*panel()),
        {"votes": ("labelled_item",), **LABEL},
        {"ease": (), "reliability": ("judge",), "bias": ("judge", "bias_class")},
    ),
    "irt": Case(
        lambda nuts: ItemResponse(inference=nuts).fit(*panel()),
        {"votes": ("labelled_item",)},
        {"ability": ("judge",), "difficulty": ("item",), "discrimination": ("item",)},
    ),
    "beta-binomial": Case(
        lambda nuts: BetaBinomial(1, nuts).fit(of_counts()),
        {"correct": ("labelled_item",)},
        {"majority_error": ("votes",), **dict.fromkeys(KINDS, ("component",))},
    ),
    "mixture": Case(
        lambda nuts: BetaBinomial(2, nuts).fit(of_counts()),
        {"correct": ("labelled_item",)},
        {"majority_error": ("votes",), **dict.fromkeys(KINDS, ("component",))},
    ),
    "pooled mixture": Case(
        lambda nuts: PooledBetaBinomial(nuts).fit([of_counts(0), of_counts(1)]),
        {"correct": ("labelled_item",)},
        {"majority_error": ("set", "votes"), **dict.fromkeys(KINDS, ("set", "component"))},
    ),
    "generators, flat": Case(
        lambda nuts: GeneratorValidator(FlatModel(), nuts).fit(cells()),
        OF_CELLS,
        {"g": ("generator",), "tpr": ("judge",), "precision": ("generator",)},
    ),
    "generators, hierarchical": Case(
        lambda nuts: GeneratorValidator(HierarchicalModel(), nuts).fit(cells()),
        BY_LABEL,
        {"g": ("generator",), "kappa": ("judge",), "precision": ("generator",)},
    ),
    "generators, robust": Case(
        lambda nuts: GeneratorValidator(inference=nuts).fit(cells()),
        BY_LABEL,
        {"g": ("generator",), "odd_share": ("judge",), "precision": ("generator",)},
    ),
    "generators, items": Case(
        lambda nuts: ItemLevel(nuts).fit(*panel(2), np.arange(ITEMS) % 2, 2),
        {"votes": ("item",), **LABEL},
        {"precision": ("generator",), "tpr": ("judge",), "shift": ("class", "generator")},
    ),
}
FAST = {"davidson, label noise and weights", "mixture", "generators, items", "stacking"}
"""These differ in their axes; the other fits are in the slow tests."""
ALL = pytest.mark.parametrize(
    "name", [c if c in FAST else pytest.param(c, marks=pytest.mark.slow) for c in CASES]
)


@cache
def fitted(name: str) -> Any:
    return CASES[name].fit(NUTS_OF_TESTS if name in SAMPLED else OF_PRIOR)


def coords_of(name: str) -> dict[str, Any]:
    return COORDS if "mixture" not in name else {"set": COORDS["set"]}


@cache
def container(name: str) -> Any:
    return fitted(name).to_arviz(coords_of(name))


@cache
def unnamed(name: str) -> Any:
    """The container of a fit whose axes have no names."""
    return fitted(name).to_arviz()


def arrays(data: Any, group: str) -> dict[str, Any]:
    return {str(name): data[group][name] for name in data[group].data_vars}


@pytest.mark.slow
def test_every_registered_method_that_can_be_sampled_is_a_case() -> None:
    methods = [fitted(name).method for name in CASES]
    assert all(map(is_sampled, methods))
    registered = {m for m in AGGREGATORS.values() if "nuts" in m.traits.inferences}  # type: ignore[attr-defined]
    assert registered <= set(map(type, methods))


@ALL
def test_it_has_all_groups_with_names_along_their_axes(name: str) -> None:
    data, case = container(name), CASES[name]
    draws = arrays(data, "posterior")
    for group in GROUPS:
        assert arrays(data, group), group
        for array in arrays(data, group).values():
            for axis in set(array.dims) & set(COORDS) - {"item"}:
                assert list(array.coords[axis].to_numpy()) == COORDS[axis]
            assert not any("_dim_" in axis for axis in array.dims)
    for site, axes in case.quantities.items():
        assert draws[site].dims == ("chain", "draw", *axes)
        assert draws[site].shape[:2] == (2, 60)
        assert np.isfinite(draws[site]).all()
    assert set(arrays(data, "prior")) == set(draws) - {"precision"}
    log_likelihoods = arrays(data, "log_likelihood")
    assert {site: x.dims[2:] for site, x in log_likelihoods.items()} == case.sites
    assert all((x <= 0).all() for x in log_likelihoods.values())
    observed = arrays(data, "observed_data")
    assert set(observed) == set(arrays(data, "posterior_predictive"))
    for group in ("prior_predictive", "posterior_predictive"):
        for site, array in arrays(data, group).items():
            assert array.dims[2:] == observed[site].dims
            if site == "votes":
                missing = observed[site].to_numpy() < 0
                assert ((array.to_numpy() < 0) == missing).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if name not in SAMPLED])
def test_a_fit_that_is_sampled_converts_as_well(name: str) -> None:
    data = CASES[name].fit(NUTS_OF_TESTS).to_arviz(coords_of(name))
    of_prior = container(name)
    for group in GROUPS:
        one, other = arrays(data, group), arrays(of_prior, group)
        assert {n: (x.dims, x.shape) for n, x in one.items()} == {
            n: (x.dims, x.shape) for n, x in other.items()
        }
    assert all(np.isfinite(x).all() for x in arrays(data, "posterior").values())


@ALL
def test_arvizs_own_functions_take_it(name: str) -> None:
    data, case = container(name), CASES[name]
    first = next(iter(case.quantities))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of short chains, and matplotlib's own
        table = az.summary(data)
        assert len(table) >= sum(1 for _ in case.quantities)
        for site in case.sites:
            assert az.loo(data, var_name=site) is not None
        assert az.plot_forest(data, var_names=[first]) is not None
        observed = next(iter(arrays(data, "observed_data")))
        check = getattr(az, "plot_ppc_dist", None) or az.plot_ppc
        assert check(data, var_names=[observed]) is not None
        plt.gcf().canvas.draw()
    plt.close("all")


@ALL
def test_a_file_gives_back_what_was_written(name: str, tmp_path: Path) -> None:
    data = container(name)
    posterior.save(data, tmp_path / "p.npz")
    again = posterior.load(tmp_path / "p.npz")
    for group in GROUPS:
        one, other = arrays(data, group), arrays(again, group)
        assert one.keys() == other.keys()
        for key, array in one.items():
            np.testing.assert_array_equal(array.to_numpy(), other[key].to_numpy())
            for axis in array.dims:
                mine, its = (x.coords[axis].to_numpy() for x in (array, other[key]))
                np.testing.assert_array_equal(mine.astype(str), its.astype(str))


def test_items_have_their_own_names_and_ignored_items_are_absent() -> None:
    _, labels = panel()
    labelled = [f"item {i}" for i in np.flatnonzero(labels >= 0)]
    of = container("davidson")["log_likelihood"]["label"].coords["labelled_item"].to_numpy()
    assert list(of) == labelled
    of = container("davidson, label noise and weights")["log_likelihood"]["label"]
    assert list(of.coords["labelled_item"].to_numpy()) == [i for i in labelled if i != "item 2"]
    without = unnamed("davidson")["log_likelihood"]["label"]
    assert list(without.coords["labelled_item"].to_numpy()) == list(np.flatnonzero(labels >= 0))


def test_the_likelihood_is_that_of_the_fits_own_answers() -> None:
    votes, labels = panel()
    labelled = np.flatnonzero(labels >= 0)
    for name in ("davidson", "hierarchical davidson", "stacking", "dawid-skene"):
        probs = np.asarray(fitted(name).by_draw(votes))[:, labelled, labels[labelled]]
        log_likelihood = container(name)["log_likelihood"]["label"].to_numpy()
        np.testing.assert_allclose(log_likelihood.reshape(-1, len(labelled)), probs, atol=1e-9)
    name = "davidson, label noise and weights"
    used = np.setdiff1d(labelled, [2])
    probs = np.exp(np.asarray(fitted(name).by_draw(votes)))[:, used, labels[used]]
    log_likelihood = container(name)["log_likelihood"]["label"].to_numpy().reshape(-1, len(used))
    np.testing.assert_allclose(np.exp(log_likelihood), 0.9 * probs + 0.05 * (1 - probs), atol=1e-9)


def test_the_log_prior_is_the_programs() -> None:
    for name in ("davidson", "dawid-skene"):
        chains = fitted(name).chains
        with jax.enable_x64(True):
            problem = fitted(name).method.problem(*chains.source)
            expected = log_density(problem.prior, {n: x[1, 3] for n, x in chains.draws.items()})
        each = arrays(container(name), "log_prior")
        assert set(each) == set(chains.draws)
        assert sum(float(x[1, 3]) for x in each.values()) == pytest.approx(float(expected))


def test_scales_are_as_documented() -> None:
    draws = container("mixture")["posterior"]
    mean, spread = draws["mean"].to_numpy(), draws["dispersion"].to_numpy()
    assert (mean[..., 0] <= mean[..., 1]).all()  # hard items first
    assert list(draws.coords["component"].to_numpy()) == ["hard items", "easy items"]
    assert (spread > 0).all()
    data = container("beta-binomial")
    log_likelihood = data["log_likelihood"]["correct"].to_numpy()
    one = data["posterior"].isel(component=0)
    mean, spread = (one[n].to_numpy()[..., None] for n in ("mean", "dispersion"))
    correct = data["observed_data"]["correct"].to_numpy()
    expected = stats.betabinom.logpmf(correct, 5, mean / spread, (1 - mean) / spread)
    np.testing.assert_allclose(log_likelihood, expected, atol=1e-6)


@pytest.mark.parametrize("name", ["accepted", "judged"])
def test_shares_of_items_have_no_predictions_and_all_else(name: str) -> None:
    shares = replace(cells(), **{name: getattr(cells(), name) + 0.5})
    data = GeneratorValidator(FlatModel(), OF_PRIOR).fit(shares).to_arviz(COORDS)
    assert not hasattr(data, "posterior_predictive")
    assert not hasattr(data, "prior_predictive")
    assert arrays(data, "prior").keys() == {"g", "tpr", "fpr"}
    np.testing.assert_array_equal(data["observed_data"]["accepted"], shares.accepted)


def test_a_fit_without_chains_raises_an_error() -> None:
    votes, labels = panel()
    with pytest.raises(
        JudgeBayesError, match="This fit of Davidson is a point estimate and has no post"
    ):
        Davidson().fit(votes, labels).to_arviz()
    with pytest.raises(JudgeBayesError, match="closed form"):
        OneCoin().fit(votes, labels).to_arviz()


def test_labels_may_be_a_column_of_a_table() -> None:
    votes, labels = panel()
    fit = with_source(Davidson(OF_PRIOR).fit(votes, labels), votes, pd.Series(labels))
    assert fit.to_arviz()["observed_data"]["label"].size == (labels >= 0).sum()
    assert jax.jit(lambda inside: inside.status)(fit) == fit.status


def test_a_batch_of_fits_stores_no_data_and_raises_an_error() -> None:
    votes, labels = panel()
    few = OfPrior(draws=5, warmup=5, chains=2)
    many = jax.vmap(lambda weight: Davidson(few).fit(votes, labels, weight=weight))(
        jnp.ones((2, ITEMS))
    )
    one = jax.tree.map(lambda x: x[0], many)
    assert one.chains is not None
    assert one.chains.source is None
    with pytest.raises(JudgeBayesError, match="fit it separately"):
        one.to_arviz()
    # A fit with its data goes through compiled code like any other.
    doubled = jax.jit(lambda fit: jax.tree.map(lambda x: x, fit))(fitted("davidson"))
    assert doubled.to_arviz()["posterior"].equals(unnamed("davidson")["posterior"])


def test_fits_of_the_same_data_are_compared_and_others_refused() -> None:
    one, other = container("davidson"), container("dawid-skene")
    (comparison,) = compare({"davidson": one, "dawid-skene": other}, "label")
    assert comparison.n_items == len(np.flatnonzero(panel()[1] >= 0))
    assert "predict the label of an item" in comparison.words()[0].sentence
    assert one.attrs["data"].startswith("24 items, 3 judge(s), ")
    with pytest.raises(JudgeBayesError, match="different data"):
        compare({"named": one, "by number": unnamed("davidson")})
    with pytest.raises(JudgeBayesError, match=r"or to_arviz\(\) of a fit of votes and labels"):
        compare({"davidson": one, "mixture": container("mixture")})


def test_a_fit_without_statistics_raises_an_error() -> None:
    with pytest.raises(JudgeBayesError, match="no statistics of the data; use a file"):
        check(container("davidson"))
