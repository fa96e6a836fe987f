"""The one-coin model: each judge has its own accuracy, which does not depend on the class.

Source: *Calibrate, don't curate* (P2), section 2.1 and eq 1.

The story. Judge j has the accuracy r_j ~ Beta(a, b), a = b = 1 in the paper. Item i has the label
y_i among K classes; each vote of judge j on it, given y_i and r_j, is the label with probability
r_j and each other class with probability (1 - r_j) / (K - 1). Missing votes carry no information.

Label noise. An observed label z may be wrong with probability e, any other class alike; the program
sums out the true class y of each item.

`judgebayes.inference.fast.one_coin_counts` has the conjugate posterior and the paper's weights (eq 1).
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist

from judgebayes.models.base import PanelData, PanelProgram, Scalar, Sites, Traits, uniform_class
from judgebayes.models.distributions import CoinVotes


class OneCoinPrior(NamedTuple):
    """The Beta prior of every judge's accuracy."""

    accuracy: tuple[Scalar, Scalar] = (1.0, 1.0)
    """a and b, both positive: pseudo-counts of right and wrong votes."""


@dataclass(frozen=True)
class OneCoinModel(PanelProgram):
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
        self.observe({"accuracy": accuracy}, data)

    def votes(self, sites: Sites, data: PanelData) -> CoinVotes:
        """Return the distribution of the votes; classes are uniform."""
        log_class, accuracy = uniform_class(len(data.cast), self.n_classes), sites["accuracy"]
        return CoinVotes(log_class, jnp.log(accuracy), jnp.log1p(-accuracy), data.cast)
