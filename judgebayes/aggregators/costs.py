"""What a fit needs: numbers in memory and arithmetic operations, for batches and for messages."""

from typing import NamedTuple, Protocol, runtime_checkable

COPIES = 6
"""The copies of its data that a fit has, if the method does not declare its cost."""
PASSES = 100
"""The passes over its data that a fit makes, if the method does not declare its cost."""


class Size(NamedTuple):
    """The size of the votes that a method is fitted to."""

    items: int
    judges: int
    samples: int
    classes: int


class Cost(NamedTuple):
    """The approximate cost of one fit."""

    numbers: float
    """The numbers that it has in memory at a time, of 8 bytes each."""
    operations: float
    """The additions and multiplications."""


@runtime_checkable
class Costed(Protocol):
    """A method that needs more than a few copies of its data, and declares how much."""

    def cost(self, size: Size) -> Cost:
        """Return the cost of a fit to votes of a size."""
        ...


def cost_of(method: object, size: Size) -> Cost:
    """Return the cost of a fit: the declared one, or a rough one from the size of the votes.

    A method around another one (`aggregator`), such as a calibration map, has the cost of the inner
    one, once for every fold of its cross-fitting and once for all items.
    """
    if isinstance(method, Costed):
        return method.cost(size)
    inner = getattr(method, "aggregator", None)
    if inner is not None:
        fits = 1 + (getattr(method, "cross_fit", None) or 0)
        numbers, operations = cost_of(inner, size)
        return Cost(fits * numbers if isinstance(inner, Costed) else numbers, fits * operations)
    cells = size.items * (size.judges * size.samples + 1) * size.classes
    return Cost(COPIES * cells, PASSES * cells)
