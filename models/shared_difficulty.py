r"""Judges who share an item's difficulty: votes given the label, with an effect of the item.

A model for judges whose errors are correlated (beyond P2, which weighs judges as if they erred
independently). The story. Item i has the label y_i and an ease h_i ~ Normal(0, 1), which all judges
share. With the distance d(c, y) of two classes, each vote v of judge j on it is drawn from ::

    log p(v = c | y, h) = -(l_j + s h) d(c, y) + b_jc + const

where l_j is the judge's reliability and b_jc its bias towards a class. With two classes and no bias,
P(v = y | h) = sigmoid(l_j + s h): on a hard item all judges are wrong more often, so that many votes for
one class are less evidence than as many independent ones. Missing votes carry no information.

Distances. d(c, y) is the mean of [c != y] and |c - y| / (K - 1), so that an error by more classes is
less probable than one by few; with two classes it is [c != y].

Partial pooling. Reliabilities and biases have common means and variances, so that a judge with few
labels, or none, is like the others::

    l_j ~ Normal(m, v)            m ~ Normal(1, 1)        v ~ InverseGamma(3, 1)
    b_jc ~ Normal(beta_c, u)      beta_c ~ Normal(0, 1.5)   u ~ InverseGamma(3, 1)
    s ~ HalfNormal(2)

(v, u: variances.) In pairs whose order is arbitrary, classes at the same distance from the middle share
a bias and the ends have none: swapping the responses swaps the probabilities exactly. Elsewhere class 0
is the reference, and each other class has a bias, so that a judge may favour one.

The ease takes `NODES` evenly spaced values with the probabilities of the normal distribution, which is
exact for the program as it is written here.

Labels given votes. Real judges have more in common than one number per item, so that posteriors of y
under this model are too sure. The label's distribution given the votes and the reliabilities has the
scale k of all reliabilities and the ease's effect as parameters::

    p(y | votes) prop. to pi_y sum_h p(h) prod_j p(v_j | y, h; k l_j, s)
    log k ~ Normal(log 0.35, 2),   s ~ HalfNormal(2)

The reliabilities are given, and should be learnt without the item's own label.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray
from numpyro.distributions import constraints

from judgebayes.models.base import PanelData, PanelProgram, Scalar, Sites, Traits, uniform_class
from judgebayes.models.distributions import LEAST, PanelVotes

NODES = 33
EASE = np.linspace(-4.0, 4.0, NODES)
"""The values of the ease."""
LOG_EASE = -0.5 * EASE**2 - np.log(np.exp(-0.5 * EASE**2).sum())
"""Their log-probabilities."""


class SharedDifficultyPrior(NamedTuple):
    """Priors of the reliabilities, the biases and the effect of the ease."""

    mean: tuple[Scalar, Scalar] = (1.0, 1.0)
    """Location and scale of m, in log-odds."""
    variance: tuple[Scalar, Scalar] = (3.0, 1.0)
    """Shape and scale of the inverse gamma prior of v, the variance of the reliabilities."""
    level: Scalar = 1.5
    """Scale of the normal prior of each beta_c around 0."""
    level_variance: tuple[Scalar, Scalar] = (3.0, 1.0)
    """Shape and scale of the inverse gamma prior of u, the variance of the biases."""
    ease: Scalar = 2.0
    """Scale of the half-normal prior of s."""


def distances(n_classes: int) -> np.ndarray:
    """Return d (vote class, label class): the mean of ``[c != y]`` and ``|c - y| / (K - 1)``."""
    steps = np.abs(np.arange(n_classes)[:, None] - np.arange(n_classes))
    return ((steps > 0) + steps / (n_classes - 1)) / 2


def _bias_of_class(n_classes: int, symmetric: bool) -> np.ndarray:
    classes = np.arange(n_classes)
    return np.minimum(classes, n_classes - 1 - classes) if symmetric else classes


def n_biases(n_classes: int, symmetric: bool) -> int:
    """Return the number of biases of a judge: those of classes that are not the reference."""
    return int(_bias_of_class(n_classes, symmetric).max())


def features(n_classes: int, symmetric: bool) -> np.ndarray:
    """Return F (vote class, label class, parameter): logits are (l_j, b_j1, ...) F, less s h d(c, y)."""
    bias = _bias_of_class(n_classes, symmetric)[:, None] == 1 + np.arange(
        n_biases(n_classes, symmetric)
    )
    every = np.broadcast_to(bias[:, None, :], (n_classes, n_classes, bias.shape[1]))
    return np.concatenate([-distances(n_classes)[:, :, None], every], axis=2)


def log_vote_table(
    parameters: Float[Array, "judge parameter"], ease: Scalar, n_classes: int, symmetric: bool
) -> Float[Array, "judge vote class node"]:
    """Return log p(v | y, h) of every judge, vote, label and node.

    Parameters
    ----------
    parameters
        The reliability of each judge, then its biases.
    ease
        s, the effect of the ease, in log-odds.
    n_classes, symmetric
        The number of classes, and whether their order is arbitrary.
    """
    own = jnp.einsum("jp,vyp->jvy", parameters, jnp.asarray(features(n_classes, symmetric)))
    common = distances(n_classes)[:, :, None] * jnp.asarray(EASE)
    return jax.nn.log_softmax(own[..., None] - ease * common, axis=1)


class DifficultyVotes(PanelVotes):
    """Votes with the item's ease summed out.

    Parameters
    ----------
    log_class, cast
        As in `PanelVotes`.
    table
        log p(v | y, h), as `log_vote_table` returns it.
    """

    arg_constraints: ClassVar[Mapping[str, Any]] = {
        **PanelVotes.arg_constraints,
        "table": constraints.independent(constraints.less_than_eq(1e-4), 4),
    }

    def __init__(
        self,
        log_class: Float[Array, "item class"],
        table: Float[Array, "judge vote class node"],
        cast: Bool[Array, "item judge sample"],
    ) -> None:
        self.table = table
        super().__init__(log_class, cast)

    def log_prob_by_class(
        self, value: Int[Array, "*draw item judge sample"]
    ) -> Float[Array, "*draw item class"]:
        """Return log p(votes | y): counts times a table at each node, and the sum over nodes."""
        n_judges, n_classes = self.table.shape[:2]
        table = jnp.maximum(self.table, LEAST).reshape(n_judges * n_classes, -1)
        each = self.counts(value) @ table
        at_node = each.reshape(*each.shape[:-1], n_classes, NODES) + jnp.asarray(LOG_EASE)
        return jax.nn.logsumexp(at_node, axis=-1)

    def draw_given(
        self, key: PRNGKeyArray, truth: Int[Array, " item"]
    ) -> Int[Array, "item judge sample"]:
        """Draw each item's ease, then the votes."""
        of_item, of_vote = jax.random.split(key)
        node = jax.random.categorical(of_item, jnp.asarray(LOG_EASE), shape=truth.shape)
        logits = self.table[:, :, truth, node].transpose(2, 0, 1)[:, :, None]
        return jax.random.categorical(of_vote, logits, shape=self.cast.shape)


@dataclass(frozen=True)
class SharedDifficultyModel(PanelProgram):
    """The program: reliabilities, biases and the effect of the ease, then labels and votes.

    Sites: `mean`, `variance`, `reliability` (judge, in deviations from the mean), `ease`; with biases
    `level` (bias), `level_variance`, `bias` (judge, bias, in deviations); `label` (item), `votes` (item,
    judge, sample). Labels are uniform.
    """

    n_classes: int
    symmetric: bool
    """Whether the order of the classes' ends is arbitrary, as in pairs of responses."""
    prior: SharedDifficultyPrior = SharedDifficultyPrior()
    noise: Scalar = 0.0
    """The known share of the labels that are wrong."""
    traits: ClassVar[Traits] = Traits(("label", "votes"), "labelled items")

    def __call__(self, data: PanelData) -> None:
        """Sample the judges' parameters, then labels and votes."""
        n_judges, biases = data.cast.shape[1], n_biases(self.n_classes, self.symmetric)
        sites = {
            "mean": numpyro.sample("mean", dist.Normal(*self.prior.mean)),
            "variance": numpyro.sample("variance", dist.InverseGamma(*self.prior.variance)),
            "ease": numpyro.sample("ease", dist.HalfNormal(self.prior.ease)),
        }
        with numpyro.plate("judge", n_judges):
            sites["reliability"] = numpyro.sample("reliability", dist.Normal())
        if biases:
            with numpyro.plate("bias_class", biases, dim=-1):
                sites["level"] = numpyro.sample("level", dist.Normal(0, self.prior.level))
            spread = dist.InverseGamma(*self.prior.level_variance)
            sites["level_variance"] = numpyro.sample("level_variance", spread)
            with numpyro.plate("judge", n_judges, dim=-2), numpyro.plate("bias_class", biases):
                sites["bias"] = numpyro.sample("bias", dist.Normal())
        self.observe(sites, data)

    def quantities(self, sites: Sites, data: PanelData) -> dict[str, Array]:  # noqa: ARG002
        """Return the sites, with reliabilities and biases in log-odds."""
        parameters = self.parameters(sites)
        named = {**sites, "reliability": parameters[:, 0]}
        return named | ({"bias": parameters[:, 1:]} if "bias" in sites else {})

    def parameters(self, sites: Sites) -> Float[Array, "judge parameter"]:
        """Return each judge's reliability and biases, in log-odds."""
        own = sites["mean"] + jnp.sqrt(sites["variance"]) * sites["reliability"]
        if "bias" not in sites:
            return own[:, None]
        bias = sites["level"] + jnp.sqrt(sites["level_variance"]) * sites["bias"]
        return jnp.concatenate([own[:, None], bias], axis=1)

    def votes(self, sites: Sites, data: PanelData) -> DifficultyVotes:
        """Return the distribution of the votes; classes are uniform."""
        table = log_vote_table(
            self.parameters(sites), sites["ease"], self.n_classes, self.symmetric
        )
        return DifficultyVotes(uniform_class(len(data.cast), self.n_classes), table, data.cast)
