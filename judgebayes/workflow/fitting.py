"""Fit a method to all labels of a user's votes, and answer every item."""

import jax
import jax.numpy as jnp
import numpy as np

from judgebayes.aggregators import Aggregator, DawidSkene, FittedAggregator
from judgebayes.arrays import ItemCodes, ItemInts, Key, LogProbs
from judgebayes.compiled.float64 import in_float64
from judgebayes.evaluate.plans import PlainFit, answers_of, fit_plain, fit_to_all, is_jax, is_long
from judgebayes.votes import Votes
from judgebayes.workflow.methods import Choice, build, traits_of
from judgebayes.workflow.reading import Reading

Answered = tuple[Aggregator, FittedAggregator, LogProbs]
"""A method, its fit to all labels, and its log-probabilities of every item."""


@in_float64
def fit_and_answer(choice: Choice, read: Reading, labels: ItemInts, seed: int) -> Answered:
    """Return a method, its fit to all labels, and its answers on all items."""
    method = build(choice, read.coding.classes, read.votes)
    fitted = fit_to_labels(choice, method, read, labels, seed)
    return method, fitted, predict(fitted, read.votes)


def fit_to_labels(
    choice: Choice, method: Aggregator, read: Reading, labels: ItemInts, seed: int
) -> FittedAggregator:
    """Return the method fitted to the items that it learns from."""
    votes = read.votes
    if not traits_of(choice.method).learns_from_unlabelled:
        # Without labels, the first item: `sc` learns nothing.
        labelled = np.flatnonzero(labels >= 0) if (labels >= 0).any() else np.arange(1)
        votes, labels = votes.take(labelled), labels[labelled]
        if is_jax(method) and is_long(method, votes, len(labels)):
            return fit_to_all(method, votes, labels, jax.random.key(seed))
    if isinstance(method, DawidSkene) and not (labels >= 0).any():
        return method.fit(votes, labels)  # compiled code could not tell that there are no labels
    if not is_jax(method):
        return fit_plain(method, votes, labels, jax.random.key(seed))
    return _fit(method, votes, jnp.asarray(labels), jax.random.key(seed))


def predict(fitted: FittedAggregator, votes: Votes) -> LogProbs:
    """Return the answers on all items."""
    return fitted(votes) if isinstance(fitted, PlainFit) else answers_of(fitted, votes)


@jax.jit
def _fit(method: Aggregator, votes: Votes, labels: ItemCodes, key: Key) -> FittedAggregator:
    return method.fit(votes, labels, key=key)
