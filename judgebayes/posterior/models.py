"""The seven models by name, each with data in it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp
from numpyro.infer.util import log_density

from judgebayes import priors
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.derived import drawn_from_prior
from judgebayes.inference.numpyro_lock import numpyro_lock
from judgebayes.posterior import counts, generators, labels, responses, votes
from judgebayes.posterior.story import Story
from judgebayes.votes.data import Data

__all__ = ["MODELS", "PRIORS", "build", "variant_of"]

MODELS: dict[str, dict[str, Callable[[Data, Any], Story]]] = {
    "davidson": {"pooled": labels.davidson},
    "dawid-skene": {"confusion": votes.dawid_skene},
    "one-coin": {"accuracy": votes.one_coin},
    "irt": {"2pl": responses.item_response},
    "stacking": {"centred": labels.stacking, "uncentred": labels.uncentred_stacking},
    "beta-binomial": {"mixture": counts.mixture, "single": counts.single},
    "generator-validator": {
        "leaning": generators.leaning,
        "independent": generators.independent,
    },
}
"""Models by name, and the variants of each, the usual one first."""
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
    """Return the name of a model's variant, the usual one if none is named.

    Raises
    ------
    JudgeBayesError
        If there is no such model or variant.
    """
    if model not in MODELS:
        raise JudgeBayesError(
            f"--model {model!r} is not known; right would be {', '.join(MODELS)}."
        )
    name = next(iter(MODELS[model])) if variant is None else variant
    if name not in MODELS[model]:
        raise JudgeBayesError(
            f"--variant {name!r} is none of {model}'s; right would be {', '.join(MODELS[model])}."
        )
    return name


def build(
    data: Data,
    model: str,
    variant: str | None = None,
    prior: Mapping[str, Any] = MappingProxyType({}),
) -> Story:
    """Return a model with data in it.

    Parameters
    ----------
    data
        What it is of.
    model, variant
        By name; the usual variant if none is named.
    prior
        Fields of the model's prior (`PRIORS`) that are not as by default.

    Raises
    ------
    JudgeBayesError
        If there is no such model or variant, the data do not suit it, or a given prior has no effect:
        the variant sets it, or there is no such parameter with such votes.
    """
    variant = variant_of(model, variant)
    story = MODELS[model][variant](data, PRIORS[model](**prior))
    for name in _without_effect(story, prior) if prior else ():
        raise JudgeBayesError(
            f"The prior {name} has no effect on {model}, {variant}, with these votes; right would be to "
            "leave it out."
        )
    return story


@numpyro_lock
def _without_effect(story: Story, prior: Mapping[str, Any]) -> list[str]:
    """Return the fields that a variant sets itself, or on which the log-density does not depend."""
    model: Any = story.problem.model
    data = story.problem.data
    sites, _ = drawn_from_prior(model, data, jax.random.key(0))

    def density(changed: Any) -> Any:
        return log_density(replace(model, prior=changed), (data,), {}, sites)[0]

    slopes = jax.grad(density)(jax.tree.map(jnp.asarray, model.prior))
    return [
        name
        for name, value in prior.items()
        if getattr(model.prior, name) != value
        or not any(jnp.any(x != 0) for x in jax.tree.leaves(getattr(slopes, name)))
    ]
