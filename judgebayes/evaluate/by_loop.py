"""Methods that are no JAX code, evaluated split by split: slower than a compiled sweep, and correct."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from judgebayes.arrays import AnyArray
from judgebayes.errors import JudgeBayesError
from judgebayes.evaluate.one_split import Evaluation, FitOn
from judgebayes.inference.status import Status
from judgebayes.measures.decide import bayes_action
from judgebayes.votes.array import MISSING, Votes

__all__ = ["PlainFit", "evaluated_by_loop", "fitted_plainly", "is_jax"]

SUMS_TO_ONE = 1e-6


def is_jax(method: Any) -> bool:
    """Tell whether a method, or a fit, is a pytree, which compiled code can take."""
    return not jax.tree_util.all_leaves([method])


@dataclass(frozen=True)
class PlainFit:
    """A fit that is no JAX code, with its answers checked and a status."""

    inner: Any
    status: Int[Array, ""]

    def __call__(self, votes: Votes) -> Float[Array, "item class"]:
        """Return the items' log-probabilities.

        Raises
        ------
        JudgeBayesError
            If they are of another shape, not numbers, or their exponentials do not sum to one.
        """
        return answers_of(self.inner, votes)


def fitted_plainly(
    method: Any, votes: Votes, labels: Int[AnyArray, " item"], key: Array
) -> PlainFit:
    """Fit a method that is no JAX code; a fit that does not say how it ended has converged."""
    inner = method.fit(votes, labels, key=key)
    return PlainFit(inner, jnp.asarray(int(getattr(inner, "status", Status.CONVERGED))))


def evaluated_by_loop(
    method: Any,
    votes: Votes,
    labels: Int[AnyArray, " item"],
    calibration: Int[AnyArray, "split calibration"],
    evaluation: Int[AnyArray, "split evaluation"],
    keys: Array,
    loss: Float[AnyArray, "action class"],
    fit_on: FitOn,
    n_items: int,
) -> Evaluation:
    """Fit and answer on every split in turn; the answers have a leading split axis.

    `n_items` is how many items the votes have without those that fill up a batch.
    """
    labels, rows = np.asarray(labels), []
    for here, there, key in zip(np.asarray(calibration), np.asarray(evaluation), keys, strict=True):
        here, seen = here[here >= 0], np.full(n_items, MISSING)
        seen[here] = labels[here]
        shown = np.arange(n_items) if fit_on == "all" else here
        fitted = fitted_plainly(method, votes.take(shown), seen[shown], key)
        rows.append((fitted(votes.take(np.maximum(there, 0))), fitted.status))
    log_probs, status = (jnp.asarray(np.stack(each)) for each in zip(*rows, strict=True))
    items = jnp.asarray(evaluation)
    return Evaluation(
        items=items,
        labels=jnp.where(items >= 0, jnp.asarray(labels)[jnp.maximum(items, 0)], MISSING),
        log_probs=log_probs,
        decisions=bayes_action(log_probs, jnp.asarray(loss)),
        status=status,
    )


def answers_of(fitted: Any, votes: Votes) -> Float[Array, "item class"]:
    """Return what a fit answers, checked: log-probabilities of every item's classes.

    Raises
    ------
    JudgeBayesError
        If they are of another shape, not numbers, or their exponentials do not sum to one.
    """
    name = type(fitted).__name__
    found = np.asarray(fitted(votes), float)
    right = (votes.n_items, votes.n_classes)
    if found.shape != right:
        raise JudgeBayesError(
            f"{name} answers with the shape {found.shape}; right would be the log-probabilities of "
            f"{right[0]} items and {right[1]} classes."
        )
    with np.errstate(over="ignore"):
        total = np.exp(found).sum(1)
    if not (np.abs(total - 1) < SUMS_TO_ONE).all():
        item = int(np.argmax(~(np.abs(total - 1) < SUMS_TO_ONE)))
        raise JudgeBayesError(
            f"{name} answers item {item} with {found[item]}: these are no log-probabilities, whose "
            f"exponentials sum to 1 (here {total[item]:g})."
        )
    return jnp.asarray(found)
