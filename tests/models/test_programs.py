"""Properties of every program: it generates data, works with NumPyro's tools, and uses no factor."""

import ast
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro.infer import Predictive, log_likelihood
from numpyro.infer.util import log_density
from program_cases import PROGRAMS, Program

import judgebayes.inference
import judgebayes.models
from judgebayes.compiled.float64 import in_float64
from judgebayes.inference.problem import Problem
from judgebayes.inference.sampled import filled, log_likelihoods
from judgebayes.models.base import Model, axes, unobserved

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
    allowed = {"abc", "copy", "numpyro", "jax", "numpy", "jaxtyping", "judgebayes.models"}
    standard = {"math", "typing", "contextlib", "dataclasses", "functools", "collections.abc"}
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
    return np.asarray(getattr(data, "labels" if site == "label" else site))


@ALL
@in_float64
def test_it_samples_a_data_set_with_the_same_missing_votes(name: str) -> None:
    _, model, data = of(name)
    samples = generated(name)
    for site in model.traits.sites:
        values, given = np.asarray(samples[site]), field(site, data)
        assert values.shape == (20, *given.shape)
        assert np.isfinite(values).all()
        if site == "votes":
            np.testing.assert_array_equal(values < 0, np.broadcast_to(given < 0, values.shape))
        else:
            assert (values >= 0).all()
        assert len(np.unique(values)) > 1
    sites = (*model.traits.sites, *model.traits.latent_data)
    one = filled(data, {site: jnp.asarray(samples[site][0]) for site in sites})
    assert np.isfinite(density_at(model, one, first_draw(name)))


def latent(model: Model, data: Any) -> list[str]:
    """Return the parameters' names in the program's order; nothing is computed."""
    names: list[str] = []

    def run() -> None:
        names.extend(Problem(model, data).latent)

    jax.eval_shape(run)
    return names


def drawn(model: Model, data: Any, size: int, seed: int) -> dict[str, np.ndarray]:
    """Return draws of all sites by NumPyro's `Predictive`, in one compiled program."""
    predictive = Predictive(model, num_samples=size)
    samples = jax.jit(lambda key: predictive(key, data))(jax.random.key(seed))
    return {site: np.asarray(values) for site, values in samples.items()}


@cache
def generated(name: str) -> dict[str, np.ndarray]:
    """Return 20 draws of the parameters from the prior, and of data given them."""
    _, model, data = of(name)
    return drawn(model, unobserved(model, data), 20, 0)


def first_draw(name: str) -> dict[str, jax.Array]:
    """Return one draw of the parameters from the prior."""
    _, model, data = of(name)
    return {n: jnp.asarray(generated(name)[n][0]) for n in latent(model, data)}


def density_at(program: Any, data: Any, at: dict[str, jax.Array]) -> float:
    """Return the log-density, compiled."""
    return float(jax.jit(lambda sites: log_density(program, (data,), {}, sites)[0])(at))


@ALL
@in_float64
def test_every_axis_of_every_site_has_a_name_and_an_axis_one_size(name: str) -> None:
    _, model, data = of(name)
    samples, sizes = generated(name), dict[str, int]()
    for site, names in axes(model, data).items():
        shape = samples[site].shape[1:]
        assert len(names) == len(shape), site
        assert all(
            sizes.setdefault(axis, size) == size for axis, size in zip(names, shape, strict=True)
        )


@ALL
@in_float64
def test_observed_labels_are_unchanged_and_votes_are_sampled(name: str) -> None:
    _, model, data = of(name)
    if model.traits.sites != ("label", "votes"):
        return
    samples = drawn(model, unobserved(model, data, ("label",)), 400, 1)
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
    draws = {n: jnp.asarray(generated(name)[n][:5]) for n in latent(model, data)}
    each = jax.jit(lambda draws: log_likelihood(model, draws, data))(draws)
    own = jax.jit(jax.vmap(lambda one: log_likelihoods(model, data, one)))(draws)
    assert set(each) == set(model.traits.sites)
    for site, values in each.items():
        batch = field(site, data).shape[: 2 if "accepted" in site else 1]
        assert values.shape == (5, *batch)
        assert np.isfinite(values).all()
        np.testing.assert_allclose(values, own[site], rtol=1e-12)


@pytest.mark.parametrize("name", ["davidson, free, noise", "dawid-skene, noise", "split curve"])
@in_float64
def test_parameters_can_be_conditioned_on_and_set(name: str) -> None:
    _, model, data = of(name)
    at = first_draw(name)
    names = list(at)
    whole = density_at(model, data, at)
    first = {names[0]: at[names[0]]}
    rest = {n: at[n] for n in names[1:]}
    conditioned = numpyro.handlers.condition(model, data=first)
    assert density_at(conditioned, data, rest) == pytest.approx(whole)

    @jax.jit
    def simulated() -> dict[str, jax.Array]:
        done = numpyro.handlers.seed(numpyro.handlers.do(model, data=first), 0)
        trace = numpyro.handlers.trace(done).get_trace(unobserved(model, data))
        return {site: trace[site]["value"] for site in model.traits.sites}

    assert all(np.isfinite(values).all() for values in simulated().values())


@ALL
@in_float64
def test_weight_0_equals_a_dropped_item_and_weight_2_the_item_twice(name: str) -> None:
    _, model, data = of(name)
    if getattr(data, "weight", None) is None or name.startswith(
        "irt"
    ):  # its items have their own parameters
        return
    at = first_draw(name)
    weight = np.asarray(data.weight)
    rows = np.repeat(np.arange(len(weight)), weight.astype(int))

    def take(x: Any) -> Any:
        whole = isinstance(x, jax.Array) and x.shape[:1] == weight.shape
        return jnp.asarray(np.asarray(x)[rows]) if whole else x

    repeated = jax.tree.map(take, data)._replace(weight=None)
    wanted = density_at(model, repeated, at)
    assert density_at(model, data, at) == pytest.approx(wanted, rel=1e-10)
