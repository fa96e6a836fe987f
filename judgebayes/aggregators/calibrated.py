"""An aggregator and a calibrator behind it, as one aggregator."""

from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from judgebayes.aggregators.base import Aggregator, FittedAggregator, Training, training
from judgebayes.arrays import AnyArray, Scalar
from judgebayes.calibrators.base import Calibrator, FittedCalibrator, require
from judgebayes.compiled.float64 import in_float64
from judgebayes.inference.registry import in_files
from judgebayes.inference.status import worst
from judgebayes.inference.summary import summary
from judgebayes.measures.scores import labelled_weight
from judgebayes.votes.array import MISSING, Votes

__all__ = ["Calibrated", "FittedCalibrated", "random_places"]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Calibrated:
    """Aggregate, then calibrate: both learnt from the labelled items.

    The items that a map is learnt from should be new to the aggregator, or the map learns to trust
    answers that were fitted to their own labels. Three protocols:

    - `share=0.7`: the aggregator learns from 70 % of the labelled items, the calibrator from the
      other 30 %. P2's nested protocol (section 4.4 and Appendix H.10).
    - `share=None`: both learn from all labelled items. P2's Table 11 ("uses the full calibration
      half for both steps", H.10). Honest only where the aggregator has few parameters.
    - `cross_fit=5`: the aggregator is fitted five times, each time without a fifth of the labelled
      items, and answers for these; the calibrator learns from all of these answers, and stands
      behind an aggregator that was fitted to all labelled items. Not in the paper: no label is
      spent on one step only.

    The division is random, decided by the key, and concerns labelled items alone: items without a
    label or with weight 0 do not move it. Items that the aggregator must not see are treated as
    the unlabelled ones are: left out, or seen without their label where there are any.

    Parameters
    ----------
    aggregator, calibrator
        What is fitted first, and what is fitted to its answers.
    share
        The aggregator's share of the labelled items; None to share all of them.
    cross_fit
        The number of folds; `share` then plays no part.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import judgebayes as jb
    >>> panel = {"ann": [1, 1, 0, 0, 1, 0], "ben": [1, 1, 0, 1, 1, 0], "cy": [0, 1, 1, 0, 0, 1]}
    >>> votes, _ = jb.encode_wide(pd.DataFrame(panel).rename_axis("item"))
    >>> labels = np.array([1, 1, 0, 1, 0, -1])
    >>> method = jb.Calibrated(jb.OneCoin(), jb.Temperature(), share=None)
    >>> print(np.exp(method.fit(votes, labels)(votes))[:, 1].round(2))
    [0.79 0.69 0.21 0.69 0.79 0.21]
    """

    aggregator: Aggregator
    calibrator: Calibrator
    share: float | None = 0.7
    cross_fit: int | None = field(default=None, metadata={"static": True})

    @in_float64
    def fit(
        self,
        votes: Votes,
        labels: Int[AnyArray, " item"],
        *,
        weight: Float[AnyArray, " item"] | None = None,
        key: PRNGKeyArray | None = None,
    ) -> "FittedCalibrated":
        """Return the aggregator and the calibrator behind it.

        Raises
        ------
        JudgeBayesError
            If the share or the number of folds is impossible, lengths differ, or a weight is
            negative.
        """
        data = training(votes, labels, weight, key, labelled_only=False)
        first = first_stage(self.aggregator, data, self.share, self.cross_fit)
        fitted = self.calibrator.fit(first.log_probs, data.labels, weight=first.weight)
        return FittedCalibrated(first.aggregator, fitted)


@in_files
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FittedCalibrated:
    """A fitted aggregator and the map behind it."""

    aggregator: FittedAggregator
    calibrator: FittedCalibrator

    __repr__ = summary

    @property
    @in_float64
    def status(self) -> Int[Array, "*batch"]:
        """The worse status of the two."""
        return worst(self.aggregator.status, self.calibrator.status)

    @in_float64
    def __call__(self, votes: Votes) -> Float[Array, "item class"]:
        """Return the calibrated log-probabilities of the items."""
        return self.calibrator(self.aggregator(votes))


class FirstStage(NamedTuple):
    """A fitted aggregator, and what a calibrator behind it may learn from."""

    aggregator: FittedAggregator
    log_probs: Float[Array, "item class"]
    weight: Float[Array, " item"]


def first_stage(
    aggregator: Aggregator, data: Training, share: Scalar | None, cross_fit: int | None
) -> FirstStage:
    """Return the fitted aggregator and its answers for the calibrator's part of the items.

    Raises
    ------
    JudgeBayesError
        If the share or the number of folds is impossible.
    """
    if cross_fit is not None:
        return _cross_fitted(aggregator, data, cross_fit)
    if share is None:
        fitted = aggregator.fit(data.votes, data.labels, weight=data.weight, key=data.key)
        return FirstStage(fitted, fitted(data.votes), data.weight)
    within = (share > 0) & (share < 1)
    require("share", share, within, "between 0 and 1, or None for all items to both steps")
    own, key = jax.random.split(data.key)
    used = labelled_weight(data.labels, data.weight) > 0
    held = used & (random_places(used, own) >= jnp.round(share * used.sum()))
    fitted = _fit_without(aggregator, data, held, key)
    return FirstStage(fitted, fitted(data.votes), jnp.where(held, data.weight, 0.0))


def _cross_fitted(aggregator: Aggregator, data: Training, folds: int) -> FirstStage:
    require("cross_fit", folds, folds >= 2, "2 folds or more")
    own, last, *keys = jax.random.split(data.key, 2 + folds)
    used = labelled_weight(data.labels, data.weight) > 0
    fold = random_places(used, own) % folds

    def answers(
        which: Int[Array, ""], key: PRNGKeyArray
    ) -> tuple[Float[Array, "item class"], FittedAggregator]:
        fitted = _fit_without(aggregator, data, used & (fold == which), key)
        return fitted(data.votes), fitted

    # One more fold, which holds no item: the fit to all of them, by the same program.
    by_fold, fits = jax.vmap(answers)(jnp.arange(folds + 1), jnp.stack([*keys, last]))
    fitted = jax.tree.map(lambda x: x[folds], fits)
    return FirstStage(fitted, by_fold[fold, jnp.arange(len(fold))], data.weight)


def _fit_without(
    aggregator: Aggregator, data: Training, held: Bool[Array, " item"], key: PRNGKeyArray
) -> FittedAggregator:
    """Return the aggregator fitted without the labels of some items."""
    unlabelled = jnp.any((data.labels < 0) & (data.weight > 0))
    return aggregator.fit(
        data.votes,
        jnp.where(held, MISSING, data.labels),
        weight=jnp.where(held & ~unlabelled, 0.0, data.weight),
        key=key,
    )


def random_places(used: Bool[Array, " item"], key: PRNGKeyArray) -> Int[Array, " item"]:
    """Return each used item's place in a random order of them, whatever stands between them."""
    place = used.cumsum() - 1
    draw = jax.vmap(lambda i: jax.random.uniform(jax.random.fold_in(key, i)))(place)
    return jnp.argsort(jnp.argsort(jnp.where(used, draw, jnp.inf)))
