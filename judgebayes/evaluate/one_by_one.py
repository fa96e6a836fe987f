"""Long fits on splits, one after the other, with the compiled program of a single fit.

A sweep usually fits many splits in one vectorised program. For a long fit that has two costs: the
program takes many seconds to compile, and then again for the single fit to all labels; and every split
waits for the one that needs the most steps. On a CPU, where one fit keeps a core busy, such splits are
therefore fitted one by one, on several threads. The items are padded to the number of all labels, so
that the fit to all of them (`fit_to_all`) is the same program.
"""

import os
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from judgebayes.aggregators.base import Aggregator, FittedAggregator
from judgebayes.aggregators.calibrated import Calibrated
from judgebayes.aggregators.costs import Costed, Size, cost_of
from judgebayes.arrays import ItemInts, Key, Labels, LogProbs, Weights
from judgebayes.compiled.float64 import in_float64
from judgebayes.evaluate.batches import SplitBatch, bucket_size, is_sequential
from judgebayes.evaluate.one_split import Evaluation
from judgebayes.measures.decide import bayes_action
from judgebayes.progress import Progress, followed
from judgebayes.votes.array import MISSING, Votes

LONG_FIT = 3e6
"""The operations from which a fit takes much longer than its call."""


def is_long(method: Aggregator, votes: Votes, items: int) -> bool:
    """Tell whether a fit to this many items is long, by the method's own cost, and runs on a CPU."""
    inner: object = method
    while not isinstance(inner, Costed) and hasattr(inner, "aggregator"):
        inner = inner.aggregator
    # The folds of a map's cross-fitting depend on the number of items, with padding.
    if not isinstance(inner, Costed) or isinstance(method, Calibrated) or is_sequential(method):
        return False
    size = Size(items, votes.n_judges, votes.n_samples, votes.n_classes)
    return cost_of(method, size).operations >= LONG_FIT and jax.default_backend() == "cpu"


def fit_to_all(method: Aggregator, votes: Votes, labels: ItemInts, key: Key) -> FittedAggregator:
    """Return the fit to all items, by the program of the splits."""
    return _fitted(method, votes, labels, np.arange(len(labels)), bucket_size(len(labels)), key)


def answers_of(fitted: FittedAggregator, votes: Votes) -> LogProbs:
    """Return the answers of a fit."""
    return _answers(fitted, votes)


def evaluate_one_by_one(
    method: Aggregator, batch: SplitBatch, what: str = "", progress: Progress | None = None
) -> Evaluation:
    """Fit and evaluate every split of a batch, each on its calibration items only.

    `progress` is told each split, with `what` as the name of the task.
    """
    labels, loss = np.asarray(batch.labels), jnp.asarray(batch.loss)
    calibration, evaluation = (np.asarray(part) for part in batch.splits[:2])
    sizes = ((calibration >= 0).sum(1).max(), (evaluation >= 0).sum(1).max())
    # All labels, unless most items are held out.
    n_items = bucket_size(int(sum(sizes) if sizes[1] <= sizes[0] else sizes[0]))
    votes = jax.tree.map(np.asarray, batch.votes)

    @in_float64  # the setting is a thread's own
    def one(split: int) -> tuple[Float[np.ndarray, "item class"], Int[np.ndarray, ""]]:
        items = calibration[split][calibration[split] >= 0]
        fitted = _fitted(method, votes, labels, items, n_items, batch.splits[2][split])
        some = votes.take(np.maximum(evaluation[split], 0))
        return np.asarray(answers_of(fitted, some)), np.asarray(fitted.status)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(one, range(len(calibration)))
        parts = [next(results) for _ in followed(calibration, what, progress)]
    log_probs, status = (jnp.asarray(np.stack(each)) for each in zip(*parts, strict=True))
    return Evaluation(
        items=jnp.asarray(evaluation),
        labels=jnp.where(evaluation >= 0, labels[np.maximum(evaluation, 0)], MISSING),
        log_probs=log_probs,
        decisions=bayes_action(log_probs, loss),
        status=status,
    )


def _fitted(
    method: Aggregator,
    votes: Votes,
    labels: ItemInts,
    items: Int[np.ndarray, " some"],
    n_items: int,
    key: Key,
) -> FittedAggregator:
    """Return the fit to some items, padded with items without votes and of weight 0."""
    rest = n_items - len(items)
    return _fit(
        method,
        votes.take(items).padded(n_items),
        np.pad(labels[items], (0, rest), constant_values=MISSING),
        np.pad(np.ones(len(items)), (0, rest)),
        key,
    )


@jax.jit
def _fit(
    method: Aggregator, votes: Votes, labels: Labels, weight: Weights, key: Key
) -> FittedAggregator:
    return method.fit(votes, labels, weight=weight, key=key)


@jax.jit
def _answers(fitted: FittedAggregator, votes: Votes) -> LogProbs:
    return fitted(votes)
