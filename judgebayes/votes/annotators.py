r"""The labels of several annotators: how often they err, and how probable each class is.

An annotator a gives an item of class y the label z with probability

.. math:: p(z \mid y) = \begin{cases} 1 - e_a & z = y \\ e_a / (K - 1) & z \ne y \end{cases}

independently of the other annotators: the one-coin model, with the error that
`judgebayes.models.base` describes. How often annotators disagree determines the rates. Two
annotators have one rate, because their disagreement does not show who is wrong; so have annotators
without names. The rates of three or more are drawn to their mean. An adjudicator does not err.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from jaxtyping import Float, Int, Num
from scipy.special import expit, logit, logsumexp, softmax

from judgebayes.arrays import ItemInts
from judgebayes.votes.array import MISSING

Merge = Literal["majority", "adjudicated", "noisy"]

PRIOR_RATE, PRIOR_LABELS = 0.1, 10.0
"""The prior error rate, and how many labels it counts as: for the mean rate, and for each annotator."""
SURE = 0.6
"""Least probability, with equal prior probabilities, of a class that labels an item."""
HIGHEST = 0.98
"""The highest error rate, as a part of that of random labels."""
STEPS, TOLERANCE = 500, 1e-9
NODE_WEIGHTS = (1 / 6, 2 / 3, 1 / 6)
"""Weights of the nodes of `ErrorRates`: the Gauss-Hermite quadrature with three points."""


@dataclass(frozen=True)
class Annotations:
    """Labels by annotators, a row per label, and those of an adjudicator."""

    item: Int[np.ndarray, " row"]
    annotator: Int[np.ndarray, " row"]
    """From 0; the same for all rows if annotators have no names."""
    label: Int[np.ndarray, " row"]
    """The index of the class."""
    decided: ItemInts
    """The adjudicator's label of each item, -1 if there is none."""
    n_annotators: int
    """With the adjudicator."""
    n_classes: int

    def sums(self, of: np.ndarray | None = None) -> Num[np.ndarray, "item class"]:
        """Return how many labels, or the sum of what each stands for, give each item each class."""
        shape = len(self.decided), self.n_classes
        cell = self.item * self.n_classes + self.label
        return np.bincount(cell, of, minlength=np.prod(shape)).reshape(shape)

    @property
    def used(self) -> Int[np.ndarray, " used"]:
        """The items with a label."""
        return np.flatnonzero((self.decided >= 0) | (self.sums().sum(1) > 0))

    def merged(self, how: Merge, rates: "ErrorRates | None") -> ItemInts:
        """Return one label of each item, -1 where the annotators' labels give none.

        The adjudicator decides. For other items it is the only most frequent class (`majority`), the
        class on which all agree (`adjudicated`), or the class with the highest likelihood under the
        rates, if its probability is at least .6 with equal prior probabilities (`noisy`).
        """
        counts = self.sums()
        first, most = counts.argmax(1), counts.max(1)
        clear = most == counts.sum(1)
        if how == "noisy":
            assert rates is not None
            likely = softmax(rates.log_likelihood(self), axis=1)
            first, clear = likely.argmax(1), likely.max(1) >= SURE
        elif how == "majority":
            clear = (counts == most[:, None]).sum(1) == 1
        labels = np.where(clear & (most > 0), first, MISSING)
        return np.where(self.decided >= 0, self.decided, labels)

    @property
    def overlap(self) -> bool:
        """Whether an item has two labels or more, with the adjudicator's."""
        return bool((self.sums().sum(1) + (self.decided >= 0) > 1).any())


@dataclass(frozen=True)
class ErrorRates:
    """The annotators' error rates, and the spread of their common level."""

    rate: Float[np.ndarray, " annotator"]
    level: tuple[float, float]
    """Posterior mean and standard deviation of a shift of the logits of all rates."""
    n_classes: int

    def shifted(self, shift: float) -> "ErrorRates":
        """Return rates with logits shifted, at most those of random labels."""
        most = HIGHEST * (1 - 1 / self.n_classes)
        return replace(self, rate=np.minimum(expit(logit(self.rate) + shift), most))

    def nodes(self) -> list["ErrorRates"]:
        """Return three rates that stand for the posterior, with weights `NODE_WEIGHTS`."""
        mean, spread = self.level
        return [self.shifted(mean + spread * z) for z in (-np.sqrt(3), 0.0, np.sqrt(3))]

    def log_likelihood(self, labels: Annotations) -> Float[np.ndarray, "item class"]:
        """Return log p(labels of an item | class), up to a constant of each item; 0 without labels."""
        e = self.rate[labels.annotator]
        total = labels.sums(np.log1p(-e) - np.log(e / (self.n_classes - 1)))
        decided = labels.decided[:, None]
        sure = np.where(np.arange(self.n_classes) == decided, 0.0, -np.inf)
        return np.where(decided >= 0, sure, total)


def error_rates(labels: Annotations) -> ErrorRates | None:
    """Return the annotators' error rates from their agreement; None if no item has two labels.

    The mode by EM, with a Beta prior of the mean rate, which counts as one wrong label of ten; with
    three annotators or more, each rate has a prior of ten labels at the mean rate.
    """
    if not labels.overlap:
        return None
    k, annotator, used = labels.n_classes, labels.annotator, labels.used
    n = np.bincount(annotator, minlength=labels.n_annotators)
    separate = (n > 0).sum() > 2
    rates = ErrorRates(np.full(len(n), PRIOR_RATE), (0.0, 0.0), k)
    share = np.full(k, 1 / k)
    for _ in range(STEPS):
        chance = softmax(rates.log_likelihood(labels) + np.log(share), axis=1)
        wrong = np.bincount(annotator, 1 - chance[labels.item, labels.label], minlength=len(n))
        share = (1 + chance[used].sum(0)) / (k + len(used))
        mean = (PRIOR_RATE * PRIOR_LABELS + wrong.sum()) / (PRIOR_LABELS + n.sum())
        each = (PRIOR_LABELS * mean + wrong) / (PRIOR_LABELS + n) if separate else mean
        new = np.minimum(each + np.zeros(len(n)), HIGHEST * (1 - 1 / k))
        change = np.abs(new - rates.rate).max()
        rates = replace(rates, rate=new)
        if change < TOLERANCE:
            break
    return replace(rates, level=_level(rates, labels, np.log(share)))


def _level(
    rates: ErrorRates, labels: Annotations, log_share: Float[np.ndarray, " class"]
) -> tuple[float, float]:
    """Return mean and standard deviation of the posterior of a common shift of the rates' logits."""
    right, used = labels.decided[labels.item] == labels.label, labels.used

    def log_posterior(shift: float) -> float:
        at = rates.shifted(shift)
        e = at.rate[labels.annotator]
        wrong = np.log(e / (labels.n_classes - 1))
        # `log_likelihood` leaves out the probability that all labels of an item are wrong, and what
        # the labels of decided items contribute.
        total = logsumexp(at.log_likelihood(labels)[used] + log_share, axis=1).sum() + wrong.sum()
        total += (np.log1p(-e) - wrong)[right].sum()
        mean = at.rate.mean()
        prior = PRIOR_RATE * np.log(mean) + (1 - PRIOR_RATE) * np.log1p(-mean)
        return float(total + PRIOR_LABELS * prior)

    centre, spread = 0.0, 0.6
    for _ in range(4):  # each grid is up to five times as fine, until it fits the posterior
        shifts = centre + np.linspace(-5, 5, 31) * spread
        weight = softmax([log_posterior(float(shift)) for shift in shifts])
        centre = float(weight @ shifts)
        error = float(np.sqrt(weight @ (shifts - centre) ** 2))
        spread = max(error, 0.2 * spread)
    return centre, error
