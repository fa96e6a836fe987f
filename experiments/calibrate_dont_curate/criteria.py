"""Criteria for the quality of a panel, on the labelled items only."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import jax
from jaxtyping import Array, Bool, Float

from judgebayes.inference.fit import Method, Training
from judgebayes.measures.scores import mean_score, nll
from judgebayes.models.base import with_label_noise
from judgebayes.panel.judges import masked


@runtime_checkable
class Criterion(Protocol):
    """A measure of a panel's quality on the labelled items only; lower is better."""

    def __call__(
        self, aggregator: Method, data: Training, panel: Bool[Array, " judge"]
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
        self, aggregator: Method, data: Training, panel: Bool[Array, " judge"]
    ) -> Float[Array, ""]:
        """Return the in-sample NLL of one panel."""
        votes = masked(data.given, panel)
        fitted = aggregator.fit(votes, data.labels, weight=data.weight, key=data.key)
        log_observed = with_label_noise(fitted(votes), self.label_noise)
        return mean_score(nll, log_observed, data.labels, data.weight)
