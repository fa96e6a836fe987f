"""The registry of methods: a decorator on the class declares a method to the whole program.

The declaration determines the names on the command line, what `auto` compares, how a method is built
for given votes, and what a fit file may contain. `judgebayes.workflow.options` lists the names of this
package for help, which does not import JAX.
"""

from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Literal, TypeVar

from judgebayes.errors import JudgeBayesError

C = TypeVar("C", bound=type)

AGGREGATORS: dict[str, type] = {}
CALIBRATORS: dict[str, type] = {}
FITTED: dict[str, type] = {}
"""The classes that a fit file may contain, by name."""


@dataclass(frozen=True)
class Traits:
    """The declared properties of a method; as a decorator of its class, they declare it."""

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
    """The inferences that `--method NAME:INFERENCE` may name."""
    place: int = 50
    """Its position in tables and lists, ascending."""
    registry: dict[str, type] = field(
        default_factory=lambda: AGGREGATORS, repr=False, compare=False
    )
    """Where it is declared."""

    def __call__(self, cls: C) -> C:
        """Register the class.

        Raises
        ------
        JudgeBayesError
            If it has no `fit`, or another class already has this name.
        """
        if not callable(getattr(cls, "fit", None)):
            raise JudgeBayesError(f"{cls.__name__} has no method `fit`, which every method needs.")
        existing = self.registry.get(self.name)
        if existing is not None and existing.__qualname__ != cls.__qualname__:
            raise JudgeBayesError(
                f"{existing.__name__} already has the name {self.name!r}; choose another name for "
                f"{cls.__name__}."
            )
        cls.traits = self  # type: ignore[attr-defined]
        self.registry[self.name] = cls
        return in_files(cls)


aggregator = Traits
"""Declare an aggregator, a class with `fit`: ``@aggregator("name", knows_judges=True)``.

Where the class has a field of that name, the program sets `symmetric` (whether the classes' ends
are two responses that could change places), `label_noise`, `class_prior` and `inference`."""
calibrator = partial(Traits, registry=CALIBRATORS)
"""Declare a calibration map; it is built in the same way as an aggregator."""


def in_files(cls: C) -> C:
    """Declare a dataclass that a fit file may contain: a fitted method, or a part of one.

    Its fields are numbers, texts, arrays, tuples, mappings, or such classes themselves.
    """
    FITTED[cls.__name__] = cls
    return cls
