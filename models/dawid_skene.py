"""Dawid and Skene's model: each judge has a confusion matrix, labels are known in part.

Source: Dawid & Skene (1979), as P2 (section 4.1) compares with; P4's validators are its judges.

The story. Item i has the label y_i ~ Categorical(pi); each vote of judge j on it is l with
probability theta_jkl where y_i = k; votes are independent given the label. With y summed out by
hand ::

    p(votes of i) = sum_k pi_k prod_j prod_l theta_jkl^(c_ijl)

A known label z is its own vote that is wrong with probability e: p(z | k) multiplies the sum's
terms, and for e = 0 it clamps y.

Priors, as pseudo-counts above those of the flat Dirichlet, so that the mode with none is the
maximum of the likelihood ::

    theta_jk ~ Dirichlet(1 + right at l = k, 1 + wrong / (K - 1) elsewhere),   pi ~ Dirichlet(1 + s)

The likelihood is the same for labels under other names. What tells the names is that judges are
right more often than chance *on the average*: right > wrong / (K - 1), and starts at accuracy 0.75
and at the majority vote. No judge is barred from being worse than chance.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Bool, Float, Int

from judgebayes.models.base import PanelData, Traits, observe_panel
from judgebayes.models.distributions import ConfusionVotes
from judgebayes.models.label_noise import noise_matrix

__all__ = [
    "Counts",
    "DawidSkeneModel",
    "Prior",
    "accuracy",
    "counts",
    "log_joint",
    "log_prior",
    "majority_start",
    "start",
]

Scalar = float | Float[Array, ""]

START_ACCURACY = 0.75
START_COUNT = 4.0
"""How many votes the starting accuracy counts for, beside those on labelled items."""


@runtime_checkable
class Counts(Protocol):
    """How often each judge gave each class, item x (judge class): an array, or a factor like one."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the matrix."""

    def __matmul__(self, table: Array, /) -> Array:
        """Return counts @ table."""

    def __rmatmul__(self, rows: Array, /) -> Array:
        """Return rows @ counts."""


class Prior(NamedTuple):
    """Pseudo-counts of a judge's right and wrong votes in each class, and of each class."""

    right: Scalar = 1.0
    wrong: Scalar = 0.5
    classes: Scalar = 1.0

    def of_votes(self, n_classes: int) -> Float[Array, "class vote"]:
        """Return the pseudo-counts of a confusion matrix."""
        off = jnp.asarray(self.wrong) / (n_classes - 1)
        return jnp.where(jnp.eye(n_classes, dtype=bool), self.right, off)


def counts(index: Int[Array, "item judge sample"], n_classes: int) -> Float[Array, "item seen"]:
    """Return how often each judge gave each class, as a matrix item x (judge class)."""
    member = [(index == k).sum(-1) for k in range(n_classes)]
    return jnp.stack(member, axis=-1).reshape(index.shape[0], -1).astype(float)


def log_joint(
    log_pi: Float[Array, " class"],
    log_confusion: Float[Array, "judge class vote"],
    count: Counts,
    labels: Int[Array, " item"],
    noise: Scalar,
) -> Float[Array, "item class"]:
    """Return log p(votes, observed label, y = k) of every item and class."""
    n_classes = log_pi.shape[0]
    flat = jnp.swapaxes(log_confusion, 1, 2).reshape(-1, n_classes)  # (judge vote), class
    return log_pi + count @ flat + clamp(labels, noise, n_classes)


def clamp(labels: Int[Array, " item"], noise: Scalar, n_classes: int) -> Float[Array, "item class"]:
    """Return log p(observed label | y = k), 0 where there is none."""
    observed = jnp.log(noise_matrix(noise, n_classes))[:, jnp.maximum(labels, 0)].T
    return jnp.where((labels >= 0)[:, None], observed, 0.0)


def log_prior(
    log_pi: Float[Array, " class"], log_confusion: Float[Array, "judge class vote"], prior: Prior
) -> Float[Array, ""]:
    """Return the log prior density up to a constant."""
    votes = prior.of_votes(log_pi.shape[0])
    return jnp.sum(_times(votes, log_confusion)) + jnp.sum(_times(prior.classes, log_pi))


def _times(count: Scalar | Array, log: Array) -> Array:
    """Return count x log, 0 where the count is 0 and the logarithm minus infinity."""
    return jnp.where(jnp.asarray(count) > 0, count * jnp.maximum(log, -1e300), 0.0)


def start(
    count: Counts,
    labels: Int[Array, " item"],
    weight: Float[Array, " item"],
    n_classes: int,
) -> tuple[Float[Array, " class"], Float[Array, "judge class vote"]]:
    """Return log pi, uniform, and log confusions: accuracy 0.75 beside the labelled votes."""
    return start_from(tally(known_belief(labels, weight, n_classes), count))


def known_belief(
    labels: Int[Array, " item"], weight: Float[Array, " item"], n_classes: int
) -> Float[Array, "item class"]:
    """Return the weight of every labelled item at its label, 0 elsewhere."""
    used = jnp.where(labels >= 0, weight, 0.0)[:, None]
    return used * jax.nn.one_hot(labels, n_classes, dtype=used.dtype)


def start_from(
    seen: Float[Array, "judge class vote"],
) -> tuple[Float[Array, " class"], Float[Array, "judge class vote"]]:
    """Return the start of accuracy 0.75, given the votes on labelled items by class."""
    n_classes = seen.shape[-1]
    other = (1 - START_ACCURACY) / (n_classes - 1)
    begin = jnp.where(jnp.eye(n_classes, dtype=bool), START_ACCURACY, other)
    votes = seen + START_COUNT * begin
    return jnp.full(n_classes, -jnp.log(n_classes)), jnp.log(votes / votes.sum(-1, keepdims=True))


def majority_start(
    count: Counts,
    labels: Int[Array, " item"],
    weight: Float[Array, " item"],
    n_classes: int,
) -> tuple[Float[Array, " class"], Float[Array, "judge class vote"]]:
    """Return the usual start: an item is of each class as the votes (or its label) say."""
    n_judges = count.shape[1] // n_classes
    for_class = count @ jnp.tile(jnp.eye(n_classes), (n_judges, 1))
    belief = majority_belief(for_class, labels, weight)
    return majority_start_from(belief.sum(0), tally(belief, count))


def majority_belief(
    for_class: Float[Array, "item class"],
    labels: Int[Array, " item"],
    weight: Float[Array, " item"],
) -> Float[Array, "item class"]:
    """Return the weight of every item at its label, or divided as its votes are."""
    n_classes = for_class.shape[1]
    share = (for_class + 1 / n_classes) / (for_class.sum(1, keepdims=True) + 1)
    truth = jax.nn.one_hot(labels, n_classes, dtype=share.dtype)
    return weight[:, None] * jnp.where((labels >= 0)[:, None], truth, share)


def majority_start_from(
    share: Float[Array, " class"], seen: Float[Array, "judge class vote"]
) -> tuple[Float[Array, " class"], Float[Array, "judge class vote"]]:
    """Return the majority start, given its beliefs' totals and the votes by believed class."""
    n_classes = share.shape[0]
    votes, classes = seen + 1 / n_classes, share + 1 / n_classes
    return jnp.log(classes / classes.sum()), jnp.log(votes / votes.sum(-1, keepdims=True))


def tally(belief: Float[Array, "item class"], count: Counts) -> Float[Array, "judge class vote"]:
    """Return the expected votes of each judge by class and vote."""
    n_classes = belief.shape[1]
    return jnp.swapaxes((belief.T @ count).reshape(n_classes, -1, n_classes), 0, 1)


def accuracy(
    log_confusion: Float[Array, "*draw judge class vote"],
) -> Float[Array, "*draw judge"]:
    """Return each judge's accuracy, averaged over classes with equal weights."""
    return jnp.exp(jnp.diagonal(log_confusion, axis1=-2, axis2=-1)).mean(-1)


def most_below_chance(
    found: Float[Array, " judge"], votes: Float[Array, " judge"], n_classes: int
) -> Bool[Array, ""]:
    """Return whether most of the judges that voted are right less often than chance."""
    cast = votes > 0
    below = (found < 1 / n_classes) & cast
    return 2 * below.sum() > jnp.maximum(cast.sum(), 1)


@dataclass(frozen=True)
class DawidSkeneModel:
    """The program: class shares and confusion matrices, then the labels and votes of all items.

    Sites: `pi` (class), `confusion` (judge, class, vote); `label` (item), `votes` (item, judge,
    sample).
    """

    n_classes: int
    prior: Prior = Prior()
    noise: Scalar = 0.0
    """The known share of the labels that are wrong."""
    traits: ClassVar[Traits] = Traits(("label", "votes"), "all items")
    dims: ClassVar[dict[str, tuple[str, ...]]] = {
        "pi": ("class",),
        "confusion": ("judge", "class", "vote"),
        "label": ("item",),
        "votes": ("item", "judge", "repeat"),
    }

    def __call__(self, data: PanelData, *, observed: Collection[str] | None = None) -> None:
        """Sample class shares and confusion matrices, then labels and votes."""
        n_items, n_judges, _ = data.votes.shape
        k = self.n_classes
        pi = numpyro.sample("pi", dist.Dirichlet(jnp.full(k, 1.0) + self.prior.classes))
        rows = dist.Dirichlet(1 + self.prior.of_votes(k))
        with numpyro.plate("judge", n_judges, dim=-2), numpyro.plate("class", k, dim=-1):
            confusion = numpyro.sample("confusion", rows)
        observe_panel(
            jnp.broadcast_to(jnp.log(pi), (n_items, k)),
            lambda log_class: ConfusionVotes(log_class, jnp.log(confusion), data.votes >= 0),
            data,
            observed,
            noise=self.noise,
        )

    def predict(self, sites: Mapping[str, Array], data: PanelData) -> Float[Array, "item class"]:
        """Return the log-probabilities of the items' classes given their votes."""
        log_class = jnp.broadcast_to(jnp.log(sites["pi"]), (len(data.votes), self.n_classes))
        votes = ConfusionVotes(log_class, jnp.log(sites["confusion"]), data.votes >= 0)
        return jax.nn.log_softmax(log_class + votes.log_prob_by_class(data.votes))
