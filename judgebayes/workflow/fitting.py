"""Fit a method to all labels of a user's votes, and answer every item."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from judgebayes.aggregators import Aggregator, DawidSkene, FittedAggregator, FittedDawidSkene
from judgebayes.aggregators.base import by_slab
from judgebayes.compiled.float64 import in_float64
from judgebayes.compiled.programs import cached_export
from judgebayes.evaluate.by_loop import PlainFit, fit_plain
from judgebayes.evaluate.one_by_one import answers_of, fit_to_all, is_long
from judgebayes.evaluate.plans import is_jax
from judgebayes.votes import SparseVotes, Votes
from judgebayes.votes.sparse import AnyVotes
from judgebayes.workflow.methods import Choice, build, traits_of
from judgebayes.workflow.reading import Listing, Reading

__all__ = [
    "Answered",
    "fit_and_answer",
    "fit_to_labels",
    "fitted_once",
    "labelled_items",
    "predict",
    "table_of",
]

SLAB_CELLS = 2**22
"""Cells (item x judge x sample) of the tables in which a list of votes is processed."""
Answered = tuple[Aggregator, FittedAggregator, Float[Array, "item class"]]
"""A method, its fit to all labels, and its log-probabilities of every item."""


def table_of(
    read: Reading | Listing, labels: Int[np.ndarray, " item"]
) -> tuple[Reading, Int[np.ndarray, " some"]]:
    """Return the votes as a table, with labels; of a list of votes, only the labelled items."""
    if isinstance(read, Reading):
        return read, labels
    labelled = labelled_items(labels)
    return read.of_items(labelled), labels[labelled]


def labelled_items(labels: Int[np.ndarray, " item"]) -> Int[np.ndarray, " some"]:
    """Return the labelled items, or the first item if there are none (`sc` learns nothing)."""
    return np.flatnonzero(labels >= 0) if (labels >= 0).any() else np.arange(1)


def fitted_once(choice: Choice, read: Reading | Listing) -> bool:
    """Return whether a method learns from all items of a list of votes, too many to fit again."""
    return isinstance(read, Listing) and traits_of(choice.method).learns_from_unlabelled


@in_float64
def fit_and_answer(
    choice: Choice,
    table: Reading,
    read: Reading | Listing,
    labels: Int[np.ndarray, " item"],
    seed: int,
) -> Answered:
    """Return a method, its fit to all labels, and its answers on all items."""
    method = build(choice, table.coding.classes, table.votes)
    fitted = fit_to_labels(choice, method, read, labels, seed)
    return method, fitted, predict(fitted, read.votes)


def fit_to_labels(
    choice: Choice,
    method: Aggregator,
    read: Reading | Listing,
    labels: Int[np.ndarray, " item"],
    seed: int,
) -> FittedAggregator:
    """Return the method fitted to the items that it learns from."""
    labelled = labelled_items(labels)
    if not traits_of(choice.method).learns_from_unlabelled:
        votes = (
            read.votes.take(labelled)
            if isinstance(read, Reading)
            else read.of_items(labelled).votes
        )
        labels = labels[labelled]
        if is_jax(method) and is_long(method, votes, len(labels)):
            return fit_to_all(method, votes, labels, jax.random.key(seed))
    elif isinstance(read, Reading):
        votes = read.votes
    else:
        assert isinstance(method, DawidSkene)  # `_uncalibrated`: it has no calibration map
        return method.fit(read.votes, labels)
    if isinstance(method, DawidSkene) and not (labels >= 0).any():
        return method.fit(votes, labels)  # compiled code could not tell that there are no labels
    if not is_jax(method):
        return fit_plain(method, votes, labels, jax.random.key(seed))
    return cached_export(_fit, method, votes, jnp.asarray(labels), jax.random.key(seed))


def predict(fitted: FittedAggregator, votes: AnyVotes) -> Float[Array, "item class"]:
    """Return the answers on all items; a list of votes is processed in small tables."""
    if isinstance(votes, Votes):
        return fitted(votes) if isinstance(fitted, PlainFit) else answers_of(fitted, votes)
    if isinstance(fitted, FittedDawidSkene):
        return fitted(votes)
    share = votes.n_items / max(len(votes), 1)
    rows = int(SLAB_CELLS / (votes.n_judges * votes.n_samples) / (1.5 * share))
    shape = votes.slab_shape(max(rows, 1))

    def answer(slab: AnyVotes) -> Float[Array, "item class"]:
        assert isinstance(slab, SparseVotes)
        table = slab.dense()
        return fitted(table) if isinstance(fitted, PlainFit) else answers_of(fitted, table)

    return by_slab(answer, votes, shape)


@jax.jit
def _fit(
    method: Aggregator, votes: Votes, labels: Int[Array, " item"], key: PRNGKeyArray
) -> FittedAggregator:
    return method.fit(votes, labels, key=key)
