"""The common interface of aggregators: votes in, log-probabilities of the classes out.

What a fit needs: numbers in memory and arithmetic operations, for batches and for messages.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from judgebayes.arrays import ItemCodes, ItemValues, Key, Labels, LogProbs, Weights
from judgebayes.compiled.float64 import in_float64
from judgebayes.compiled.jit_inline import jit_inline
from judgebayes.inference.fast.agreement import Agreement, agreement
from judgebayes.inference.fit import Answering, ByDraw, Fit, Fitted, ModelMethod, checked, solved
from judgebayes.inference.sampled import with_source
from judgebayes.inference.status import Status
from judgebayes.votes.array import Votes

COPIES = 6
"""The copies of its data that a fit has, if the method does not declare its cost."""
PASSES = 100
"""The passes over its data that a fit makes, if the method does not declare its cost."""


class Size(NamedTuple):
    """The size of the votes that a method is fitted to."""

    items: int
    judges: int
    samples: int
    classes: int


class Cost(NamedTuple):
    """The approximate cost of one fit."""

    numbers: float
    """The numbers that it has in memory at a time, of 8 bytes each."""
    operations: float
    """The additions and multiplications."""


def cost_of(method: Any, size: Size) -> Cost:
    """Return the cost of a fit: the declared one, or a rough one from the size of the votes.

    A method that needs more than a few copies of its data declares it, by a method `cost(size)`.

    A method around another one (`aggregator`), such as a calibration map, has the cost of the inner
    one, once for every fold of its cross-fitting and once for all items.
    """
    if hasattr(method, "cost"):
        declared: Cost = method.cost(size)
        return declared
    inner = getattr(method, "aggregator", None)
    if inner is not None:
        fits = 1 + (getattr(method, "cross_fit", None) or 0)
        numbers, operations = cost_of(inner, size)
        return Cost(fits * numbers if hasattr(inner, "cost") else numbers, fits * operations)
    cells = size.items * (size.judges * size.samples + 1) * size.classes
    return Cost(COPIES * cells, PASSES * cells)


@runtime_checkable
class Aggregator(Protocol):
    """Hyper-parameters of an aggregator; `fit` returns a fitted one and does not change this object.

    `labels` are class indices, -1 where unknown; a `weight` of 0 equals a dropped item.
    """

    def fit(
        self, votes: Votes, labels: Labels, *, weight: Weights | None = None, key: Key | None = None
    ) -> Fitted:
        """Fit to votes and labels."""
        ...


class Training(NamedTuple):
    """The training data of a fit, as checked arrays."""

    votes: Votes
    labels: ItemCodes
    weight: ItemValues
    key: Key


def training(
    votes: Votes, labels: Any, weight: Any, key: Key | None, *, labelled_only: bool
) -> Training:
    """Return votes, labels, weights and key as arrays, checked against each other.

    With `labelled_only`, items without a label or with weight 0 are dropped outside compiled code,
    because they would take time without any effect.

    Raises
    ------
    JudgeBayesError
        If lengths differ from the number of items, or a weight is negative or NaN, or a label is
        not a class index.
    """
    labels, weight = checked(labels, weight, votes.n_items, votes.n_classes)
    key = jax.random.key(0) if key is None else key
    if isinstance(weight, jax.core.Tracer) or isinstance(labels, jax.core.Tracer):
        return Training(votes, labels, weight, key)
    used = np.flatnonzero((np.asarray(labels) >= 0) & (np.asarray(weight) > 0))
    if labelled_only and 0 < len(used) < votes.n_items:
        return Training(votes.take(used), labels[used], weight[used], key)
    return Training(votes, labels, weight, key)


class VoteMethod(ABC):
    """The base of the library's methods: `fit` checks votes and labels, and `_fitted` fits to them."""

    labelled_only: ClassVar[bool] = True
    """Whether items without a label are left out of the fit, because they have no effect on it."""

    @in_float64
    def fit(
        self, votes: Votes, labels: Labels, *, weight: Weights | None = None, key: Key | None = None
    ) -> Fit:
        """Return the method fitted to votes and labels.

        Parameters
        ----------
        votes
            The votes on labelled and unlabelled items.
        labels
            Class indices, -1 where unknown.
        weight
            Non-negative item weights; 0 equals a dropped item.
        key
            Random key of restarts, draws or divisions; a fixed one by default.

        Raises
        ------
        JudgeBayesError
            If lengths differ, a weight is negative, or the method cannot be fitted to such votes.
        """
        data = training(votes, labels, weight, key, labelled_only=self.labelled_only)
        return with_source(self._fitted(data), votes, labels, weight)

    @abstractmethod
    def _fitted(self, data: Training) -> Fit:
        """Return the method fitted to checked data."""


class VoteModel(ModelMethod, VoteMethod):
    """A method that answers as its program does, fitted by its inference."""

    def _fitted(self, data: Training) -> Fit:
        return solved(self, *data)


class ByAgreement(ByDraw, VoteMethod):
    """A method whose fit depends on the votes only through each judge's agreement with the labels.

    For many splits, these counts are matrix products of the same votes with many weights: far cheaper
    than a copy of the votes for each split.
    """

    labelled_only = False

    def _fitted(self, data: Training) -> Fit:
        return self.from_agreement(agreement(data.votes, data.labels, data.weight))

    @abstractmethod
    def from_agreement(self, counts: Agreement) -> Fit:
        """Fit to the counts of each judge's agreement with the labels."""


class Rule(Answering, VoteMethod):
    """An aggregator without parameters: its prediction depends only on an item's votes."""

    labelled_only = False

    def _fitted(self, data: Training) -> Fit:  # noqa: ARG002
        """Return the rule itself, ready to be applied."""
        return Fit(self, {}, jnp.asarray(int(Status.CONVERGED)))

    def answer(self, fit: Fit, given: Votes) -> LogProbs:  # noqa: ARG002
        """Return the items' log-probabilities."""
        return self.apply(given)

    @abstractmethod
    def apply(self, votes: Votes) -> LogProbs:
        """Return log-probabilities, certain of one class unless the rule returns a tie."""


@jit_inline("n_classes")
def certain(decisions: Int[Array, "*item"], n_classes: int) -> Float[Array, "*item class"]:
    """Return log-probabilities with all mass on one class: 0 there, -inf elsewhere."""
    chosen = decisions[..., None] == jnp.arange(n_classes)
    return jnp.where(chosen, 0.0, -jnp.inf)
