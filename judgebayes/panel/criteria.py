"""How good a panel is, judged on the labelled items alone."""

from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from judgebayes.aggregators.base import Aggregator, Training
from judgebayes.aggregators.calibrated import random_places
from judgebayes.arrays import AnyArray
from judgebayes.measures.scores import labelled_weight, mean_score, nll
from judgebayes.models.label_noise import with_label_noise
from judgebayes.votes.array import MISSING, Votes

__all__ = ["Criterion", "CrossValidated", "InSample", "folds_of", "masked"]


def masked(votes: Votes, panel: Bool[AnyArray, " judge"]) -> Votes:
    """Return the votes of a panel; those of the other judges become missing, shapes stay."""
    inside = jnp.asarray(panel)[:, None]
    return replace(
        votes,
        index=jnp.where(inside, votes.index, MISSING),
        score=None if votes.score is None else jnp.where(inside, votes.score, jnp.nan),
    )


@runtime_checkable
class Criterion(Protocol):
    """How good a panel is, judged on the labelled items alone; lower is better."""

    def __call__(
        self, aggregator: Aggregator, data: Training, panel: Bool[Array, " judge"]
    ) -> Float[Array, ""]:
        """Return the criterion of one panel."""
        ...


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class InSample:
    """The NLL on the items that the aggregator and its map were fitted to.

    The paper's: H.4 refits the one-coin model on all calibration items and beta calibration on an
    inner part of them, and takes the panel with the least NLL on that inner part, the one that the
    map was fitted to. Here map and criterion see all labelled items (`Calibrated(share=None)`), or
    the map's share of them and the criterion all. Either way larger panels look better than they
    are, the more so the more parameters a judge brings.

    Parameters
    ----------
    label_noise
        The known share of the labels that are wrong: the NLL is that of the seen labels, which no
        answer foretells for certain. Without it panels that are sure, and right, pay for them.
    """

    label_noise: float = 0.0

    def __call__(
        self, aggregator: Aggregator, data: Training, panel: Bool[Array, " judge"]
    ) -> Float[Array, ""]:
        """Return the in-sample NLL of one panel."""
        votes = masked(data.votes, panel)
        fitted = aggregator.fit(votes, data.labels, weight=data.weight, key=data.key)
        seen = with_label_noise(fitted(votes), self.label_noise)
        return mean_score(nll, seen, data.labels, data.weight)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class CrossValidated:
    """The NLL on items that were left out of the fit, in random folds of the labelled ones.

    Parameters
    ----------
    folds
        How many folds.
    label_noise
        The known share of the labels that are wrong, as in `InSample`.
    """

    folds: int = field(default=5, metadata={"static": True})
    label_noise: float = 0.0

    def __call__(
        self, aggregator: Aggregator, data: Training, panel: Bool[Array, " judge"]
    ) -> Float[Array, ""]:
        """Return the cross-validated NLL of one panel."""
        votes = masked(data.votes, panel)
        fold = folds_of(labelled_weight(data.labels, data.weight) > 0, data.key, self.folds)

        def answers(which: Int[Array, ""]) -> Float[Array, "item class"]:
            held = fold == which
            weight = jnp.where(held, 0.0, data.weight)
            labels = jnp.where(held, MISSING, data.labels)
            return aggregator.fit(votes, labels, weight=weight, key=data.key)(votes)

        by_fold = jax.vmap(answers)(jnp.arange(self.folds))
        log_probs = by_fold[jnp.maximum(fold, 0), jnp.arange(votes.n_items)]
        seen = with_label_noise(log_probs, self.label_noise)
        return mean_score(nll, seen, data.labels, data.weight)


def folds_of(used: Bool[Array, " item"], key: PRNGKeyArray, folds: int) -> Int[Array, " item"]:
    """Return the fold of each used item, -1 of the others, whatever stands between them."""
    return jnp.where(used, random_places(used, key) % folds, -1)
