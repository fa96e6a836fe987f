"""Methods declare themselves here: a line above the class, and every part of the program knows them.

From the declaration come the names of the command line, what `auto` compares, how a method is made for
some votes, and what a fit file may hold. `judgebayes.workflow.names` reads the declarations of this
package without importing JAX.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

from judgebayes.errors import JudgeBayesError

__all__ = ["AGGREGATORS", "CALIBRATORS", "FITTED", "Traits", "aggregator", "calibrator", "in_files"]

C = TypeVar("C", bound=type)

AGGREGATORS: dict[str, type] = {}
CALIBRATORS: dict[str, type] = {}
FITTED: dict[str, type] = {}
"""What a fit file may hold, by the name of the class."""


@dataclass(frozen=True)
class Traits:
    """What the program has to know of a method beside its class."""

    name: str
    knows_judges: bool = False
    """It tells the judges apart: a fit keeps their names, and new votes are put in their places."""
    needs_map: bool = False
    """Its answers are too sure of themselves: `--calibrator auto` puts a beta map behind."""
    learns_from_unlabelled: bool = False
    """It learns from the votes on items without labels: held out, it sees all votes, as in use."""
    rule: bool = False
    """It answers 0 or 1, or shares where it cannot tell: that says nothing of its errors."""
    compared: Literal["no", "always", "panel", "tasks", "baseline"] = "no"
    """When `auto` compares it: always, with several judges, with several tasks, or as what to beat."""
    n_classes: int | None = None
    """How many classes the votes must have; any number if None."""
    needs_tasks: bool = False
    inferences: tuple[str, ...] = ()
    """Which values of `--inference` it takes; with the others it is fitted in its own way."""
    place: int = 50
    """Where it stands in tables and lists, by ascending numbers."""


def aggregator(
    name: str,
    *,
    knows_judges: bool = False,
    needs_map: bool = False,
    learns_from_unlabelled: bool = False,
    rule: bool = False,
    compared: Literal["no", "always", "panel", "tasks", "baseline"] = "no",
    n_classes: int | None = None,
    needs_tasks: bool = False,
    inferences: tuple[str, ...] = (),
    place: int = 50,
) -> Callable[[C], C]:
    """Declare an aggregator, a class with `fit`: `Traits` says what the settings mean.

    Where the class has a field of that name, the program sets `symmetric` (whether the classes' ends
    are two responses that could change places), `label_noise`, `class_prior` and `inference`.

    Raises
    ------
    JudgeBayesError
        If the class has no `fit`, or another one has the name.
    """
    traits = Traits(
        name,
        knows_judges,
        needs_map,
        learns_from_unlabelled,
        rule,
        compared,
        n_classes,
        needs_tasks,
        inferences,
        place,
    )
    return _declaring(AGGREGATORS, traits)


def calibrator(name: str) -> Callable[[C], C]:
    """Declare a calibration map, a class with `fit`; it is made as an aggregator is.

    Raises
    ------
    JudgeBayesError
        If the class has no `fit`, or another one has the name.
    """
    return _declaring(CALIBRATORS, Traits(name))


def _declaring(registry: dict[str, type], traits: Traits) -> Callable[[C], C]:
    def declare(cls: C) -> C:
        if not callable(getattr(cls, "fit", None)):
            raise JudgeBayesError(f"{cls.__name__} has no method `fit`: a method learns by it.")
        known = registry.get(traits.name)
        if known is not None and known.__qualname__ != cls.__qualname__:
            raise JudgeBayesError(
                f"{known.__name__} has the name {traits.name!r} already; choose another for "
                f"{cls.__name__}."
            )
        cls.traits = traits  # type: ignore[attr-defined]
        registry[traits.name] = cls
        return cls

    return declare


def in_files(cls: C) -> C:
    """Declare a dataclass that a fit file may hold: a fitted method, or a part of one.

    Its fields are numbers, texts, arrays, tuples, mappings, or such classes themselves.
    """
    FITTED[cls.__name__] = cls
    return cls
