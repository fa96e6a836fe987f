"""How many splits a comparison of methods has, and what is said of its time and memory.

With the last fit: the chosen method on all labels of a user's votes, and its answers for every item.
"""

import jax
import numpy as np

from judgebayes.aggregators import DawidSkene, Fitted, Method
from judgebayes.arrays import ItemInts, LogProbs
from judgebayes.compiled.float64 import in_float64
from judgebayes.evaluate.engine import VMAP_BYTES
from judgebayes.evaluate.one_fit import fit_one, predict
from judgebayes.evaluate.sweeps import methods_at_once
from judgebayes.workflow.data import Study
from judgebayes.workflow.methods import Choice, build, cost_of_fit, suited, traits_of
from judgebayes.workflow.options import CalibrateRequest

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
OPERATIONS_PER_SECOND, LONG_SECONDS = 1e10, 30
"""The speed for which times are told, of two cores, and the time from which they are."""
BASE_BYTES = 7e8
"""The memory of the program itself."""


def plan(request: CalibrateRequest, data: Study) -> tuple[int, list[str]]:
    """Return the number of splits, and a sentence about the time and memory of a long comparison.

    The number is the one asked for, or the usual one, less where it would take long. It follows from
    the sizes alone, so that it is the same on every machine.
    """
    votes, labelled = data.votes, int((data.labels >= 0).sum())
    if labelled < LEAST_FOR_SPLITS:
        return request.splits or USUAL_SPLITS, []
    names = suited(votes) if request.method == "auto" else [request.method]
    fits = [cost_of_fit(name, votes, labelled) for name in names]
    of_split = sum(fit.operations for fit in fits)
    once = max(cost_of_fit(name, votes).operations for name in names)
    in_time = int((MOST_SECONDS * OPERATIONS_PER_SECOND - once) / max(of_split, 1.0))
    splits = request.splits or min(max(in_time, FEWEST_SPLITS), USUAL_SPLITS)
    seconds = (splits * of_split + once) / OPERATIONS_PER_SECOND
    if seconds < LONG_SECONDS:
        return splits, []
    largest = sorted((fit.numbers for fit in fits), reverse=True)[: methods_at_once()]
    own = sum(max(VMAP_BYTES, 8 * each) for each in largest)
    fewer = request.splits is None and splits < USUAL_SPLITS
    usual = round((USUAL_SPLITS * of_split + once) / OPERATIONS_PER_SECOND / 60)
    return splits, [
        f"Comparing {len(names)} method(s) on {splits} splits of {labelled:,} labelled items x "
        f"{votes.n_judges:,} judges x {votes.n_classes} classes takes about "
        f"{max(round(seconds / 60), 1)} min and up to {(own + BASE_BYTES) / 1e9:.1f} GB. "
        + (f"The usual {USUAL_SPLITS} would take about {usual} min. " if fewer else "")
        + "Use fewer --splits, or name one --method, for less."
    ]
