"""Quantities derived from a program and its data: draws of both, and the likelihood of each item.

Nothing here is specific to a model: a program is run under NumPyro's handlers. The functions run inside
compiled code; callers hold `inference.numpyro_lock`, because NumPyro has one stack of handlers.
"""

from collections.abc import Collection, Mapping
from typing import Any, TypeVar

import jax.numpy as jnp
import numpyro
from jaxtyping import Array, Float

from judgebayes.arrays import ItemValues, Key
from judgebayes.inference.problem import Sites
from judgebayes.models.base import Model, Predictor
from judgebayes.models.label_noise import with_label_noise

D = TypeVar("D")
FIELDS = {"label": "labels"}
"""Fields of the data that do not have the name of their site."""


def drawn_from_prior(
    model: Model, data: Any, key: Key, observed: Collection[str] = ()
) -> tuple[Sites, Sites]:
    """Return parameters drawn from the prior, and data given them in the shape of `data`."""
    trace = numpyro.handlers.trace(numpyro.handlers.seed(model, key))
    sites = trace.get_trace(data, observed=observed)
    values = {n: s["value"] for n, s in sites.items() if s["type"] == "sample"}
    generated = {n: x for n, x in values.items() if n in _generated(model) and n not in observed}
    return {n: x for n, x in values.items() if n not in _generated(model)}, generated


def replicated(
    model: Model, data: Any, key: Key, sites: Sites, observed: Collection[str] = ()
) -> Sites:
    """Return replicated data for one draw of the parameters; `observed` sites keep their values."""
    substituted = numpyro.handlers.substitute(numpyro.handlers.seed(model, key), data=dict(sites))
    trace = numpyro.handlers.trace(substituted).get_trace(data, observed=observed)
    return {n: trace[n]["value"] for n in _generated(model) if n in trace and n not in observed}


def log_likelihoods(model: Model, data: Any, sites: Sites) -> dict[str, Float[Array, "..."]]:
    """Return the log-likelihood of every item (or cell) by observed site, masked ones 0.

    Weights are left out: it is what `numpyro.infer.log_likelihood` returns, for one draw.
    """
    substituted = numpyro.handlers.substitute(model, data=dict(sites))
    trace = numpyro.handlers.trace(substituted).get_trace(data)
    return {n: trace[n]["fn"].log_prob(trace[n]["value"]) for n in model.traits.sites}


def pointwise(model: Model, data: Any, sites: Sites) -> dict[str, ItemValues]:
    """Return the log-likelihoods of each item by site, as leave-one-out cross-validation needs them.

    For a label given the votes this is `predict` at the label, with label noise; for other sites the
    log-likelihood of the site. A program that integrates out an item's own parameters defines its own
    `pointwise`.
    """
    own = getattr(model, "pointwise", None)
    if own is not None:
        declared: dict[str, ItemValues] = own(sites, data)
        return declared
    each = log_likelihoods(model, data, sites)
    if "label" in each and isinstance(model, Predictor):
        label = jnp.maximum(data.labels, 0)[:, None]
        log_probs = with_label_noise(model.predict(sites, data), getattr(model, "noise", 0.0))
        each["label"] = jnp.take_along_axis(log_probs, label, axis=1)[:, 0]
    return each


def quantities(model: Model, data: Any, sites: Sites) -> Sites:
    """Return the reported quantities of one draw: the program's `quantities`, or its parameters."""
    own = getattr(model, "quantities", None)
    values: Sites = dict(sites) if own is None else own(sites, data)
    return values


def filled(data: D, drawn: Mapping[str, Array]) -> D:
    """Return the data with drawn values in place of the observed ones."""
    own = getattr(data, "filled", None)
    replace: Any = data._replace if own is None else own  # type: ignore[attr-defined]
    return replace(**{FIELDS.get(name, name): x for name, x in drawn.items()})


def _generated(model: Model) -> tuple[str, ...]:
    """Return all sites that generate data."""
    return (*model.traits.sites, *model.traits.latent_data)
