"""Dawid and Skene's model: each judge has a confusion matrix, and labels are partly known.

Source: Dawid & Skene (1979), a comparison in P2 (section 4.1); P4's validators are its judges.

The story. Item i has the label y_i ~ Categorical(pi); each vote of judge j on it is l with
probability theta_jkl where y_i = k; votes are independent given the label. With y summed out ::

    p(votes of i) = sum_k pi_k prod_j prod_l theta_jkl^(c_ijl)

A known label z acts like a vote that is wrong with probability e: p(z | k) multiplies the terms of the
sum, and for e = 0 it fixes y.

Priors, as pseudo-counts above those of the flat Dirichlet, so that the mode without pseudo-counts
maximises the likelihood ::

    theta_jk ~ Dirichlet(1 + right at l = k, 1 + wrong / (K - 1) elsewhere),   pi ~ Dirichlet(1 + s)

The likelihood does not change when the labels are permuted. They are identified by a prior under which
judges are right more often than chance *on average*, right > wrong / (K - 1), and by fits that start
at accuracy 0.75 and at the majority vote. Single judges may be worse than chance.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from judgebayes.models.base import PanelData, PanelProgram, Scalar, Sites, Traits
from judgebayes.models.distributions import ConfusionVotes


class DawidSkenePrior(NamedTuple):
    """Pseudo-counts of a judge's right and wrong votes in each class, and of each class."""

    right: Scalar = 1.0
    wrong: Scalar = 0.5
    classes: Scalar = 1.0

    def of_votes(self, n_classes: int) -> Float[Array, "class vote"]:
        """Return the pseudo-counts of a confusion matrix."""
        off = jnp.asarray(self.wrong) / (n_classes - 1)
        return jnp.where(jnp.eye(n_classes, dtype=bool), self.right, off)


def accuracy(
    log_confusion: Float[Array, "*draw judge class vote"],
) -> Float[Array, "*draw judge"]:
    """Return each judge's accuracy, averaged over classes with equal weights."""
    return jnp.exp(jnp.diagonal(log_confusion, axis1=-2, axis2=-1)).mean(-1)


@dataclass(frozen=True)
class DawidSkeneModel(PanelProgram):
    """The program: class shares and confusion matrices, then the labels and votes of all items.

    Sites: `pi` (class), `confusion` (judge, class, vote); `label` (item), `votes` (item, judge,
    sample).
    """

    n_classes: int
    prior: DawidSkenePrior = DawidSkenePrior()
    noise: Scalar = 0.0
    """The known share of the labels that are wrong."""
    traits: ClassVar[Traits] = Traits(("label", "votes"), "all items")
    dims: ClassVar[dict[str, tuple[str, ...]]] = {"accuracy": ("judge",)}

    def __call__(self, data: PanelData) -> None:
        """Sample class shares and confusion matrices, then labels and votes."""
        n_judges, k = data.cast.shape[1], self.n_classes
        shares = dist.Dirichlet(jnp.full(k, 1.0) + self.prior.classes)
        pi = numpyro.sample("pi", shares, infer={"event_dims": ("class",)})
        rows = dist.Dirichlet(1 + self.prior.of_votes(k))
        with numpyro.plate("judge", n_judges, dim=-2), numpyro.plate("class", k, dim=-1):
            confusion = numpyro.sample("confusion", rows, infer={"event_dims": ("vote",)})
        self.observe({"pi": pi, "confusion": confusion}, data)

    def quantities(self, sites: Sites, data: PanelData) -> dict[str, Array]:  # noqa: ARG002
        """Return each judge's accuracy, and the sites."""
        return {"accuracy": accuracy(jnp.log(sites["confusion"])), **sites}

    def votes(self, sites: Sites, data: PanelData) -> ConfusionVotes:
        """Return the distribution of the votes."""
        log_class = jnp.broadcast_to(jnp.log(sites["pi"]), (len(data.cast), self.n_classes))
        return ConfusionVotes(log_class, jnp.log(sites["confusion"]), data.cast)
