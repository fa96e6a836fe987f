"""A separate fit for each task."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from judgebayes.aggregators.davidson import tasks_of
from judgebayes.arrays import AnyArray
from judgebayes.compiled.float64 import in_float64
from judgebayes.inference.fit import Fitted, Method, status_of, training
from judgebayes.inference.status import summary
from judgebayes.votes.array import MISSING, Votes


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PerTask:
    """Fit a method separately to the labelled items of each task."""

    method: Method

    @in_float64
    def fit(
        self,
        votes: Votes,
        labels: Int[AnyArray, " item"],
        *,
        weight: Float[AnyArray, " item"] | None = None,
        key: PRNGKeyArray | None = None,
    ) -> "FittedPerTask":
        """Return the method fitted once per task.

        Raises
        ------
        JudgeBayesError
            If the votes have no tasks, lengths differ, or a weight is negative.
        """
        data = training(votes, labels, weight, key, labelled_only=True)
        task = tasks_of(data.given)

        def one(which: Int[Array, ""], key: PRNGKeyArray) -> Fitted:
            own = jnp.where(task == which, data.labels, MISSING)
            return self.method.fit(data.given, own, weight=data.weight, key=key)

        fitted = jax.vmap(one)(jnp.arange(votes.n_tasks), jax.random.split(data.key, votes.n_tasks))
        return FittedPerTask(fitted)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FittedPerTask:
    """The fits of all tasks, stacked along a leading task axis."""

    by_task: Fitted

    __repr__ = summary

    @property
    def status(self) -> Int[Array, "*batch"]:
        """The worst status of the tasks' fits."""
        return status_of(self.by_task).max(-1)

    @in_float64
    def __call__(self, votes: Votes) -> Float[Array, "item class"]:
        """Return the log-probabilities of each item under its own task's fit."""
        predictions = jax.vmap(lambda fitted: fitted(votes))(self.by_task)
        return predictions[tasks_of(votes), jnp.arange(votes.n_items)]
