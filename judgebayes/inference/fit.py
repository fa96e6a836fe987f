"""What every method is, and returns: the method, the values that it estimated, and their status.

A method says how its fits answer, most often by one draw of their values (`JaxMethod.predict`); all else
follows here, once.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from judgebayes.arrays import ItemCodes, ItemValues, Key, Labels, LogProbs, Weights
from judgebayes.compiled.float64 import in_float64
from judgebayes.compiled.jit_inline import jit_inline
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fast.log_softmax import log_mean_exp
from judgebayes.inference.problem import Problem, Sites, check_prior
from judgebayes.inference.registry import in_files
from judgebayes.inference.sampled import Sampled, with_source
from judgebayes.inference.status import Status, degenerate_status, worst
from judgebayes.measures.scores import labelled_weight
from judgebayes.measures.significance import Interval
from judgebayes.models.base import Model
from judgebayes.votes.array import Votes

NO_POSTERIOR = (
    "{} has no posterior, so its probabilities have no interval. Temperature, Platt and Beta have one; "
    "use, for example, BayesianMap(Platt())."
)


def checked(labels: Any, weight: Any, n_items: int, n_classes: int) -> tuple[ItemCodes, ItemValues]:
    """Return labels and weights (ones if None) as arrays, checked where their values are known.

    Raises
    ------
    JudgeBayesError
        If lengths differ from the number of items, or a weight is negative or NaN, or a label is
        not a class index.
    """
    labels = jnp.asarray(labels)
    weight = jnp.ones(n_items) if weight is None else jnp.asarray(weight, dtype=float)
    for name, array in (("labels", labels), ("weights", weight)):
        if array.shape != (n_items,):
            raise JudgeBayesError(
                f"The {name} have the shape {array.shape}; there are {n_items} items, so the shape "
                f"must be ({n_items},)."
            )
    if not jnp.issubdtype(labels.dtype, jnp.integer):
        raise JudgeBayesError(
            f"The labels are of type {labels.dtype}; they must be class indices (integers), -1 "
            "where unknown, as Coding.labels returns them."
        )
    if isinstance(weight, jax.core.Tracer) or isinstance(labels, jax.core.Tracer):
        return labels, weight
    if not bool((np.asarray(weight) >= 0).all()):
        raise JudgeBayesError("A weight is negative or NaN; weights must be 0 or more.")
    highest = int(np.asarray(labels).max(initial=-1))  # NumPy: the call may be inside `jit`
    if highest >= n_classes:
        raise JudgeBayesError(
            f"A label is {highest}; with {n_classes} classes the highest index is {n_classes - 1}."
        )
    return labels, weight


Fitted = Callable[[Any], LogProbs]
"""A fit: votes to log-probabilities of every item's classes; of a map, from uncalibrated ones."""


def status_of(fitted: Fitted) -> Int[Array, "*batch"]:
    """Return the status of a fit, a `Status` as a number; one that states none has converged."""
    return jnp.asarray(getattr(fitted, "status", int(Status.CONVERGED)))


@runtime_checkable
class Method(Protocol):
    """An aggregator, which is fitted to votes, or a map, fitted to an aggregator's log-probabilities.

    It holds hyper-parameters only; `fit` returns a fit and does not change it. `labels` are class
    indices, -1 where unknown; a `weight` of 0 equals a dropped item.
    """

    def fit(
        self,
        given: Any,
        /,
        labels: Labels,
        *,
        weight: Weights | None = None,
        key: Key | None = None,
    ) -> Fitted:
        """Fit to votes or log-probabilities, and labels."""
        ...


class Training(NamedTuple):
    """The training data of a fit, as checked arrays."""

    given: Any
    """Votes, or the log-probabilities that a map changes."""
    labels: ItemCodes
    weight: ItemValues
    key: Key


def training(
    given: Any,
    labels: Any,
    weight: Any = None,
    key: Key | None = None,
    *,
    labelled_only: bool = False,
) -> Training:
    """Return votes (or log-probabilities), labels, weights and key as arrays, checked together.

    With `labelled_only`, items without a label or with weight 0 are dropped outside compiled code,
    because they would take time without any effect. The log-probabilities of such items are ignored:
    they have weight 0, and uniform ones in place of their own, which may be NaN.

    Raises
    ------
    JudgeBayesError
        If lengths differ from the number of items, or a weight is negative or NaN, or a label is
        not a class index, or the log-probabilities of a labelled item are NaN or above 0.
    """
    votes = given if isinstance(given, Votes) else None
    given = jnp.asarray(given, dtype=float) if votes is None else votes
    shape = given.shape if votes is None else (votes.n_items, votes.n_classes)
    labels, weight = checked(labels, weight, *shape)
    key = jax.random.key(0) if key is None else key
    values_known = not any(isinstance(x, jax.core.Tracer) for x in (given, labels, weight))
    if votes is None:
        if values_known:
            _check_log_probs(np.asarray(given), np.asarray(labels), np.asarray(weight))
        return Training(*_used_only(given, labels, weight), key)
    if values_known and labelled_only:
        used = np.flatnonzero((np.asarray(labels) >= 0) & (np.asarray(weight) > 0))
        if 0 < len(used) < votes.n_items:
            return Training(votes.take(used), labels[used], weight[used], key)
    return Training(votes, labels, weight, key)


def _check_log_probs(log_probs: np.ndarray, labels: np.ndarray, weight: np.ndarray) -> None:
    bad = ((labels >= 0) & (weight > 0))[:, None] & ~(log_probs <= 1e-6)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise JudgeBayesError(
            f"Item {row}, class {column} has the log-probability {log_probs[row, column]:g}; it must "
            "be at most 0; -inf is allowed."
        )


@jit_inline()
def _used_only(
    log_probs: LogProbs, labels: ItemCodes, weight: ItemValues
) -> tuple[LogProbs, ItemCodes, ItemValues]:
    """Return the data with weight 0 and uniform probabilities where the label is unknown."""
    used = labelled_weight(labels, weight)
    n_classes = log_probs.shape[1]
    uniform = jnp.full(n_classes, -jnp.log(n_classes))
    return jnp.where(used[:, None] > 0, log_probs, uniform), labels, used


class JaxMethod:
    """The base of the library's methods: `fit` checks the data, and `_fitted` fits to them.

    A method says how one draw of its values answers (`predict`); one that answers by the fits inside it
    says so instead (`answer`). `given` is votes, or the log-probabilities that a map changes.
    """

    saved: ClassVar[tuple[str, ...]] = ()
    """The method's fields that answers depend on: a fit's file stores these, and no others."""
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """The names of the axes of each value and detail of a fit, without the axis of draws."""
    labelled_only: ClassVar[bool] = False
    """Whether items without a label are left out of the fit, because they have no effect on it."""
    sums_items: ClassVar[bool] = False
    """Whether a fit is made of sums over the labelled items: many splits are then weights of all items
    in one matrix product, far cheaper than a copy of the votes for each split."""
    __post_init__ = check_prior

    @in_float64
    def fit(
        self,
        given: Any,
        labels: Labels,
        *,
        weight: Weights | None = None,
        key: Key | None = None,
    ) -> "Fit":
        """Return the method fitted to votes (a map: to an aggregator's log-probabilities) and labels.

        Parameters
        ----------
        given
            The votes, or the log-probabilities, of labelled and unlabelled items.
        labels
            Class indices, -1 where unknown.
        weight
            Non-negative item weights; 0 equals a dropped item.
        key
            Random key of restarts, draws or divisions; a fixed one by default.

        Raises
        ------
        JudgeBayesError
            If lengths differ, a weight is negative, a label is not a class index, a log-probability is
            NaN, or the method cannot be fitted to such data.
        """
        data = training(given, labels, weight, key, labelled_only=self.labelled_only)
        source = (given, labels, weight) if isinstance(given, Votes) else data[:3]
        return with_source(self._fitted(data), *source)

    def _fitted(self, data: Training) -> "Fit":  # noqa: ARG002
        """Return the method fitted to checked data; a rule has nothing to fit."""
        return Fit(self, {}, jnp.asarray(int(Status.CONVERGED)))

    def predict(self, values: Sites, given: Any) -> LogProbs:  # noqa: ARG002
        """Return the items' log-probabilities under one draw of the values, from what was `prepared`.

        Raises
        ------
        JudgeBayesError
            If the method says nothing of the items' classes, as item response.
        """
        raise JudgeBayesError(
            f"{type(self).__name__} says nothing of the items' classes; use an aggregator."
        )

    def prepared(self, given: Any) -> Any:
        """Return what `predict` takes, prepared once for all draws, outside of their program."""
        return given

    def answer(self, fit: "Fit", given: Any) -> LogProbs:
        """Return the items' log-probabilities: of the mean probability over the draws."""
        return _averaged(fit, self.prepared(given))

    def by_draw(self, fit: "Fit", given: Any) -> Float[Array, "draw item class"]:
        """Return the items' log-probabilities under every draw."""
        if fit.n_draws == 1:
            return self.answer(fit, given)[None]
        return _by_draw(fit, self.prepared(given))


@in_files
@jax.tree_util.register_dataclass
class Fit(Sampled):
    """A fitted method, which maps votes (or, of a map, log-probabilities) to log-probabilities."""

    @in_float64
    def __call__(self, given: Any) -> LogProbs:
        """Return the items' log-probabilities, averaged over the draws (the predictive).

        Raises
        ------
        JudgeBayesError
            If the method says nothing of the items' classes, as item response.
        """
        answer: LogProbs = self.method.answer(self, given)
        return answer

    @in_float64
    def by_draw(self, given: Any) -> Float[Array, "draw item class"]:
        """Return the items' log-probabilities under every draw; raises as a call does."""
        each: Array = self.method.by_draw(self, given)
        return each

    def reliability(self, level: float = 0.9) -> Interval:
        """Return each judge's reliability, as the method defines it: mean and interval, arrays by judge.

        Raises
        ------
        JudgeBayesError
            If the method does not distinguish judges.
        """
        if not hasattr(self.method, "reliability"):
            raise JudgeBayesError(f"{type(self.method).__name__} estimates no judge's reliability.")
        estimated: Interval = self.method.reliability(self, level)
        return estimated

    def interval(self, given: Any, *, level: float = 0.9) -> Any:
        """Return the posterior interval of each calibrated probability, of a map that has one.

        Raises
        ------
        JudgeBayesError
            If the map has no posterior.
        """
        if not hasattr(self.method, "interval"):
            raise JudgeBayesError(NO_POSTERIOR.format(type(self.method).__name__))
        return self.method.interval(self, given, level)

    def words(self) -> list[str]:
        """Return what the method says of its fit, in sentences."""
        lines: list[str] = self.method.words(self) if hasattr(self.method, "words") else []
        return lines


@jax.jit
def _by_draw(fit: Fit, given: Any) -> Float[Array, "draw item class"]:
    return jax.vmap(lambda values: fit.method.predict(values, given))(fit.draws)


@jax.jit
def _averaged(fit: Fit, given: Any) -> LogProbs:
    if fit.n_draws == 1:
        return fit.method.predict(fit.first, given)
    return log_mean_exp(_by_draw(fit, given))


class ModelMethod(JaxMethod, ABC):
    """A method that is a program: it says which program, and what its data are."""

    inference: Any
    labelled_only: ClassVar[bool] = True
    least_labels: ClassVar[int | None] = None
    """The labels without which a fit is degenerate; as many as parameters of one task if None."""

    @abstractmethod
    def program(self, given: Any) -> Model:
        """Return the program for such votes, or such log-probabilities."""

    @abstractmethod
    def data(self, given: Any, labels: Any, weight: Any) -> Any:
        """Return the program's data; labels and weights are None for predictions."""

    def problem(self, given: Any, labels: Any, weight: Any = None) -> Problem:
        """Return the problem for the inference: the program with these data."""
        return Problem(self.program(given), self.data(given, jnp.asarray(labels), weight))

    def predict(self, values: Sites, given: Any) -> LogProbs:
        """Return the items' log-probabilities under one draw of the program's sites."""
        program: Any = self.program(given)
        log_probs: LogProbs = program.predict(values, self.data(given, None, None))
        return log_probs

    def _fitted(self, data: Training) -> Fit:
        return _solved(self, data)

    def solved(self, problem: Problem, data: Training) -> Fit:
        """Return the fit to a problem with these data by the method's inference."""
        model: Any = problem.model
        result = self.inference.solve(problem, data.key)
        least = self.least_labels
        if least is None:
            sites = result.draws.items()
            least = sum(x[0].size for name, x in sites if not name.endswith("_by_task"))
        degenerate = degenerate_status(data.labels, data.weight, model.n_classes, least)
        status = worst(result.status, degenerate)
        return Fit(self, result.draws, status, result.details, chains=result.chains)


@jax.jit
def _solved(method: ModelMethod, data: Training) -> Fit:
    return method.solved(method.problem(*data[:3]), data)
