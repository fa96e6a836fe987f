"""The models whose samplers are checked, by name. A new model joins with an entry here."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from judgebayes.aggregate import Davidson, HierarchicalDavidson
from judgebayes.aggregate.per_task import tasks_of
from judgebayes.experiments.sbc.engine import Subject, of_model
from judgebayes.inference import NUTS
from judgebayes.inference.problem import Chains
from judgebayes.models import davidson as davidson_model
from judgebayes.models import hierarchical_davidson as hierarchical_model
from judgebayes.votes import Votes, from_counts

__all__ = ["SUBJECTS"]

ITEMS = 60
VOTES = 4
SAMPLER = NUTS(draws=500, warmup=500, chains=2)


def some_votes(n_classes: int, n_tasks: int = 0) -> Votes:
    """Return up to four votes of one judge on sixty items; some items lack votes, one has none."""
    rng = np.random.default_rng(0)
    quality = 1.5 * rng.normal(size=(ITEMS, 1)) * np.linspace(-1, 1, n_classes)
    probs = np.exp(quality) / np.exp(quality).sum(1, keepdims=True)
    counts = rng.multinomial(np.where(np.arange(ITEMS) % 7 == 0, 2, VOTES), probs)
    counts[0] = 0
    votes = from_counts(counts)
    if not n_tasks:
        return votes
    task = jnp.asarray(np.arange(ITEMS) % n_tasks, jnp.int32)
    return Votes(votes.index, votes.score, votes.order, task, n_classes, n_tasks)


def with_unknown(labels: Array) -> Array:
    """Return the labels with every sixth unknown."""
    return jnp.where(jnp.arange(ITEMS) % 6 == 5, -1, labels)


def davidson(n_classes: int, symmetric: bool) -> Subject:
    votes = some_votes(n_classes)
    shape: dict[str, Any] = {"n_classes": n_classes, "symmetric": symmetric}

    def model(labels: Array | None) -> None:
        evidence = davidson_model.features(votes.pooled_counts(), symmetric=symmetric)
        seen = None if labels is None else with_unknown(labels)
        davidson_model.model(evidence, seen, **shape)

    def fit(labels: Array, key: PRNGKeyArray) -> Chains:
        method = Davidson(SAMPLER, symmetric=symmetric)
        return chains_of(method.fit(votes, with_unknown(labels), key=key))

    form = "symmetric" if symmetric else "free"
    return of_model(f"Davidson, {form} form, {n_classes} classes", model, "label", fit)


def hierarchical(n_tasks: int) -> Subject:
    votes = some_votes(3, n_tasks)

    def model(labels: Array | None) -> None:
        evidence = davidson_model.features(votes.pooled_counts())
        seen = None if labels is None else with_unknown(labels)
        task = tasks_of(votes)
        hierarchical_model.model(evidence, task, seen, n_tasks=n_tasks, n_classes=3)

    def fit(labels: Array, key: PRNGKeyArray) -> Chains:
        return chains_of(HierarchicalDavidson(SAMPLER).fit(votes, with_unknown(labels), key=key))

    return of_model(f"Hierarchical Davidson, {n_tasks} tasks", model, "label", fit)


def chains_of(fitted: Any) -> Chains:
    """Return the chains of a fit by NUTS."""
    assert fitted.chains is not None
    return fitted.chains


SUBJECTS: Mapping[str, Callable[[], Subject]] = {
    "davidson": partial(davidson, 3, True),
    "davidson-free": partial(davidson, 3, False),
    "davidson-binary": partial(davidson, 2, False),
    "davidson-hierarchical": partial(hierarchical, 3),
}
"""Made when asked for: nothing is drawn or compiled at import."""
