"""Properties of every program: it generates data, works with NumPyro's tools, and uses no factor."""

import ast
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import optax
import pytest
from numpyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO, log_likelihood
from numpyro.infer.autoguide import AutoDelta
from numpyro.infer.util import log_density
from program_cases import PROGRAMS, Program

import judgebayes.inference
import judgebayes.models
from judgebayes.aggregators import DawidSkene
from judgebayes.compiled.float64 import in_float64
from judgebayes.inference.derived import FIELDS, filled, log_likelihoods
from judgebayes.inference.problem import Problem
from judgebayes.models.base import Model
from judgebayes.models.dawid_skene import DawidSkeneModel
from judgebayes.votes import Votes

MODELS = Path(judgebayes.models.__file__).parent
PLAIN = {
    *("davidson", "one coin", "dawid-skene", "stacking"),
    *("temperature", "platt", "irt", "beta-binomial"),
}
"""Tested in the slow tests: the default ones have a variant with more features."""
ALL = pytest.mark.parametrize(
    "name", [pytest.param(p, marks=pytest.mark.slow) if p in PLAIN else p for p in PROGRAMS]
)


def test_no_program_adds_a_factor_or_imports_the_library() -> None:
    allowed = {"numpyro", "jax", "numpy", "jaxtyping", "judgebayes.models"}
    standard = {"math", "typing", "dataclasses", "functools", "collections.abc"}
    for path in MODELS.glob("*.py"):
        tree = ast.parse(path.read_text())
        names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert "factor" not in names, path
        for node in ast.walk(tree):
            modules = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for module in modules:
                top = module.split(".")[0]
                assert (
                    module in standard or top in allowed or module.startswith("judgebayes.models")
                ), (path, module)


def of(name: str) -> tuple[Program, Model, Any]:
    program = PROGRAMS[name]
    return program, program.model(), program.data()


def field(site: str, data: Any) -> np.ndarray:
    return np.asarray(getattr(data, FIELDS.get(site, site)))


@ALL
@in_float64
def test_it_samples_a_data_set_with_the_same_missing_votes(name: str) -> None:
    _, model, data = of(name)
    samples = computed(name).samples
    for site in model.traits.sites:
        values, given = np.asarray(samples[site]), field(site, data)
        assert values.shape == (20, *given.shape)
        assert np.isfinite(values).all()
        if site == "votes":
            np.testing.assert_array_equal(values < 0, np.broadcast_to(given < 0, values.shape))
        else:
            assert (values >= 0).all()
        assert len(np.unique(values)) > 1
    assert np.isfinite(computed(name).generated)


class Computed(NamedTuple):
    """What the tests compare. The densities are at the first draw of the parameters."""

    samples: dict[str, jax.Array]
    """20 draws of the parameters from the prior, and of data given them."""
    at: dict[str, jax.Array]
    """The first draw of the parameters."""
    whole: jax.Array
    """The density of the data."""
    generated: jax.Array
    """The density of the first draw of data."""
    conditioned: jax.Array
    """The density of the data with the first parameter conditioned on."""
    repeated: jax.Array
    """The density of items as often as their weight; NaN where there are no weights of items."""
    simulated: dict[str, jax.Array]
    """One draw of data given the first parameter."""
    likelihoods: dict[str, jax.Array]
    """By item, for five draws, by NumPyro."""
    own: dict[str, jax.Array]
    """The same by the library."""
    with_labels: dict[str, jax.Array]
    """400 draws of votes given the labels, where there are both."""


@cache
def computed(name: str) -> Computed:
    """Return all of it, from one program: compiling each of its parts alone takes twice as long."""
    _, model, data = of(name)

    def density(program: Any, data: Any, at: dict[str, jax.Array]) -> jax.Array:
        return log_density(program, (data,), {}, at)[0]

    @jax.jit
    def everything(key: jax.Array, other_key: jax.Array) -> Computed:
        samples = Predictive(model, num_samples=20)(key, data, observed=())
        names = list(Problem(model, data).latent)
        at = {n: samples[n][0] for n in names}
        first, rest = {names[0]: at[names[0]]}, {n: at[n] for n in names[1:]}
        sites = (*model.traits.sites, *model.traits.latent_data)
        done = numpyro.handlers.seed(numpyro.handlers.do(model, data=first), 0)
        trace = numpyro.handlers.trace(done).get_trace(data, observed=())
        few = {n: samples[n][:5] for n in names}
        panel = model.traits.sites == ("label", "votes")
        with_labels = Predictive(model, num_samples=400)
        return Computed(
            samples,
            at,
            density(model, data, at),
            density(model, filled(data, {site: samples[site][0] for site in sites}), at),
            density(numpyro.handlers.condition(model, data=first), data, rest),
            density(model, repeated(data), at) if weighted(name, data) else jnp.asarray(jnp.nan),
            {site: trace[site]["value"] for site in model.traits.sites},
            log_likelihood(model, few, data),
            jax.vmap(lambda one: log_likelihoods(model, data, one))(few),
            with_labels(other_key, data, observed=("label",)) if panel else {},
        )

    return everything(jax.random.key(0), jax.random.key(1))


@ALL
@in_float64
def test_observed_labels_are_unchanged_and_votes_are_sampled(name: str) -> None:
    _, model, data = of(name)
    if model.traits.sites != ("label", "votes"):
        return
    samples = computed(name).with_labels
    labelled = np.asarray(data.labels) >= 0
    observed_labels = np.asarray(samples["label"])[:, labelled]
    np.testing.assert_array_equal(
        observed_labels, np.broadcast_to(np.asarray(data.labels)[labelled], observed_labels.shape)
    )
    votes = np.asarray(samples["votes"])
    cast = votes >= 0
    agree = (votes == np.maximum(np.asarray(data.labels), 0)[:, None, None]) & cast
    chance = 1 / (2 if name.startswith("generators") else 3)
    assert agree[:, labelled].sum() / cast[:, labelled].sum() > chance


@ALL
@in_float64
def test_log_likelihood_is_a_number_for_each_item_and_site(name: str) -> None:
    _, model, data = of(name)
    each, own = computed(name).likelihoods, computed(name).own
    assert set(each) == set(model.traits.sites)
    for site, values in each.items():
        batch = field(site, data).shape[: 2 if "accepted" in site else 1]
        assert values.shape == (5, *batch)
        assert np.isfinite(values).all()
        np.testing.assert_allclose(values, own[site], rtol=1e-12)


@ALL
@in_float64
def test_parameters_can_be_conditioned_on_and_set(name: str) -> None:
    done = computed(name)
    assert float(done.conditioned) == pytest.approx(float(done.whole))
    assert set(done.simulated) == set(of(name)[1].traits.sites)
    assert all(np.isfinite(values).all() for values in done.simulated.values())


UNCOMPILED = ("davidson", "dawid-skene", "beta-binomial", "generators, flat")
"""Run without `jit` by default; it takes long, because every operation is compiled by itself."""


@pytest.mark.parametrize(
    "name",
    [p if p in UNCOMPILED else pytest.param(p, marks=pytest.mark.slow) for p in PROGRAMS],
)
@in_float64
def test_the_density_is_the_same_without_jit(name: str) -> None:
    _, model, data = of(name)
    density, _ = log_density(model, (data,), {}, computed(name).at)
    assert float(computed(name).whole) == pytest.approx(float(density))


def weighted(name: str, data: Any) -> bool:
    """Return whether items have weights, and the parameters do not belong to items, as in the 2PL."""
    return getattr(data, "weight", None) is not None and not name.startswith("irt")


def repeated(data: Any) -> Any:
    """Return every item as often as its weight."""
    weight = np.asarray(data.weight)
    rows = np.repeat(np.arange(len(weight)), weight.astype(int))

    def take(x: Any) -> Any:
        whole = isinstance(x, jax.Array) and x.shape[:1] == weight.shape
        return jnp.asarray(np.asarray(x)[rows]) if whole else x

    return jax.tree.map(take, data)._replace(weight=None)


@ALL
@in_float64
def test_weight_0_equals_a_dropped_item_and_weight_2_the_item_twice(name: str) -> None:
    if not weighted(name, of(name)[2]):
        return
    wanted = float(computed(name).repeated)
    assert float(computed(name).whole) == pytest.approx(wanted, rel=1e-10)


def mode(problem: Problem) -> dict[str, jax.Array]:
    """Return the posterior's mode: by MAP, or by EM for confusion matrices, whose support is no box."""
    model, data = problem.model, problem.data
    if isinstance(model, DawidSkeneModel):
        votes = Votes(data.votes.astype(jnp.int8), None, None, None, model.n_classes)
        method = DawidSkene(prior=model.prior, label_noise=model.noise)
        draws = method.fit(votes, data.labels, weight=data.weight).draws
    else:
        draws = judgebayes.inference.MAP().solve(problem, jax.random.key(0)).draws
    return {n: x[0] for n, x in draws.items()}


@pytest.mark.slow
@ALL
@in_float64
def test_variational_inference_reaches_the_mode(name: str) -> None:
    _, model, data = of(name)
    problem = Problem(model, data, size=jnp.ones(()))
    at = mode(problem)
    target, _ = log_density(model, (data,), {}, at)
    # MAP starts there as well.
    begin = {n: jnp.asarray(site["value"], float) for n, site in problem.latent.items()}
    guide = AutoDelta(model, init_loc_fn=numpyro.infer.init_to_value(values=begin))
    optimiser = optax.adam(optax.cosine_decay_schedule(0.03, 10_000))
    svi = SVI(model, guide, optimiser, Trace_ELBO())
    result = svi.run(jax.random.key(1), 10_000, data, progress_bar=False)
    median = guide.median(result.params)
    density, _ = log_density(model, (data,), {}, median)
    n_parameters = sum(np.size(x) for x in at.values())
    assert float(density) >= float(target) - 0.01 * n_parameters


@pytest.mark.slow
@ALL
@in_float64
def test_plain_nuts_agrees_with_ours(name: str) -> None:
    program, model, data = of(name)
    if not program.mixes:
        return
    ours = judgebayes.inference.NUTS(draws=2000, warmup=1000).solve(
        Problem(model, data, size=jnp.ones(())), jax.random.key(0)
    )
    mcmc = MCMC(
        NUTS(model, target_accept_prob=0.9),
        num_warmup=1000,
        num_samples=2000,
        num_chains=4,
        chain_method="vectorized",
        progress_bar=False,
    )
    mcmc.run(jax.random.key(1), data)
    theirs = mcmc.get_samples(group_by_chain=True)
    assert ours.chains is not None
    z = []
    for site, x in ours.chains.draws.items():
        means = [np.asarray(draws).mean((0, 1)).ravel() for draws in (x, theirs[site])]
        errors = [error(np.asarray(draws)) for draws in (x, theirs[site])]
        z.append((means[0] - means[1]) / np.hypot(*errors))
    worst = np.abs(np.concatenate(z))
    n_tests = sum(
        sum(np.size(s["value"]) for s in Problem(p.model(), p.data()).latent.values())
        for p in PROGRAMS.values()
        if p.mixes
    )
    from scipy.stats import norm

    assert worst.max() < norm.isf(0.01 / n_tests / 2)


def error(draws: np.ndarray) -> np.ndarray:
    """Return the Monte Carlo standard errors of the means of draws (chain, draw, ...)."""
    from numpyro.diagnostics import effective_sample_size

    flat = draws.reshape(*draws.shape[:2], -1)
    return flat.std((0, 1)) / np.sqrt(effective_sample_size(flat))
