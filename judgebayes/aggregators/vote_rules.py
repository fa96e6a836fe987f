"""Rules that need no fit: the majority vote, and the verdict of one judge.

The rules have no parameters to fit. Each has an explicit rule for tied classes: the paper has none,
and with four votes it has a large effect.

The baseline for every method: the labels' frequencies, independent of the votes.

A baseline of the audit: a tie unless the margin of the votes is large enough.

The share of the votes as probabilities, an uncalibrated baseline of P2 (section 4.1, Table 1).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from judgebayes.aggregators.base import certain
from judgebayes.arrays import ItemCodes, LogProbs, Scalar
from judgebayes.compiled.jit_inline import jit_inline
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fit import Fit, JaxMethod, Training
from judgebayes.inference.problem import Sites, one_draw
from judgebayes.inference.registry import aggregator
from judgebayes.inference.status import Status, when
from judgebayes.measures.scores import absolute_loss, average, labelled_weight
from judgebayes.votes.array import Votes


@aggregator("margin-threshold", rule=True, compared="baseline", n_classes=3, place=80)
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class MarginThreshold(JaxMethod):
    r"""Decide "tie unless :math:`|c^+ - c^-| \ge k`", with k estimated from the labelled items.

    k is the threshold from 1 (ties only where the margin is 0) to n + 1 (always a tie) with the
    least mean absolute error; of several, the lowest. Ternary votes only. It has one parameter and
    no probabilities: P1's method reduced to a calibrated tie boundary.

    Parameters
    ----------
    label_noise
        The known share e of the labels that are wrong, any other class alike. The error against
        such labels favours ties, which are never two steps off. Therefore the fit minimises an
        unbiased estimate of the error against the true labels from the observed labels z
        (Natarajan et al. 2013, eq 1, for K classes):

        .. math:: \tilde L(a, z) = \frac{L(a, z) - e' \sum_k L(a, k)}{1 - e - e'},
                  \qquad e' = \frac{e}{K - 1}

    Examples
    --------
    >>> import numpy as np
    >>> import judgebayes as jb
    >>> counts = [[0, 1, 7], [1, 6, 1], [6, 2, 0], [1, 4, 3], [2, 6, 0], [8, 0, 0]]
    >>> votes = jb.from_counts(np.array(counts))
    >>> labels = np.array([2, 1, 0, 1, 1, 0])
    >>> fit = jb.MarginThreshold().fit(votes, labels)
    >>> jb.bayes_action(fit(votes), jb.absolute_loss(3)).tolist()
    [2, 1, 0, 1, 1, 0]
    """

    label_noise: float = 0.0
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {"threshold": ()}

    def _fitted(self, data: Training) -> Fit:
        votes = data.given
        if votes.n_classes != 3:
            raise JudgeBayesError(
                f"The margin threshold needs ternary votes; these have {votes.n_classes} classes."
            )
        most = votes.n_judges * votes.n_samples
        thresholds = jnp.arange(1, most + 2)
        losses = _noisy_loss(self.label_noise)[:, jnp.maximum(data.labels, 0)]
        used = labelled_weight(data.labels, data.weight)

        def error(threshold: Int[Array, ""]) -> Float[Array, ""]:
            decisions = _decide(votes, threshold)
            return average(jnp.take_along_axis(losses, decisions[None], 0)[0], used)

        errors = jax.vmap(error)(thresholds)
        threshold = thresholds[jnp.argmax(errors <= errors.min() + TIED)]
        status = when(used.sum() == 0, Status.DEGENERATE)
        return Fit(self, one_draw({"threshold": threshold}), status)

    def predict(self, values: Sites, given: Votes) -> LogProbs:
        """Return the items' decisions as log-probabilities, certain of one class."""
        return certain(_decide(given, values["threshold"]), 3)


def _noisy_loss(noise: Scalar) -> Float[Array, "action label"]:
    """Return the loss by observed label whose mean, given the true label, is the absolute loss."""
    loss = jnp.asarray(absolute_loss(3))
    flip_rate = jnp.asarray(noise) / 2
    return (loss - flip_rate * loss.sum(1, keepdims=True)) / (1 - noise - flip_rate)


@jit_inline()
def _decide(votes: Votes, threshold: Int[Array, ""]) -> ItemCodes:
    counts = votes.pooled_counts()
    margin = counts[:, 2] - counts[:, 0]
    return jnp.where(jnp.abs(margin) >= threshold, 1 + jnp.sign(margin), 1)


@aggregator("best-constant", compared="baseline", place=90)
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class BaseRate(JaxMethod):
    r"""Predict the label frequencies of the labelled items for every item.

    .. math:: p(k) = \frac{a + \sum_i w_i 1\{y_i = k\}}{K a + \sum_i w_i}

    with a pseudo-count a; without labels and pseudo-count it is uniform. Its Bayes action is the best
    constant under any loss: the median label for MAE, the most frequent label for accuracy.

    Parameters
    ----------
    pseudo_count
        a.
    label_noise
        The known share e of the labels that are wrong, any other class alike: frequencies are
        corrected, :math:`(p - e') / (1 - e - e')` with :math:`e' = e / (K - 1)`, and clipped at 0.

    Examples
    --------
    >>> import numpy as np
    >>> import judgebayes as jb
    >>> counts = [[0, 1, 7], [1, 6, 1], [6, 2, 0], [1, 4, 3], [2, 6, 0], [8, 0, 0]]
    >>> votes = jb.from_counts(np.array(counts))
    >>> labels = np.array([2, 1, 0, 1, 1, 0])
    >>> print(np.exp(jb.BaseRate().fit(votes, labels)(votes))[0].round(3))
    [0.333 0.5   0.167]
    """

    pseudo_count: float = 0.0
    label_noise: float = 0.0
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {"log_rates": ("class",)}

    def _fitted(self, data: Training) -> Fit:
        n_classes = data.given.n_classes
        used = labelled_weight(data.labels, data.weight)
        mass = used @ jax.nn.one_hot(data.labels, n_classes, dtype=used.dtype)
        share = mass + self.pseudo_count
        share = jnp.where(share.sum() > 0, share, 1.0)  # uniform without labels
        flip_rate = self.label_noise / (n_classes - 1)
        corrected = jnp.maximum(
            (share / share.sum() - flip_rate) / (1 - self.label_noise - flip_rate), 0.0
        )
        log_rates = jnp.log(corrected / corrected.sum())
        status = when(used.sum() == 0, Status.DEGENERATE)
        return Fit(self, one_draw({"log_rates": log_rates}), status)

    def predict(self, values: Sites, given: Votes) -> LogProbs:
        """Return the same log-probabilities for every item."""
        rates = values["log_rates"]
        return jnp.broadcast_to(rates, (given.n_items, len(rates)))


TieRule = Literal["middle", "outer", "first", "drawn"]
"""The decision when several classes have the most support.

`middle`: the centre of the tied classes, with halves rounded towards the middle of the scale: votes of
2 : 2 between tie and A are a tie. `outer`: halves are rounded away from it (P1's rounded median). In
both cases, votes of 2 : 2 between A and B are a tie. `first`: the tied class that was voted first.
`drawn`: one of the tied classes at random, with a fixed seed, where the classes have no order.
"""

TIED = 1e-12
"""Errors or supports closer than this count as equal, so that rounding does not choose."""


@aggregator("sc", rule=True, compared="baseline", place=70)
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class MajorityVote(JaxMethod):
    """The class with the most votes, all judges and samples together (self-consistency, SC).

    Wang et al. (2023b); P1 section 5.

    Examples
    --------
    >>> import numpy as np
    >>> import judgebayes as jb
    >>> counts = [[0, 1, 7], [1, 6, 1], [6, 2, 0], [1, 4, 3], [2, 6, 0], [8, 0, 0]]
    >>> votes = jb.from_counts(np.array(counts))
    >>> labels = np.array([2, 1, 0, 1, 1, 0])
    >>> fit = jb.MajorityVote().fit(votes, labels)
    >>> jb.bayes_action(fit(votes), jb.absolute_loss(3)).tolist()
    [2, 1, 0, 1, 1, 0]
    """

    tie: TieRule = field(default="middle", metadata={"static": True})
    saved: ClassVar[tuple[str, ...]] = ("tie",)

    def predict(self, values: Sites, given: Votes) -> LogProbs:  # noqa: ARG002
        """Return the class with the most votes."""
        return most_supported(given.pooled_counts().astype(float), given, self.tie)


@jit_inline("tie")
def most_supported(support: LogProbs, votes: Votes, tie: TieRule) -> LogProbs:
    """Return the class with the most support, with certainty unless two classes remain tied.

    An item without votes has no majority: all its classes tie, and the result is the middle.
    """
    most = support.max(1, keepdims=True)
    tied = (support >= most - TIED * jnp.abs(most)) | jnp.isinf(most)
    if tie == "drawn":
        chance = jax.random.uniform(jax.random.key(0), tied.shape)
        return certain(jnp.argmax(jnp.where(tied, chance, -1.0), 1), votes.n_classes)
    if tie == "first":
        return certain(_first_voted(tied, votes), votes.n_classes)
    lowest = jnp.argmax(tied, 1)
    highest = votes.n_classes - 1 - jnp.argmax(tied[:, ::-1], 1)
    return at_centre(lowest + highest, votes.n_classes, tie)


@jit_inline("n_classes", "tie")
def at_centre(twice: ItemCodes, n_classes: int, tie: Literal["middle", "outer"]) -> LogProbs:
    """Return the class at `twice / 2`; a half is rounded to the middle or outwards, or is a tie."""
    middle = n_classes - 1
    below, above = twice // 2, (twice + 1) // 2
    towards = jnp.where(twice < middle, above, below)
    away = jnp.where(twice < middle, below, above)
    chosen = certain(towards if tie == "middle" else away, n_classes)
    half = jax.nn.logsumexp(
        jnp.stack([certain(below, n_classes), certain(above, n_classes)]), axis=0
    ) - jnp.log(2.0)
    return jnp.where((twice == middle)[:, None] & (below != above)[:, None], half, chosen)


def _first_voted(tied: Array, votes: Votes) -> ItemCodes:
    """Return the tied class of the earliest vote, samples before judges; the lowest if none."""
    given = jnp.swapaxes(votes.index, 1, 2).reshape(votes.n_items, -1).astype(int)
    voted = given[..., None] == jnp.arange(votes.n_classes)
    earliest = jnp.where(voted.any(1), voted.argmax(1), given.shape[1])
    return jnp.argmin(jnp.where(tied, earliest, given.shape[1] + 1), 1)


@aggregator("vote-share", needs_map=True)
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class VoteShare(JaxMethod):
    r"""Predict the smoothed share of the votes: the majority vote as probabilities.

    .. math:: p(k) = \frac{c_k + a}{n + K a}

    with the pseudo-count a, which the paper does not specify. All judges and samples together; an item
    without votes is uniform.
    """

    pseudo_count: float = 0.5
    saved: ClassVar[tuple[str, ...]] = ("pseudo_count",)

    def predict(self, values: Sites, given: Votes) -> LogProbs:  # noqa: ARG002
        """Return the log of the smoothed shares."""
        return log_share(given.pooled_counts().astype(float), self.pseudo_count)


def log_share(count: LogProbs, pseudo_count: Scalar) -> LogProbs:
    """Return the log of each class's share of the counts, smoothed; uniform where there are none."""
    support = count + pseudo_count
    total = support.sum(1, keepdims=True)
    uniform = jnp.full_like(support, 1 / support.shape[1])
    return jnp.log(jnp.where(total > 0, support / jnp.where(total > 0, total, 1.0), uniform))
