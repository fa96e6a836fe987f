"""What every method returns: the method, the values that it estimated, and their status.

A method says how its fits answer, most often by one draw of their values (`ByDraw.predict`); all else
follows here, once.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from judgebayes.arrays import ItemCodes, ItemValues, Key, LogProbs
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fast.log_softmax import log_mean_exp
from judgebayes.inference.problem import Problem, Sites, UsesPrior
from judgebayes.inference.registry import in_files
from judgebayes.inference.sampled import Sampled
from judgebayes.inference.status import degenerate_status, worst
from judgebayes.models.base import Model

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
    for name, array in (("labels", labels), ("weight", weight)):
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
            f"A label is {highest}; with {n_classes} classes the highest index is "
            f"{n_classes - 1}."
        )
    return labels, weight


class Reliability(NamedTuple):
    """The reliability of each judge: posterior mean and central interval."""

    mean: Float[np.ndarray, "*batch judge"]
    low: Float[np.ndarray, "*batch judge"]
    high: Float[np.ndarray, "*batch judge"]


@runtime_checkable
class Fitted(Protocol):
    """A fit: votes to log-probabilities of every item's classes; of a map, from uncalibrated ones."""

    @property
    def status(self) -> Int[Array, "*batch"]:
        """The status of the fit, a `Status` as a number."""
        ...

    def __call__(self, given: Any, /) -> LogProbs:
        """Return the log-probabilities of the classes of each item."""
        ...


class Answering(ABC):
    """What a method says of its fits; `given` is votes, or the log-probabilities that a map changes."""

    saved: ClassVar[tuple[str, ...]] = ()
    """The method's fields that answers depend on: a fit's file stores these, and no others."""
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """The names of the axes of each value and detail of a fit, without the axis of draws."""

    @abstractmethod
    def answer(self, fit: "Fit", given: Any) -> LogProbs:
        """Return the items' log-probabilities."""

    def by_draw(self, fit: "Fit", given: Any) -> Float[Array, "draw item class"]:
        """Return the items' log-probabilities under every draw: one, unless the method has several."""
        return self.answer(fit, given)[None]


class ByDraw(Answering):
    """A method that says how one draw of its values answers."""

    @abstractmethod
    def predict(self, values: Sites, given: Any) -> LogProbs:
        """Return the items' log-probabilities under one draw of the values, from what was `prepared`."""

    def prepared(self, given: Any) -> Any:
        """Return what `predict` takes, prepared once for all draws, outside of their program."""
        return given

    def answer(self, fit: "Fit", given: Any) -> LogProbs:
        """Return the items' log-probabilities: of the mean probability over the draws."""
        return _averaged(fit, self.prepared(given))

    def by_draw(self, fit: "Fit", given: Any) -> Float[Array, "draw item class"]:
        """Return the items' log-probabilities under every draw."""
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
        return self._answering.answer(self, given)

    @in_float64
    def by_draw(self, given: Any) -> Float[Array, "draw item class"]:
        """Return the items' log-probabilities under every draw; raises as a call does."""
        return self._answering.by_draw(self, given)

    @property
    def _answering(self) -> Answering:
        if not isinstance(self.method, Answering):
            raise JudgeBayesError(
                f"{type(self.method).__name__} says nothing of the items' classes; use an aggregator."
            )
        return self.method

    def reliability(self, level: float = 0.9) -> Reliability:
        """Return each judge's reliability, as the method defines it: posterior mean and interval.

        Raises
        ------
        JudgeBayesError
            If the method does not distinguish judges.
        """
        if not hasattr(self.method, "reliability"):
            raise JudgeBayesError(f"{type(self.method).__name__} estimates no judge's reliability.")
        estimated: Reliability = self.method.reliability(self, level)
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


class ModelMethod(UsesPrior, ByDraw):
    """A method that is a program: it says which program, and what its data are."""

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


@jax.jit
def solved(method: ModelMethod, given: Any, labels: Any, weight: Any, key: Key) -> Fit:
    """Return the fit of a method's program by its inference."""
    problem = method.problem(given, labels, weight)
    model: Any = problem.model
    result = method.inference.solve(problem, key)
    least = method.least_labels
    if least is None:
        least = sum(x[0].size for name, x in result.draws.items() if not name.endswith("_by_task"))
    degenerate = degenerate_status(labels, weight, model.n_classes, least)
    return Fit(
        method=method,
        draws=result.draws,
        status=worst(result.status, degenerate),
        details=result.details,
        chains=result.chains,
    )
