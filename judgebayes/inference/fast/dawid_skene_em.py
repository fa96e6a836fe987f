"""Dawid and Skene's model by counts of votes: log-densities, EM's starts and expected votes.

`judgebayes.models.dawid_skene` has the story. With c_ijl votes l of judge j on item i ::

    log p(votes of i, y = k) = log pi_k + sum_jl c_ijl log theta_jkl

a product of two matrices, item x (judge vote) and (judge vote) x class.

EM for Dawid and Skene's model from two starts side by side: what every route of it shares.

The votes are read once for both starts, whose classes are columns of the same products.

EM for Dawid and Skene's model from two starts, with an extrapolation after every two steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, cast

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from judgebayes.arrays import ItemCodes, ItemValues, LogProbs
from judgebayes.inference.fast.accelerated_em import accelerated, line
from judgebayes.inference.point import EM
from judgebayes.inference.problem import Problem, Result, Sites, one_draw
from judgebayes.inference.status import Status, ended, when
from judgebayes.models.base import noise_matrix
from judgebayes.models.dawid_skene import DawidSkeneModel, DawidSkenePrior, accuracy

Scalar = float | Float[Array, ""]

START_ACCURACY = 0.75


START_COUNT = 4.0
"""The number of votes that the starting accuracy is worth, in addition to those on labelled items."""


Counts = Any
"""Vote counts, item x (judge class): an array, or an object with its shape and matrix products."""


def counts(
    index: Int[Array, "item judge sample"], n_classes: int
) -> Float[Array, "item judge_vote"]:
    """Return how often each judge gave each class, as a matrix item x (judge class)."""
    member = [(index == k).sum(-1) for k in range(n_classes)]
    return jnp.stack(member, axis=-1).reshape(index.shape[0], -1).astype(float)


def log_joint(
    log_pi: Float[Array, " class"],
    log_confusion: Float[Array, "judge class vote"],
    count: Counts,
    labels: ItemCodes,
    noise: Scalar,
) -> LogProbs:
    """Return log p(votes, observed label, y = k) of every item and class."""
    n_classes = log_pi.shape[0]
    flat = jnp.swapaxes(log_confusion, 1, 2).reshape(-1, n_classes)  # (judge vote), class
    return log_pi + count @ flat + clamp(labels, noise, n_classes)


def log_likelihood(
    log_pi: Float[Array, " class"],
    log_confusion: Float[Array, "judge class vote"],
    count: Counts,
    labels: ItemCodes,
    weight: ItemValues,
    noise: Scalar,
) -> Float[Array, ""]:
    """Return the weighted sum of log p(votes, observed label) over the items."""
    each = jax.nn.logsumexp(log_joint(log_pi, log_confusion, count, labels, noise), axis=1)
    return jnp.where(weight > 0, weight * each, 0.0).sum()


def by_counts(problem: Problem, mode: Sites, count: Counts | None = None) -> Problem:
    """Return the problem for a sampler: the likelihood by counts, and a start near a mode."""
    model, data = cast(DawidSkeneModel, problem.model), problem.data
    table = counts(data.votes, model.n_classes) if count is None else count
    weight = jnp.ones(len(data.labels)) if data.weight is None else data.weight
    start = dict(mode)
    for name in ("pi", "confusion"):  # inside the simplex, where chains can start
        start[name] = 0.99 * mode[name] + 0.01 / model.n_classes

    def likelihood(sites: Sites) -> Float[Array, ""]:
        logs = jnp.log(sites["pi"]), jnp.log(sites["confusion"])
        return log_likelihood(*logs, table, data.labels, weight, model.noise)

    return replace(problem, start=start, log_likelihood=likelihood)


def clamp(labels: ItemCodes, noise: Scalar, n_classes: int) -> LogProbs:
    """Return log p(observed label | y = k), 0 where there is no label."""
    observed = jnp.log(noise_matrix(noise, n_classes))[:, jnp.maximum(labels, 0)].T
    return jnp.where((labels >= 0)[:, None], observed, 0.0)


def log_prior(
    log_pi: Float[Array, " class"],
    log_confusion: Float[Array, "judge class vote"],
    prior: DawidSkenePrior,
) -> Float[Array, ""]:
    """Return the log prior density up to a constant."""
    votes = prior.of_votes(log_pi.shape[0])
    return jnp.sum(_times(votes, log_confusion)) + jnp.sum(_times(prior.classes, log_pi))


def _times(count: Scalar | Array, log: Array) -> Array:
    """Return count x log, 0 where the count is 0 and the logarithm minus infinity."""
    return jnp.where(jnp.asarray(count) > 0, count * jnp.maximum(log, -1e300), 0.0)


def start(
    count: Counts, labels: ItemCodes, weight: ItemValues, n_classes: int
) -> tuple[Float[Array, " class"], Float[Array, "judge class vote"]]:
    """Return log pi (uniform) and log confusions (accuracy 0.75, updated by the labelled votes)."""
    other = (1 - START_ACCURACY) / (n_classes - 1)
    begin = jnp.where(jnp.eye(n_classes, dtype=bool), START_ACCURACY, other)
    votes = tally(labelled_responsibilities(labels, weight, n_classes), count) + START_COUNT * begin
    return jnp.full(n_classes, -jnp.log(n_classes)), jnp.log(votes / votes.sum(-1, keepdims=True))


def labelled_responsibilities(labels: ItemCodes, weight: ItemValues, n_classes: int) -> LogProbs:
    """Return the weight of every labelled item at its label, 0 elsewhere."""
    used = jnp.where(labels >= 0, weight, 0.0)[:, None]
    return used * jax.nn.one_hot(labels, n_classes, dtype=used.dtype)


def majority_start(
    count: Counts, labels: ItemCodes, weight: ItemValues, n_classes: int
) -> tuple[Float[Array, " class"], Float[Array, "judge class vote"]]:
    """Return the usual start, from vote shares as class probabilities (or the label, where known)."""
    n_judges = count.shape[1] // n_classes
    for_class = count @ jnp.tile(jnp.eye(n_classes), (n_judges, 1))
    share = (for_class + 1 / n_classes) / (for_class.sum(1, keepdims=True) + 1)
    truth = jax.nn.one_hot(labels, n_classes, dtype=share.dtype)
    responsibility = weight[:, None] * jnp.where((labels >= 0)[:, None], truth, share)
    classes = responsibility.sum(0) + 1 / n_classes
    votes = tally(responsibility, count) + 1 / n_classes
    return jnp.log(classes / classes.sum()), jnp.log(votes / votes.sum(-1, keepdims=True))


def tally(responsibility: LogProbs, count: Counts) -> Float[Array, "judge class vote"]:
    """Return the expected votes of each judge by class and vote."""
    n_classes = responsibility.shape[1]
    return jnp.swapaxes((responsibility.T @ count).reshape(n_classes, -1, n_classes), 0, 1)


def most_below_chance(
    accuracy_by_judge: Float[Array, " judge"], votes: Float[Array, " judge"], n_classes: int
) -> Bool[Array, ""]:
    """Return whether most of the judges that voted are right less often than chance."""
    cast = votes > 0
    below = (accuracy_by_judge < 1 / n_classes) & cast
    return 2 * below.sum() > jnp.maximum(cast.sum(), 1)


SAME_MODE = 1e-9
"""Log posteriors within this relative distance count as the same mode: the first start is kept."""


LEAST = 1e-12
"""The least probability, so that a vote never given so far does not rule a class out for good."""


def in_columns(
    log_confusion: Float[Array, "start judge class vote"],
) -> Float[Array, "judge_vote column"]:
    """Return a table by judge and vote, with a column for every start and class."""
    starts, _, n_classes, _ = log_confusion.shape
    return log_confusion.transpose(1, 3, 0, 2).reshape(-1, starts * n_classes)


def from_columns(
    columns: Float[Array, "judge_vote column"], starts: int, n_classes: int
) -> Float[Array, "start judge class vote"]:
    """Return the inverse of `in_columns`."""
    return columns.reshape(-1, n_classes, starts, n_classes).transpose(2, 0, 3, 1)


def responsibilities(
    joint: Sequence[Float[Array, "*batch"]],
) -> tuple[Float[Array, "*batch"], list[Float[Array, "*batch"]]]:
    """Return the log of the sum over the classes, and their probabilities (the E-step).

    The classes are given one by one, because a reduction over so short an axis is not vectorised.
    """
    most = reduce(jnp.maximum, joint)
    mass = [jnp.exp(x - most) for x in joint]
    total = reduce(jnp.add, mass)
    return most + jnp.log(total), [x / total for x in mass]


def updated(
    share: Float[Array, " class"], votes: Float[Array, "judge class vote"], prior: DawidSkenePrior
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
    count: Counts,
    labels: ItemCodes,
    weight: ItemValues,
) -> Int[Array, ""]:
    """Return SWITCHED where most judges are below chance and the labelled items do not confirm it."""
    n_judges, n_classes, _ = log_confusion.shape
    cast = (weight[None] @ count).reshape(n_judges, n_classes).sum(-1)
    of_labelled = tally(labelled_responsibilities(labels, weight, n_classes), count)
    total = of_labelled.sum((1, 2))
    right = jnp.diagonal(of_labelled, axis1=1, axis2=2).sum(-1)
    below_on_labels = most_below_chance(right / jnp.maximum(total, 1e-9), total, n_classes)
    below_in_fit = most_below_chance(accuracy(log_confusion), cast, n_classes)
    return when(below_in_fit & ~below_on_labels, Status.SWITCHED)


@dataclass(frozen=True)
class TwoStarts:
    """The votes and labels that EM runs on."""

    count: Counts
    labels: ItemCodes
    weight: ItemValues
    noise: Scalar
    n_classes: int

    def begin(self) -> tuple[Float[Array, "start class"], Float[Array, "start judge class vote"]]:
        """Return the logarithms of class shares and confusion matrices of both starts."""
        starts = [
            first(self.count, self.labels, self.weight, self.n_classes)
            for first in (start, majority_start)
        ]
        log_pi, log_confusion = (jnp.stack(x) for x in zip(*starts, strict=True))
        return log_pi, log_confusion

    def expect(
        self,
        log_pi: Float[Array, "start class"],
        log_votes: Float[Array, "start judge class vote"],
    ) -> tuple[Float[Array, " start"], Float[Array, "column item"]]:
        """Return the log-likelihood and the weighted probabilities of the items' classes."""
        clamped = clamp(self.labels, self.noise, self.n_classes)
        evidence = self.count @ in_columns(log_votes)
        values, expected = [], []
        for start, prior_share in enumerate(log_pi):
            first = start * self.n_classes
            joint = [
                prior_share[k] + clamped[:, k] + evidence[:, first + k]
                for k in range(self.n_classes)
            ]
            each, own = responsibilities(joint)
            values.append(jnp.where(self.weight > 0, self.weight * each, 0.0).sum())
            expected += [self.weight * x for x in own]
        return jnp.stack(values), jnp.stack(expected)

    def share(self, expected: Float[Array, "column item"]) -> Float[Array, "start class"]:
        """Return the expected number of items of each class."""
        return expected.sum(1).reshape(-1, self.n_classes)

    def tally(
        self, expected: Float[Array, "column item"]
    ) -> Float[Array, "start judge class vote"]:
        """Return the expected number of votes by judge, class and vote."""
        columns = (expected @ self.count).T
        return from_columns(columns, len(expected) // self.n_classes, self.n_classes)

    def higher(
        self,
        values: Sites,
        pseudo_votes: Float[Array, "start *class"],
        log_posterior: Float[Array, " start"],
        expected: Float[Array, "column item"],
        converged: Bool[Array, " start"],
        steps: Int[Array, " start"],
    ) -> Result:
        """Return the mode of the start with the higher log posterior; of the first, if they are equal.

        All that is given is of both starts; `pseudo_votes` are those that the prior is worth.
        """
        first, second = log_posterior
        best = jnp.where(second > first + SAME_MODE * jnp.abs(first), 1, 0)
        status = ended(jnp.isfinite(log_posterior), converged)
        of_starts = {
            "votes_by_class": self.tally(expected).sum(-1),
            "pseudo_votes": pseudo_votes,
            "log_posterior": log_posterior,
            "steps": steps,
        }
        chosen = jax.tree.map(lambda x: x[best], (values, status, of_starts))
        apart = departures(expected, best, self.count, self.weight)
        return Result(one_draw(chosen[0]), chosen[1], chosen[2] | apart)


def departures(
    expected: Float[Array, "column item"], best: Int[Array, ""], count: Counts, weight: ItemValues
) -> Sites:
    """Return the shares of items decided against the majority, and against the other start.

    `expected` are the expected classes of both starts, and `best` the one that decides.
    """
    n_classes = len(expected) // 2
    by_start = expected.reshape(2, n_classes, -1).argmax(1)
    own, other = by_start[best], by_start[1 - best]
    n_judges = count.shape[1] // n_classes
    for_class = count @ jnp.tile(jnp.eye(n_classes), (n_judges, 1))
    most = for_class == for_class.max(1, keepdims=True)
    decided = (weight > 0) & (most.sum(1) == 1)

    def share(where: Array, among: Array) -> Float[Array, ""]:
        return (where & among).sum() / jnp.maximum(among.sum(), 1)

    return {
        "off_majority": share(own != most.argmax(1), decided),
        "off_other_start": share(own != other, weight > 0),
    }


Point = tuple[Float[Array, "start class"], Float[Array, "start judge class vote"]]
"""The logarithms of class shares and confusion matrices."""
Single = tuple[Float[Array, " class"], Float[Array, "judge class vote"]]
"""The same for one start."""
PLAIN_STEPS = 30
"""Steps before the first extrapolation, so that it does not leave the mode of its start."""


def maximise(
    inference: EM,
    count: Counts,
    labels: ItemCodes,
    weight: ItemValues,
    prior: DawidSkenePrior,
    noise: Scalar,
    n_classes: int,
) -> Result:
    """Run EM from both starts and return the higher mode; every step raises the log posterior."""
    em = TwoStarts(count, labels, weight, noise, n_classes)
    of_prior = jax.vmap(log_prior, (0, 0, None))

    def advance(point: Point) -> tuple[Point, Float[Array, " start"]]:
        value, expected = em.expect(*point)
        improved = jax.vmap(updated, (0, 0, None))(em.share(expected), em.tally(expected), prior)
        return improved, value + of_prior(*point, prior)

    (log_pi, log_confusion), converged, steps = accelerated(
        advance,
        jax.vmap(_extrapolated),
        em.begin(),
        least_gain=inference.tolerance * jnp.maximum(weight.sum(), 1.0),
        max_steps=inference.max_steps,
        plain_steps=PLAIN_STEPS,
    )
    value, expected = em.expect(log_pi, log_confusion)
    value += of_prior(log_pi, log_confusion, prior)
    values = {"pi": jnp.exp(log_pi), "confusion": jnp.exp(log_confusion)}
    pseudo_votes = jnp.full(2, prior.right + prior.wrong)
    return em.higher(values, pseudo_votes, value, expected, converged, steps)


def _extrapolated(first: Single, second: Single, third: Single) -> Single:
    """Return class shares and confusion matrices of one start, extrapolated as probabilities."""
    points = [jax.tree.map(jnp.exp, point) for point in (first, second, third)]
    far = line(points[0], points[1], points[2], lambda point: point)

    def normalised(x: Array) -> Array:
        positive = jnp.maximum(x, LEAST)
        return jnp.log(positive / positive.sum(-1, keepdims=True))

    return normalised(far[0]), normalised(far[1])
