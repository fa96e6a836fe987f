"""The seven models by name, and their combination with data.

Sample a model with data, into ArviZ's container with everything that checks need.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from judgebayes import priors
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.nuts import NUTS, Sampling
from judgebayes.inference.problem import log_density, numpyro_lock
from judgebayes.inference.sampled import Described, container, drawn_from_prior
from judgebayes.models.item_validator import POINTS
from judgebayes.posteriors import generators, labels, votes
from judgebayes.votes.array import Data


@in_float64
def sample(
    spec: Described,
    nuts: NUTS,
    seed: int,
    *,
    on_progress: Callable[[Sampling], object] | None = None,
    attributes: Mapping[str, str | int] | None = None,
) -> Any:
    """Return the posterior as ArviZ's container, with the spec's statistics of data and replications.

    Parameters
    ----------
    spec
        The model with its data.
    nuts
        The sampler.
    seed
        The seed of all random draws.
    on_progress
        Called with the progress of the sampler.
    attributes
        Attributes to store in the container.
    """
    keys = jax.random.split(jax.random.key(seed), 5)
    chains = nuts.draw(spec.problem, keys[0], on_progress)
    return container(spec, chains, keys[1:], attributes=attributes)


MODELS: dict[str, dict[str, Callable[[Data, Any], Described]]] = {
    "davidson": {"pooled": labels.davidson},
    "dawid-skene": {"confusion": votes.dawid_skene},
    "one-coin": {"accuracy": votes.one_coin},
    "irt": {"2pl": labels.item_response},
    "stacking": {"centred": labels.stacking, "uncentred": labels.uncentred_stacking},
    "beta-binomial": {
        "mixture": partial(votes.beta_binomial, components=2),
        "single": partial(votes.beta_binomial, components=1),
    },
    "generator-validator": {
        "leaning": partial(generators.items, points=POINTS),
        "independent": partial(generators.items, points=1),
    },
}
"""The models by name, with the variants of each, the default first."""
PRIORS: dict[str, Any] = {
    "davidson": priors.Davidson,
    "dawid-skene": priors.DawidSkene,
    "one-coin": priors.OneCoin,
    "irt": priors.ItemResponse,
    "stacking": priors.Stacking,
    "beta-binomial": priors.BetaBinomial,
    "generator-validator": priors.ItemLevel,
}


def variant_of(model: str, variant: str | None = None) -> str:
    """Return the name of a model's variant; the default variant if None.

    Raises
    ------
    JudgeBayesError
        If there is no such model or variant.
    """
    if model not in MODELS:
        raise JudgeBayesError(
            f"--model {model!r} is not known; choose one of: {', '.join(MODELS)}."
        )
    name = next(iter(MODELS[model])) if variant is None else variant
    if name not in MODELS[model]:
        raise JudgeBayesError(
            f"--variant {name!r} is not a variant of {model}; choose one of: {', '.join(MODELS[model])}."
        )
    return name


def build(
    data: Data,
    model: str,
    variant: str | None = None,
    prior: Mapping[str, Any] = MappingProxyType({}),
) -> Described:
    """Return a model with data.

    Parameters
    ----------
    data
        The data.
    model, variant
        Their names; the default variant if None.
    prior
        Fields of the model's prior (`PRIORS`) that differ from the default.

    Raises
    ------
    JudgeBayesError
        If there is no such model or variant, the data do not suit it, or a given prior has no effect,
        because the variant sets it or because such votes give no such parameter.
    """
    variant = variant_of(model, variant)
    spec = MODELS[model][variant](data, PRIORS[model](**prior))
    for name in _without_effect(spec, prior) if prior else ():
        raise JudgeBayesError(
            f"The prior {name} has no effect on {model}, {variant}, with these votes; leave it out."
        )
    return spec


@numpyro_lock
def _without_effect(spec: Described, prior: Mapping[str, Any]) -> list[str]:
    """Return the fields that the variant sets, or on which the log-density does not depend."""
    model: Any = spec.problem.model
    data = spec.problem.data

    @jax.jit  # as one program: step by step, each operation would be compiled by itself
    def gradient_at(prior_value: Any) -> Any:
        sites, _ = drawn_from_prior(model, data, jax.random.key(0))

        def density(prior_value: Any) -> Any:
            return log_density(partial(replace(model, prior=prior_value), data), sites)

        return jax.grad(density)(prior_value)

    gradient = gradient_at(jax.tree.map(jnp.asarray, model.prior))
    return [
        name
        for name, value in prior.items()
        if getattr(model.prior, name) != value
        or not any(np.any(np.asarray(x) != 0) for x in jax.tree.leaves(getattr(gradient, name)))
    ]
