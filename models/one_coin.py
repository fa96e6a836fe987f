"""The one-coin model: each judge has its own accuracy, which does not depend on the class.

Source: *Calibrate, don't curate* (P2), section 2.1 and eq 1.

The story. Judge j has the accuracy r_j ~ Beta(a, b), a = b = 1 in the paper. Item i has the label
y_i among K classes; each vote of judge j on it, given y_i and r_j, is the label with probability
r_j and each other class with probability (1 - r_j) / (K - 1). Missing votes carry no information.

Label noise. An observed label z may be wrong with probability e, any other class alike; the program
sums out the true class y of each item.

`judgebayes.inference.fast.one_coin_counts` has the conjugate posterior and the paper's weights (eq 1).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from judgebayes.models.base import PanelData, Scalar, Traits, observe_panel, uniform_class
from judgebayes.models.distributions import CoinVotes


class OneCoinPrior(NamedTuple):
    """The Beta prior of every judge's accuracy."""

    accuracy: tuple[Scalar, Scalar] = (1.0, 1.0)
    """a and b, both positive: pseudo-counts of right and wrong votes."""


@dataclass(frozen=True)
class OneCoinModel:
    """The program: accuracies, then the labels and the votes on the labelled items.

    Sites: `accuracy` (judge); `label` (item), `votes` (item, judge, sample). Labels are uniform.
    """

    n_classes: int = 2
    prior: OneCoinPrior = OneCoinPrior()
    noise: Scalar = 0.0
    """The known share of the labels that are wrong."""
    traits: ClassVar[Traits] = Traits(("label", "votes"), "labelled items")

    def __call__(self, data: PanelData) -> None:
        """Sample the judges' accuracies, then labels and votes."""
        with numpyro.plate("judge", data.cast.shape[1]):
            accuracy = numpyro.sample("accuracy", dist.Beta(*self.prior.accuracy))
        observe_panel(
            uniform_class(len(data.cast), self.n_classes),
            lambda log_class: self._votes(log_class, accuracy, data),
            data,
            noise=self.noise,
            labelled_only=True,
        )

    def predict(self, sites: Mapping[str, Array], data: PanelData) -> Float[Array, "item class"]:
        """Return the log-probabilities of the items' classes given their votes."""
        log_class = uniform_class(len(data.cast), self.n_classes)
        return self._votes(log_class, sites["accuracy"], data).log_class_given(data.votes)

    def _votes(
        self, log_class: Float[Array, "item class"], accuracy: Array, data: PanelData
    ) -> CoinVotes:
        return CoinVotes(log_class, jnp.log(accuracy), jnp.log1p(-accuracy), data.cast)
