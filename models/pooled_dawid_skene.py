"""Dawid and Skene's model with partially pooled judges: crowds, where most workers vote rarely.

An alternative to `judgebayes.models.dawid_skene` for many judges with few votes each, or without any
label. A prior that is the same for every crowd is too weak for a worker of three votes, and on a set
where most items have one class it lets the rare class collect disagreement. Here the prior of a
judge's confusion matrix is learnt from all votes: row k of judge j varies around a mean row ::

    theta_jk ~ Dirichlet(c_k m_k),     log c_k ~ Normal(log 8, 1)
    m_k ~ Dirichlet(1 + right at l = k, 1 + wrong / (K - 1) elsewhere),   pi ~ Dirichlet(1 + s)

The concentration c_k is the number of votes that the mean row is worth. Labels and votes are as in
Dawid and Skene's model, and known labels are used in the same way.

The mean rows' prior is worth 25 votes by default, so that where votes are few no class is learnt to
be the one on which all judges disagree. The labels are identified by this prior, under which judges are
right more often than chance on average, and by fits that start at accuracy 0.75 and at the majority
vote.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from judgebayes.models.base import PanelData, Sites, Traits, observe_panel
from judgebayes.models.dawid_skene import accuracy
from judgebayes.models.distributions import ConfusionVotes

__all__ = ["PooledDawidSkeneModel", "PooledPrior"]

Scalar = float | Float[Array, ""]


class PooledPrior(NamedTuple):
    """Pseudo-counts of the mean rows and of the classes, and the prior of the concentrations."""

    right: Scalar = 20.0
    wrong: Scalar = 5.0
    classes: Scalar = 1.0
    log_concentration: tuple[Scalar, Scalar] = (math.log(8.0), 1.0)
    """Location and scale of a normal prior."""

    def of_rows(self, n_classes: int) -> Float[Array, "class vote"]:
        """Return the pseudo-counts of the mean rows."""
        off = jnp.asarray(self.wrong) / (n_classes - 1)
        return jnp.where(jnp.eye(n_classes, dtype=bool), self.right, off)


@dataclass(frozen=True)
class PooledDawidSkeneModel:
    """The program: class shares, mean rows and confusion matrices, then all labels and votes.

    Sites: `pi` (class), `mean_row` (class, vote), `log_concentration` (class), `confusion` (judge,
    class, vote); `label` (item), `votes` (item, judge, sample).
    """

    n_classes: int
    prior: PooledPrior = PooledPrior()  # noqa: RUF009
    noise: Scalar = 0.0
    """The known share of the labels that are wrong."""
    traits: ClassVar[Traits] = Traits(("label", "votes"), "all items")
    dims: ClassVar[dict[str, tuple[str, ...]]] = {
        "pi": ("class",),
        "mean_row": ("class", "vote"),
        "log_concentration": ("class",),
        "confusion": ("judge", "class", "vote"),
        "accuracy": ("judge",),
        "label": ("item",),
        "votes": ("item", "judge", "repeat"),
    }

    def __call__(self, data: PanelData, *, observed: Collection[str] | None = None) -> None:
        """Sample class shares, mean rows and confusion matrices, then labels and votes."""
        n_items, n_judges, _ = data.votes.shape
        k = self.n_classes
        pi = numpyro.sample("pi", dist.Dirichlet(jnp.full(k, 1.0) + self.prior.classes))
        with numpyro.plate("mean_class", k):
            mean_row = numpyro.sample("mean_row", dist.Dirichlet(1 + self.prior.of_rows(k)))
            log_concentration = numpyro.sample(
                "log_concentration", dist.Normal(*self.prior.log_concentration)
            )
        rows = dist.Dirichlet(jnp.exp(log_concentration)[:, None] * mean_row)
        with numpyro.plate("judge", n_judges, dim=-2), numpyro.plate("class", k, dim=-1):
            confusion = numpyro.sample("confusion", rows)
        observe_panel(
            jnp.broadcast_to(jnp.log(pi), (n_items, k)),
            lambda log_class: ConfusionVotes(log_class, jnp.log(confusion), data.votes >= 0),
            data,
            observed,
            noise=self.noise,
        )

    def quantities(self, sites: Sites, data: PanelData) -> dict[str, Array]:  # noqa: ARG002
        """Return each judge's accuracy, and the sites."""
        return {"accuracy": accuracy(jnp.log(sites["confusion"])), **sites}

    def predict(self, sites: Mapping[str, Array], data: PanelData) -> Float[Array, "item class"]:
        """Return the log-probabilities of the items' classes given their votes."""
        log_class = jnp.broadcast_to(jnp.log(sites["pi"]), (len(data.votes), self.n_classes))
        votes = ConfusionVotes(log_class, jnp.log(sites["confusion"]), data.votes >= 0)
        return votes.log_class_given(data.votes)
