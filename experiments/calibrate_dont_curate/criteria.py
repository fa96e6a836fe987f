"""Criteria for the quality of a panel, on the labelled items only."""

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from judgebayes.aggregators.base import Aggregator, Training
from judgebayes.aggregators.calibrated import random_places
from judgebayes.measures.scores import labelled_weight, mean_score, nll
from judgebayes.models.label_noise import with_label_noise
from judgebayes.panel.curate import masked
from judgebayes.votes.array import MISSING

__all__ = ["Criterion", "CrossValidated", "InSample", "folds_of"]


@runtime_checkable
class Criterion(Protocol):
    """A measure of a panel's quality on the labelled items only; lower is better."""

    def __call__(
        self, aggregator: Aggregator, data: Training, panel: Bool[Array, " judge"]
    ) -> Float[Array, ""]:
        """Return the criterion of one panel."""
        ...


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class InSample:
    """The NLL on the items that the aggregator and its map were fitted to.

    The paper's criterion: H.4 refits the one-coin model on all calibration items and beta calibration on
    an inner part of them, and selects the panel with the least NLL on this inner part, to which the map
    was fitted. Here map and criterion use all labelled items (`Calibrated(share=None)`), or the map
    uses its share and the criterion all. Either way, larger panels look better than they are, the more
    so the more parameters a judge adds.

    Parameters
    ----------
    label_noise
        The known share of wrong labels. The NLL is that of the observed labels, which nothing predicts
        with certainty; without this parameter, correct and confident panels are penalised for wrong
        labels.
    """

    label_noise: float = 0.0

    def __call__(
        self, aggregator: Aggregator, data: Training, panel: Bool[Array, " judge"]
    ) -> Float[Array, ""]:
        """Return the in-sample NLL of one panel."""
        votes = masked(data.votes, panel)
        fitted = aggregator.fit(votes, data.labels, weight=data.weight, key=data.key)
        log_observed = with_label_noise(fitted(votes), self.label_noise)
        return mean_score(nll, log_observed, data.labels, data.weight)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class CrossValidated:
    """The cross-validated NLL, over random folds of the labelled items.

    Parameters
    ----------
    folds
        The number of folds.
    label_noise
        The known share of wrong labels, as in `InSample`.
    """

    folds: int = field(default=5, metadata={"static": True})
    label_noise: float = 0.0

    def __call__(
        self, aggregator: Aggregator, data: Training, panel: Bool[Array, " judge"]
    ) -> Float[Array, ""]:
        """Return the cross-validated NLL of one panel."""
        votes = masked(data.votes, panel)
        fold = folds_of(labelled_weight(data.labels, data.weight) > 0, data.key, self.folds)

        def fold_log_probs(which: Int[Array, ""]) -> Float[Array, "item class"]:
            held_out = fold == which
            weight = jnp.where(held_out, 0.0, data.weight)
            labels = jnp.where(held_out, MISSING, data.labels)
            return aggregator.fit(votes, labels, weight=weight, key=data.key)(votes)

        log_probs_of_fold = jax.vmap(fold_log_probs)(jnp.arange(self.folds))
        log_probs = log_probs_of_fold[jnp.maximum(fold, 0), jnp.arange(votes.n_items)]
        log_observed = with_label_noise(log_probs, self.label_noise)
        return mean_score(nll, log_observed, data.labels, data.weight)


def folds_of(used: Bool[Array, " item"], key: PRNGKeyArray, folds: int) -> Int[Array, " item"]:
    """Return the fold of each used item, and -1 for the others."""
    return jnp.where(used, random_places(used, key) % folds, -1)
