"""Models of panels whose samplers are checked: votes of several judges, or counts of them."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from judgebayes.aggregate import DawidSkene, OneCoin, Stacking
from judgebayes.experiments.sbc.common import (
    SAMPLER,
    chains_of,
    factor_of,
    from_prior,
    with_unknown,
)
from judgebayes.experiments.sbc.engine import Subject
from judgebayes.inference.problem import Chains, Sites
from judgebayes.irt import ItemResponse
from judgebayes.models import dawid_skene as dawid_skene_model
from judgebayes.models import generator_validator as generator_model
from judgebayes.models import irt as irt_model
from judgebayes.models import one_coin as one_coin_model
from judgebayes.models import stacking as stacking_model
from judgebayes.models.stacking import Form
from judgebayes.precision.counts import PrecisionCounts
from judgebayes.precision.posterior import GeneratorValidator, counted
from judgebayes.votes import Votes

__all__ = ["dawid_skene", "generator_validator", "item_response", "one_coin", "stacking"]

ITEMS, JUDGES, SKIPPED = 60, 4, 0.1
TEST_ITEMS, TEST_JUDGES = 10, 6
GENERATORS, LABELLED, OUTPUTS = 4, 2, 40


def one_coin() -> Subject:
    """Return the one-coin model, whose posterior is not sampled but known."""
    labels = jnp.asarray(np.random.default_rng(0).integers(0, 2, ITEMS))
    everywhere = jnp.ones(ITEMS)

    def model(index: Array, weight: Array) -> None:
        one_coin_model.model(index, labels, weight, n_classes=2)

    def generate(key: PRNGKeyArray) -> tuple[Sites, Any]:
        of_sites, of_votes = jax.random.split(key)
        sites = from_prior(partial(model, unasked(), 0 * everywhere), of_sites)
        right = jax.random.uniform(of_votes, (ITEMS, JUDGES)) < sites["accuracy"]
        return sites, shown(jnp.where(right, labels[:, None], 1 - labels[:, None]))

    def fit(index: Array, key: PRNGKeyArray) -> Chains:
        fitted = OneCoin().fit(votes_of(index, 2), labels)
        drawn = jax.random.beta(key, fitted.alpha, fitted.beta, (2, 500, JUDGES))
        nothing = jnp.zeros((2, 500))
        return Chains({"accuracy": drawn}, nothing > 0, nothing, nothing, nothing)

    def log_likelihood(sites: Sites, index: Any) -> Float[Array, ""]:
        return factor_of(
            partial(model, index, everywhere), partial(model, index, 0 * everywhere), sites
        )

    return Subject("One coin, the conjugate posterior", generate, fit, log_likelihood)


def dawid_skene(n_classes: int) -> Subject:
    """Return Dawid and Skene's model; every second label is known."""
    known = jnp.arange(ITEMS) % 2 == 0
    everywhere = jnp.ones(ITEMS)

    def model(data: tuple[Array, Array], weight: Array) -> None:
        index, labels = data
        count = dawid_skene_model.counts(index, n_classes)
        dawid_skene_model.model(count, labels, weight, n_judges=JUDGES, n_classes=n_classes)

    def generate(key: PRNGKeyArray) -> tuple[Sites, Any]:
        of_sites, of_labels, of_votes = jax.random.split(key, 3)
        blank = unasked(), jnp.full(ITEMS, -1)
        sites = from_prior(partial(model, blank, 0 * everywhere), of_sites)
        truth = jax.random.categorical(of_labels, jnp.log(sites["pi"]), shape=(ITEMS,))
        rows = jnp.log(sites["confusion"])[:, truth].swapaxes(0, 1)  # item judge vote
        return sites, (shown(jax.random.categorical(of_votes, rows)), jnp.where(known, truth, -1))

    def fit(data: tuple[Array, Array], key: PRNGKeyArray) -> Chains:
        index, labels = data
        return chains_of(DawidSkene(SAMPLER).fit(votes_of(index, n_classes), labels, key=key))

    def log_likelihood(sites: Sites, data: Any) -> Float[Array, ""]:
        return factor_of(
            partial(model, data, everywhere), partial(model, data, 0 * everywhere), sites
        )

    return Subject(f"Dawid-Skene, {n_classes} classes", generate, fit, log_likelihood)


def stacking(symmetric: bool) -> Subject:
    """Return logistic stacking, its weights centred on zero.

    The usual centre is learnt from the same labels (empirical Bayes): that is no prior to draw from.
    """
    rng = np.random.default_rng(1)
    index = shown(jnp.asarray(rng.integers(0, 2, (ITEMS, JUDGES))))
    form = Form(JUDGES, 2, symmetric)
    design = stacking_model.features(index, form)
    nowhere = jnp.zeros(JUDGES)

    def model(labels: Array) -> None:
        stacking_model.model(design, nowhere, labels, jnp.ones(ITEMS), form=form, kappa=0.0)

    def generate(key: PRNGKeyArray) -> tuple[Sites, Any]:
        of_sites, of_labels = jax.random.split(key)
        sites = from_prior(partial(model, jnp.full(ITEMS, -1)), of_sites)
        flat = form.join(stacking_model.parameters(sites, nowhere, 0.0, form))
        drawn = jax.random.categorical(of_labels, stacking_model.link(flat, design, form))
        return sites, with_unknown(drawn)

    def fit(labels: Array, key: PRNGKeyArray) -> Chains:
        method = Stacking(SAMPLER, symmetric=symmetric, kappa=0.0)
        return chains_of(method.fit(votes_of(index, 2), labels, key=key))

    def log_likelihood(sites: Sites, labels: Any) -> Float[Array, ""]:
        return factor_of(partial(model, labels), partial(model, 0 * labels - 1), sites)

    name = "symmetric" if symmetric else "free"
    return Subject(f"Stacking, {name} form", generate, fit, log_likelihood)


def item_response() -> Subject:
    """Return the two-parameter logistic model of six judges on ten labelled items."""
    labels = jnp.asarray(np.random.default_rng(2).integers(0, 2, TEST_ITEMS))

    def model(index: Array, weight: Array) -> None:
        count = (index[..., None] == jnp.arange(2)).sum(2)
        irt_model.model(irt_model.evidence(count, labels, weight))

    def generate(key: PRNGKeyArray) -> tuple[Sites, Any]:
        of_sites, of_votes = jax.random.split(key)
        blank = jnp.full((TEST_ITEMS, TEST_JUDGES, 1), -1)
        sites = from_prior(partial(model, blank, jnp.zeros(TEST_ITEMS)), of_sites)
        slope = jnp.exp(sites["log_discrimination"])[:, None]
        logits = slope * (sites["ability"] - sites["difficulty"][:, None])
        right = jax.random.bernoulli(of_votes, jax.nn.sigmoid(logits))
        return sites, jnp.where(right, labels[:, None], 1 - labels[:, None])[..., None]

    def fit(index: Array, key: PRNGKeyArray) -> Chains:
        method = ItemResponse(prior=irt_model.Prior(), inference=SAMPLER)
        return chains_of(method.fit(votes_of(index, 2), labels, key=key))

    def log_likelihood(sites: Sites, index: Any) -> Float[Array, ""]:
        everywhere = jnp.ones(TEST_ITEMS)
        return factor_of(
            partial(model, index, everywhere), partial(model, index, 0 * everywhere), sites
        )

    return Subject("2PL, six judges on ten items", generate, fit, log_likelihood)


def generator_validator(form: Any) -> Subject:
    """Return the generator-validator model of counts: forty outputs of each of four generators.

    Two generators are labelled. Judges are independent given the rates, as the model has them.
    """
    hierarchical = form == "hierarchical"
    model = generator_model.hierarchical_model if hierarchical else generator_model.flat_model
    labelled = jnp.arange(GENERATORS) < LABELLED
    cells = jnp.broadcast_to(labelled[:, None], (GENERATORS, JUDGES))

    def generate(key: PRNGKeyArray) -> tuple[Sites, Any]:
        of_sites, *keys = jax.random.split(key, 5)
        sites = from_prior(partial(model, counted(nothing_counted())), of_sites)
        g, tpr, fpr, fitted = shifted_rates(sites) if hierarchical else flat_rates(sites)
        outputs = jnp.where(labelled, OUTPUTS, 0)
        valid = jax.random.binomial(keys[0], outputs, g)
        valid_judged = jnp.where(cells, valid[:, None], 0.0)
        invalid_judged = jnp.where(cells, (outputs - valid)[:, None], 0.0)
        judged = jnp.where(cells, 0.0, OUTPUTS)
        return sites, PrecisionCounts(
            accepted=jax.random.binomial(keys[1], judged, fitted),
            judged=judged,
            true_accepted=jax.random.binomial(keys[2], valid_judged, tpr),
            valid_judged=valid_judged,
            false_accepted=jax.random.binomial(keys[3], invalid_judged, fpr),
            invalid_judged=invalid_judged,
            valid=valid,
            invalid=outputs - valid,
            unlabelled=jnp.where(labelled, 0.0, OUTPUTS),
        )

    def fit(counts: PrecisionCounts, key: PRNGKeyArray) -> Chains:
        return chains_of(GeneratorValidator(form, SAMPLER).fit(counts, key=key))

    def log_likelihood(sites: Sites, counts: Any) -> Float[Array, ""]:
        empty = counted(nothing_counted())
        return factor_of(partial(model, counted(counts)), partial(model, empty), sites)

    return Subject(f"Generators and judges, {form} form", generate, fit, log_likelihood)


Rates = tuple[
    Float[Array, " generator"],
    Float[Array, "generator judge"],
    Float[Array, "generator judge"],
    Float[Array, "generator judge"],
]
"""Precisions, true and false positive rates, and shares of unlabelled outputs accepted."""


def flat_rates(sites: Sites) -> Rates:
    """Return what counts are drawn from in the flat form."""
    g, tpr, fpr = (sites[name] for name in ("g", "tpr", "fpr"))
    wide = jnp.zeros((GENERATORS, 1))
    return g, wide + tpr, wide + fpr, g[:, None] * tpr + (1 - g[:, None]) * fpr


def shifted_rates(sites: Sites) -> Rates:
    """Return what counts are drawn from in the hierarchical form: the story, told once more."""
    sigma = jnp.exp(sites["log_sigma"])
    eta = sites["centre"][2] + 1.5 * sites["eta"]
    lean = sites["centre"][0] + 0.7 * sites["a"] + (sites["slope"] * eta)[:, None]
    know = sites["centre"][1] + 0.7 * sites["kappa"] + (sigma[1] * sites["u"])[:, None]
    q, k = jax.nn.sigmoid(lean + (sigma[0] * sites["d"])[:, None]), jax.nn.sigmoid(know)
    g = jax.nn.sigmoid(eta)
    taste = sigma[2] * sites["e"]

    def moved(p: Array) -> Array:
        return jax.nn.sigmoid(jax.scipy.special.logit(p) + taste)

    both = k * g[:, None] + (1 - k) * q
    return g, moved(k + (1 - k) * q), moved((1 - k) * q), moved(both)


def nothing_counted() -> PrecisionCounts:
    """Return counts of zero."""
    cell, row = jnp.zeros((GENERATORS, JUDGES)), jnp.zeros(GENERATORS)
    return PrecisionCounts(cell, cell, cell, cell, cell, cell, row, row, row)


def unasked() -> Int[Array, "item judge 1"]:
    """Return votes none of which was given."""
    return jnp.full((ITEMS, JUDGES, 1), -1)


def shown(votes: Int[Array, "item judge"]) -> Int[Array, "item judge 1"]:
    """Return votes with a tenth not given, always the same."""
    gone = np.random.default_rng(3).uniform(size=(ITEMS, JUDGES)) < SKIPPED
    return jnp.where(gone, -1, votes)[..., None]


def votes_of(index: Int[Array, "item judge 1"], n_classes: int) -> Votes:
    """Return votes as the library takes them."""
    return Votes(index.astype(jnp.int8), None, None, None, n_classes)
