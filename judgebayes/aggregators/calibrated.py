"""An aggregator followed by a calibrator, as one aggregator."""

from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from judgebayes.aggregators.base import Aggregator, FittedAggregator, Training, VoteMethod
from judgebayes.arrays import ItemCodes, ItemValues, Key, LogProbs, Scalar
from judgebayes.calibrators.base import Calibrator, FittedCalibrator, require
from judgebayes.compiled.float64 import in_float64
from judgebayes.inference.registry import in_files
from judgebayes.inference.status import worst
from judgebayes.inference.summary import summary
from judgebayes.measures.scores import labelled_weight
from judgebayes.votes.array import MISSING, Votes


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Calibrated(VoteMethod["FittedCalibrated"]):
    """Aggregate, then calibrate: both steps are fitted to the labelled items.

    A map should be fitted to items that the aggregator was not fitted to; otherwise it trusts
    predictions that were fitted to their own labels. Three protocols:

    - `share=0.7`: the aggregator is fitted to 70 % of the labelled items, the calibrator to the
      other 30 %. P2's nested protocol (section 4.4 and Appendix H.10).
    - `share=None`: both are fitted to all labelled items. P2's Table 11 ("uses the full calibration
      half for both steps", H.10). Reliable only if the aggregator has few parameters.
    - `cross_fit=5`: the aggregator is fitted five times, each time without a fifth of the labelled
      items, and predicts these; the calibrator is fitted to all of these predictions and applied to
      an aggregator that is fitted to all labelled items. Not in the paper. It uses every label in
      both steps.

    The division of the labelled items is random and determined by the key; it does not depend on items
    without a label or with weight 0. Items held out from the aggregator are treated like unlabelled
    items: they are dropped, or, if there are unlabelled items, used without their label.

    Parameters
    ----------
    aggregator, calibrator
        The aggregator, and the map that is fitted to its predictions.
    share
        The aggregator's share of the labelled items; None to use all of them for both.
    cross_fit
        The number of folds; `share` is then ignored.

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

    labelled_only = False
    aggregator: Aggregator
    calibrator: Calibrator
    share: float | None = 0.7
    cross_fit: int | None = field(default=None, metadata={"static": True})

    def _fitted(self, data: Training) -> "FittedCalibrated":
        first = first_stage(self.aggregator, data, self.share, self.cross_fit)
        fitted = self.calibrator.fit(first.log_probs, data.labels, weight=first.weight)
        return FittedCalibrated(first.aggregator, fitted)


@in_files
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FittedCalibrated:
    """A fitted aggregator and its calibration map."""

    aggregator: FittedAggregator
    calibrator: FittedCalibrator

    __repr__ = summary

    @property
    @in_float64
    def status(self) -> Int[Array, "*batch"]:
        """The worse status of the two."""
        return worst(self.aggregator.status, self.calibrator.status)

    @in_float64
    def __call__(self, votes: Votes) -> LogProbs:
        """Return the calibrated log-probabilities of the items."""
        return self.calibrator(self.aggregator(votes))


class FirstStage(NamedTuple):
    """A fitted aggregator, and the training data of its calibrator."""

    aggregator: FittedAggregator
    log_probs: LogProbs
    weight: ItemValues


def first_stage(
    aggregator: Aggregator, data: Training, share: Scalar | None, cross_fit: int | None
) -> FirstStage:
    """Return the fitted aggregator and its predictions for the calibrator's part of the items.

    Raises
    ------
    JudgeBayesError
        If the share or the number of folds is invalid.
    """
    if cross_fit is not None:
        return _cross_fitted(aggregator, data, cross_fit)
    if share is None:
        fitted = aggregator.fit(data.votes, data.labels, weight=data.weight, key=data.key)
        return FirstStage(fitted, fitted(data.votes), data.weight)
    within = (share > 0) & (share < 1)
    require("share", share, within, "between 0 and 1, or None for all items to both steps")
    division_key, key = jax.random.split(data.key)
    used = labelled_weight(data.labels, data.weight) > 0
    held_out = used & (random_places(used, division_key) >= jnp.round(share * used.sum()))
    fitted = _fit_without(aggregator, data, held_out, key)
    return FirstStage(fitted, fitted(data.votes), jnp.where(held_out, data.weight, 0.0))


def _cross_fitted(aggregator: Aggregator, data: Training, folds: int) -> FirstStage:
    require("cross_fit", folds, folds >= 2, "2 folds or more")
    division_key, last, *keys = jax.random.split(data.key, 2 + folds)
    used = labelled_weight(data.labels, data.weight) > 0
    fold = random_places(used, division_key) % folds

    def fit_and_predict(which: Int[Array, ""], key: Key) -> tuple[LogProbs, FittedAggregator]:
        fitted = _fit_without(aggregator, data, used & (fold == which), key)
        return fitted(data.votes), fitted

    # The last fold is empty: the same program fits the aggregator to all items.
    by_fold, fits = jax.vmap(fit_and_predict)(jnp.arange(folds + 1), jnp.stack([*keys, last]))
    fitted = jax.tree.map(lambda x: x[folds], fits)
    return FirstStage(fitted, by_fold[fold, jnp.arange(len(fold))], data.weight)


def _fit_without(
    aggregator: Aggregator, data: Training, held_out: Bool[Array, " item"], key: Key
) -> FittedAggregator:
    """Return the aggregator fitted without the labels of some items."""
    unlabelled = jnp.any((data.labels < 0) & (data.weight > 0))
    return aggregator.fit(
        data.votes,
        jnp.where(held_out, MISSING, data.labels),
        weight=jnp.where(held_out & ~unlabelled, 0.0, data.weight),
        key=key,
    )


def random_places(used: Bool[Array, " item"], key: Key) -> ItemCodes:
    """Return each used item's rank in a random order that depends only on the used items."""
    place = used.cumsum() - 1
    draws = jax.vmap(lambda i: jax.random.uniform(jax.random.fold_in(key, i)))(place)
    return jnp.argsort(jnp.argsort(jnp.where(used, draws, jnp.inf)))
