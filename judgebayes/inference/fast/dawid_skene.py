"""Dawid and Skene's model by counts of votes: log-densities, EM's starts and expected votes.

`judgebayes.models.dawid_skene` has the story. With c_ijl votes l of judge j on item i ::

    log p(votes of i, y = k) = log pi_k + sum_jl c_ijl log theta_jkl

a product of two matrices, item x (judge vote) and (judge vote) x class.
"""

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from judgebayes.inference.problem import Problem, Sites
from judgebayes.inference.status import Status, when
from judgebayes.models.base import PanelData
from judgebayes.models.dawid_skene import DawidSkeneModel, Prior, accuracy
from judgebayes.models.label_noise import noise_matrix

__all__ = [
    "SAME_MODE",
    "Counts",
    "Mode",
    "believed",
    "clamp",
    "counts",
    "from_columns",
    "in_columns",
    "known_belief",
    "log_joint",
    "log_likelihood",
    "log_prior",
    "majority_belief",
    "majority_start",
    "majority_start_from",
    "most_below_chance",
    "problem",
    "start",
    "start_from",
    "switched",
    "tally",
    "updated",
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


def log_likelihood(
    log_pi: Float[Array, " class"],
    log_confusion: Float[Array, "judge class vote"],
    count: Counts,
    labels: Int[Array, " item"],
    weight: Float[Array, " item"],
    noise: Scalar,
) -> Float[Array, ""]:
    """Return the weighted sum of log p(votes, observed label) over the items."""
    each = jax.nn.logsumexp(log_joint(log_pi, log_confusion, count, labels, noise), axis=1)
    return jnp.where(weight > 0, weight * each, 0.0).sum()


def problem(
    model: DawidSkeneModel, data: PanelData, start: Sites, count: Counts | None = None
) -> Problem:
    """Return what a sampler solves, the likelihood by counts: they are made once, not at each step."""
    table = counts(data.votes, model.n_classes) if count is None else count
    weight = jnp.ones(len(data.labels)) if data.weight is None else data.weight

    def likely(sites: Sites) -> Float[Array, ""]:
        logs = jnp.log(sites["pi"]), jnp.log(sites["confusion"])
        return log_likelihood(*logs, table, data.labels, weight, model.noise)

    return Problem(model, data, start=start, log_likelihood=likely)


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


def most_below_chance(
    found: Float[Array, " judge"], votes: Float[Array, " judge"], n_classes: int
) -> Bool[Array, ""]:
    """Return whether most of the judges that voted are right less often than chance."""
    cast = votes > 0
    below = (found < 1 / n_classes) & cast
    return 2 * below.sum() > jnp.maximum(cast.sum(), 1)


SAME_MODE = 1e-9
"""Log posteriors this close, relatively, are the same mode: the first start's is taken."""


LEAST = 1e-12
"""Of a probability: a vote that no judge gave so far must not rule a class out for good."""


class Mode(NamedTuple):
    """A mode that EM found, and how it ended."""

    log_pi: Float[Array, " class"]
    log_confusion: Float[Array, "judge class vote"]
    votes_by_class: Float[Array, "judge class"]
    value: Float[Array, ""]
    steps: Int[Array, ""]
    status: Int[Array, ""]


def in_columns(
    log_confusion: Float[Array, "start judge class vote"],
) -> Float[Array, "seen column"]:
    """Return a table by judge and vote, with a column for every start and class."""
    starts, _, n_classes, _ = log_confusion.shape
    return log_confusion.transpose(1, 3, 0, 2).reshape(-1, starts * n_classes)


def from_columns(
    seen: Float[Array, "seen column"], starts: int, n_classes: int
) -> Float[Array, "start judge class vote"]:
    """Return what `in_columns` made a table of."""
    return seen.reshape(-1, n_classes, starts, n_classes).transpose(2, 0, 3, 1)


def believed(
    joint: Sequence[Float[Array, "*batch"]],
) -> tuple[Float[Array, "*batch"], list[Float[Array, "*batch"]]]:
    """Return the log of the sum over the classes, and their probabilities, by one exponential.

    The classes come one by one: a reduction over so short an axis is not vectorised.
    """
    most = reduce(jnp.maximum, joint)
    mass = [jnp.exp(x - most) for x in joint]
    total = reduce(jnp.add, mass)
    return most + jnp.log(total), [x / total for x in mass]


def updated(
    share: Float[Array, " class"], votes: Float[Array, "judge class vote"], prior: Prior
) -> tuple[Float[Array, " class"], Float[Array, "judge class vote"]]:
    """Return log pi and log confusions from expected counts of items and votes (the M-step)."""
    n_classes = share.shape[0]
    share, votes = share + prior.classes, votes + prior.of_votes(n_classes)
    cast = votes.sum(-1, keepdims=True)
    confusion = jnp.where(cast > 0, votes / jnp.where(cast > 0, cast, 1.0), 1 / n_classes)
    return (
        jnp.log(jnp.maximum(share / share.sum(), LEAST)),
        jnp.log(jnp.maximum(confusion, LEAST)),
    )


def switched(
    log_confusion: Float[Array, "judge class vote"],
    seen: Float[Array, "judge class vote"],
    cast: Float[Array, " judge"],
) -> Int[Array, ""]:
    """Return SWITCHED where most judges are below chance and the labelled items do not say so.

    `seen` are the votes on labelled items by label, `cast` how many votes each judge gave.
    """
    n_classes = log_confusion.shape[1]
    on_labels = jnp.diagonal(seen, axis1=1, axis2=2).sum(-1) / jnp.maximum(seen.sum((1, 2)), 1e-9)
    known = most_below_chance(on_labels, seen.sum((1, 2)), n_classes)
    found = most_below_chance(accuracy(log_confusion), cast, n_classes)
    return when(found & ~known, Status.SWITCHED)
