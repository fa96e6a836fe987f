"""How many splits a comparison of methods has.

With the last fit: the chosen method on all labels of a user's votes, and its answers for every item.
"""

import jax
import numpy as np

from judgebayes.aggregators.dawid_skene import DawidSkene
from judgebayes.arrays import ItemInts, LogProbs
from judgebayes.compiled.float64 import in_float64
from judgebayes.evaluate.one_fit import fit_one, predict
from judgebayes.inference.fit import Fitted, Method
from judgebayes.workflow.data import Study
from judgebayes.workflow.methods import Choice, build, cost_of_fit, suited, traits_of

Answered = tuple[Method, Fitted, LogProbs]
"""A method, its fit to all labels, and its log-probabilities of every item."""


@in_float64
def fit_and_answer(choice: Choice, data: Study, labels: ItemInts, seed: int) -> Answered:
    """Return a method, its fit to all labels, and its answers on all items."""
    method = build(choice, data.coding.classes, data.votes)
    fitted = fit_to_labels(choice, method, data, labels, seed)
    return method, fitted, predict(fitted, data.votes)


def fit_to_labels(
    choice: Choice, method: Method, data: Study, labels: ItemInts, seed: int
) -> Fitted:
    """Return the method fitted to the items that it learns from."""
    votes = data.votes
    if not traits_of(choice.method).learns_from_unlabelled:
        # Without labels, the first item: `sc` learns nothing.
        labelled = np.flatnonzero(labels >= 0) if (labels >= 0).any() else np.arange(1)
        votes, labels = votes.take(labelled), labels[labelled]
    if isinstance(method, DawidSkene) and not (labels >= 0).any():
        return method.fit(votes, labels)  # compiled code could not tell that there are no labels
    return fit_one(method, votes, labels, jax.random.key(seed))


LEAST_FOR_SPLITS = 10
"""With fewer labels none are held out."""
USUAL_SPLITS, FEWEST_SPLITS = 100, 20
"""The number of splits without `--splits`; of a long comparison, the least."""
MOST_SECONDS = 120
"""The time of a comparison above which it has fewer splits."""
OPERATIONS_PER_SECOND = 1e10
"""The speed of two cores."""


def usual_splits(method: str, data: Study) -> int:
    """Return the usual number of splits of a comparison, less where it would take long.

    It follows from the sizes alone, so that it is the same on every machine.
    """
    votes, labelled = data.votes, int((data.labels >= 0).sum())
    names = suited(votes) if method == "auto" else [method]
    of_split = sum(cost_of_fit(name, votes, labelled).operations for name in names)
    once = max(cost_of_fit(name, votes).operations for name in names)
    in_time = int((MOST_SECONDS * OPERATIONS_PER_SECOND - once) / max(of_split, 1.0))
    return min(max(in_time, FEWEST_SPLITS), USUAL_SPLITS)
