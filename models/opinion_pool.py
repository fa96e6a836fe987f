r"""A logarithmic opinion pool: the label given the probabilities of several methods.

The story. M methods give item i the log-probabilities log p_mi(k) of the classes; its label is drawn
from the weighted geometric mean of the probabilities (Genest and Zidek 1986)::

    log p(k) = sum_m a_m log p_mi(k) + c_k + const,   a_m ~ Normal(total / M, spread total / M)
    c_k ~ Normal(0, 1/2),   c_0 = 0

without the intercepts c in pairs whose order is arbitrary. Weights need not sum to one: a sum below one
makes answers less sure, as a temperature does. The probabilities are given, and should be predicted
without the item's own label.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from judgebayes.models.base import ProbsData, Scalar, Traits, observe_label
from judgebayes.models.distributions import LEAST


class OpinionPoolPrior(NamedTuple):
    """Normal priors of the methods' weights and of the intercepts."""

    total: Scalar = 1.0
    """The mean of the sum of the weights; every method's weight has the same mean."""
    spread: Scalar = 0.7
    """The standard deviation of each weight, as a share of its mean."""
    intercept: Scalar = 0.5
    """The standard deviation of each intercept, in log-odds."""


@dataclass(frozen=True)
class OpinionPoolModel:
    """The program: the methods' weights, then each item's label given their probabilities.

    Sites: `weight` (method); `intercept` (class, without the first) unless symmetric; `label` (item).
    """

    n_classes: int
    symmetric: bool
    """Whether the order of the classes' ends is arbitrary, as in pairs of responses."""
    prior: OpinionPoolPrior = OpinionPoolPrior()
    noise: Scalar = 0.0
    """The known share of the labels that are wrong."""
    traits: ClassVar[Traits] = Traits(("label",), "labelled items")

    def __call__(self, data: ProbsData) -> None:
        """Sample the weights, then each item's label from the pool."""
        methods = data.log_probs.shape[1]
        mean = self.prior.total / methods
        with numpyro.plate("method", methods):
            normal = dist.Normal(mean, self.prior.spread * mean)
            sites = {"weight": numpyro.sample("weight", normal)}
        if not self.symmetric:
            with numpyro.plate("other_class", self.n_classes - 1):
                each = dist.Normal(0, self.prior.intercept)
                sites["intercept"] = numpyro.sample("intercept", each)
        observe_label(self.predict(sites, data), data.labels, data.weight, self.noise)

    def predict(self, sites: Mapping[str, Array], data: ProbsData) -> Float[Array, "item class"]:
        """Return the pool's log-probabilities of the items' classes."""
        logit = jnp.einsum("m,imk->ik", sites["weight"], data.log_probs)
        if not self.symmetric:
            logit += jnp.concatenate([jnp.zeros(1), sites["intercept"]])
        return jnp.maximum(jax.nn.log_softmax(logit, axis=-1), LEAST)
