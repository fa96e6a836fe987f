"""The registry of methods: a decorator on the class declares a method to the whole program.

The declaration determines the names on the command line, what `auto` compares, how a method is built
for given votes, and what a fit file may contain. `judgebayes.workflow.options` lists the names of this
package for help, which does not import JAX.
"""

from dataclasses import KW_ONLY, dataclass
from typing import Literal, TypeVar

from judgebayes.errors import JudgeBayesError

C = TypeVar("C", bound=type)

AGGREGATORS: dict[str, type] = {}
CALIBRATORS: dict[str, type] = {}
FITTED: dict[str, type] = {}
"""The classes that a fit file may contain, by name."""


@dataclass(frozen=True)
class Traits:
    """The declared properties of a method."""

    name: str
    _: KW_ONLY
    knows_judges: bool = False
    """It distinguishes judges: a fit stores their names, and new votes are aligned to them."""
    needs_map: bool = False
    """Its probabilities are overconfident: `--calibrator auto` adds a beta map."""
    learns_from_unlabelled: bool = False
    """It learns from votes on unlabelled items: in held-out evaluation it sees all votes, as in use."""
    rule: bool = False
    """It returns 0 or 1, or shares for ties, and so does not estimate its own error."""
    compared: Literal["no", "always", "panel", "tasks", "baseline"] = "no"
    """When `auto` compares it: always, with several judges, with several tasks, or as the baseline."""
    n_classes: int | None = None
    """How many classes the votes must have; any number if None."""
    needs_tasks: bool = False
    independent: bool = False
    """It takes judges as independent given the label, so that undecided votes are one more factor."""
    inferences: tuple[str, ...] = ()
    """The values of `--inference` that it supports; for others it uses its default."""
    place: int = 50
    """Its position in tables and lists, ascending."""


class aggregator(Traits):  # noqa: N801 (a decorator)
    """Declare an aggregator, a class with `fit`; the settings are its `Traits`.

    Where the class has a field of that name, the program sets `symmetric` (whether the classes' ends
    are two responses that could change places), `label_noise`, `class_prior` and `inference`.

    Raises
    ------
    JudgeBayesError
        If the class has no `fit`, or another class already has this name.
    """

    def __call__(self, cls: C) -> C:
        """Register the class."""
        return _declared(AGGREGATORS, self, cls)


class calibrator(Traits):  # noqa: N801 (a decorator)
    """Declare a calibration map, a class with `fit`; it is built in the same way as an aggregator.

    Raises
    ------
    JudgeBayesError
        If the class has no `fit`, or another class already has this name.
    """

    def __call__(self, cls: C) -> C:
        """Register the class."""
        return _declared(CALIBRATORS, self, cls)


def _declared(registry: dict[str, type], traits: Traits, cls: C) -> C:
    if not callable(getattr(cls, "fit", None)):
        raise JudgeBayesError(f"{cls.__name__} has no method `fit`, which every method needs.")
    existing = registry.get(traits.name)
    if existing is not None and existing.__qualname__ != cls.__qualname__:
        raise JudgeBayesError(
            f"{existing.__name__} already has the name {traits.name!r}; choose another name for "
            f"{cls.__name__}."
        )
    cls.traits = traits  # type: ignore[attr-defined]
    registry[traits.name] = cls
    return in_files(cls)


def in_files(cls: C) -> C:
    """Declare a dataclass that a fit file may contain: a fitted method, or a part of one.

    Its fields are numbers, texts, arrays, tuples, mappings, or such classes themselves.
    """
    FITTED[cls.__name__] = cls
    return cls
