"""Dawid and Skene's model with partially pooled judges: crowds, where most workers vote rarely.

An alternative to `judgebayes.models.dawid_skene` for many judges with few votes each, or without any
label. A prior that is the same for every crowd is too weak for a worker of three votes, and on a set
where most items have one class it lets the rare class collect disagreement. Here the prior of a
judge's confusion matrix is learnt from all votes. A judge has one ability, and row k of its matrix
varies around the row of a judge of that ability ::

    m_jkk = sigmoid(mu + exp(s) z_j + d_k),     m_jkl = (1 - m_jkk) e_kl  for l other than k
    theta_jk ~ Dirichlet(c_k m_jk),     z_j ~ Normal(0, 1)

mu and exp(s) are the mean and the spread of abilities, d_k says how much easier class k is, e_k is how
errors on class k spread over the other classes, and the concentration c_k is the number of votes that
the row of m is worth. With large c_k judges differ by their ability only, as in the one-coin model; with
a small spread each row varies on its own. Votes on one class thus tell about a judge's votes on the
others, which matters most where there are few. Labels and votes are as in Dawid and Skene's model, and
known labels are used in the same way. Priors ::

    mu ~ Normal(1.4, 0.7),  s ~ Normal(-0.5, 0.7),  d_k ~ Normal(0, 0.5),  log c_k ~ Normal(log 8, 1)
    e_k ~ Dirichlet(1 + wrong / (K - 1)),  pi ~ Dirichlet(1 + classes)

The labels are identified by the prior of mu, under which judges are right more often than chance on
average, and by fits that start at accuracy 0.75 and at the majority vote.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from judgebayes.models.base import PanelData, Scalar
from judgebayes.models.dawid_skene import DawidSkeneModel

LEAST = 1e-6
"""The least entry of a mean row."""


class PooledPrior(NamedTuple):
    """Normal priors as location and scale, and pseudo-counts of the errors and of the classes."""

    ability: tuple[Scalar, Scalar] = (1.4, 0.7)
    """Of the mean ability, the logit of being right."""
    log_spread: tuple[Scalar, Scalar] = (-0.5, 0.7)
    """Of the logarithm of the standard deviation of abilities."""
    shift: Scalar = 0.5
    """The standard deviation of the classes' shifts."""
    log_concentration: tuple[Scalar, Scalar] = (math.log(8.0), 1.0)
    """Of the logarithm of the concentrations."""
    wrong: Scalar = 5.0
    """Pseudo-count of the errors of a class, over all other classes."""
    classes: Scalar = 1.0
    """Pseudo-count of a class."""


def mean_rows(
    right: Float[Array, "*batch class"], errors: Float[Array, "class vote"]
) -> Float[Array, "*batch class vote"]:
    """Return rows with the given probability of the right vote; errors sum to one off the diagonal."""
    diagonal = jnp.eye(right.shape[-1], dtype=bool)
    rows = jnp.where(diagonal, right[..., None], (1 - right)[..., None] * errors)
    return jnp.clip(rows, LEAST, 1 - LEAST)


def in_matrix(errors: Float[Array, "class other"]) -> Float[Array, "class vote"]:
    """Return a matrix with zeros on its diagonal and the errors, in order, on both sides."""
    k = len(errors)
    place = np.arange(k) - (np.arange(k) > np.arange(k)[:, None])
    off = jnp.take_along_axis(errors, jnp.asarray(np.minimum(place, k - 2)), axis=1)
    return jnp.where(jnp.eye(k, dtype=bool), 0.0, off)


def off_diagonal(matrix: Float[Array, "class vote"]) -> Float[Array, "class other"]:
    """Return the inverse of `in_matrix`."""
    k = len(matrix)
    place = np.arange(k - 1) + (np.arange(k - 1) >= np.arange(k)[:, None])
    return jnp.take_along_axis(matrix, jnp.asarray(place), axis=1)


@dataclass(frozen=True)
class PooledDawidSkeneModel(DawidSkeneModel):
    """The program: class shares, how judges vary, abilities, confusion matrices, then labels and votes.

    Sites: `pi` (class), `mean_ability`, `log_spread`, `shift` (class), `log_concentration` (class),
    `errors` (class, other class; from three classes), `skill` (judge), `confusion` (judge, class,
    vote); `label` (item), `votes` (item, judge, sample).
    """

    prior: PooledPrior = PooledPrior()  # type: ignore[assignment]  # noqa: RUF009

    def __call__(self, data: PanelData) -> None:
        """Sample class shares, abilities and confusion matrices, then labels and votes."""
        n_judges, k, prior = data.cast.shape[1], self.n_classes, self.prior
        shares = dist.Dirichlet(jnp.full(k, 1.0) + prior.classes)
        pi = numpyro.sample("pi", shares, infer={"event_dims": ("class",)})
        ability = numpyro.sample("mean_ability", dist.Normal(*prior.ability))
        log_spread = numpyro.sample("log_spread", dist.Normal(*prior.log_spread))
        with numpyro.plate("class", k):
            shift = numpyro.sample("shift", dist.Normal(0.0, prior.shift))
            log_concentration = numpyro.sample(
                "log_concentration", dist.Normal(*prior.log_concentration)
            )
            errors = jnp.ones((k, 1))
            if k > 2:  # with two classes there is one error
                each = 1 + jnp.full(k - 1, prior.wrong) / (k - 1)
                by_class = dist.Dirichlet(each)
                errors = numpyro.sample("errors", by_class, infer={"event_dims": ("other",)})
        with numpyro.plate("judge", n_judges):
            skill = numpyro.sample("skill", dist.Normal(0.0, 1.0))
        right = jax.nn.sigmoid(ability + jnp.exp(log_spread) * skill[:, None] + shift)
        mean = jnp.exp(log_concentration)[:, None] * mean_rows(right, in_matrix(errors))
        with numpyro.plate("judge", n_judges, dim=-2), numpyro.plate("class", k, dim=-1):
            rows = dist.Dirichlet(mean)
            confusion = numpyro.sample("confusion", rows, infer={"event_dims": ("vote",)})
        self.observe({"pi": pi, "confusion": confusion}, data)
