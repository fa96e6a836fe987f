"""What aggregators share: the cost of a fit, and certain decisions.

What a fit needs: numbers in memory and arithmetic operations, for batches and for messages.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from judgebayes.compiled.jit_inline import jit_inline
from judgebayes.votes.array import Votes

COPIES = 6
"""The copies of its data that a fit has, if the method does not declare its cost."""
PASSES = 100
"""The passes over its data that a fit makes, if the method does not declare its cost."""


class Cost(NamedTuple):
    """The approximate cost of one fit."""

    numbers: float
    """The numbers that it has in memory at a time, of 8 bytes each."""
    operations: float
    """The additions and multiplications."""


def cost_of(method: Any, items: int, votes: Votes) -> Cost:
    """Return the cost of a fit to a number of items of such votes: the declared one, or a rough one.

    A method that needs more than a few copies of its data declares it, by a method `cost(items, votes)`.

    A method around another one (`aggregator`), such as a calibration map, has the cost of the inner
    one, once for every fold of its cross-fitting and once for all items.
    """
    if hasattr(method, "cost"):
        declared: Cost = method.cost(items, votes)
        return declared
    inner = getattr(method, "aggregator", None)
    if inner is not None:
        fits = 1 + (getattr(method, "cross_fit", None) or 0)
        numbers, operations = cost_of(inner, items, votes)
        return Cost(fits * numbers if hasattr(inner, "cost") else numbers, fits * operations)
    cells = items * (votes.n_judges * votes.n_samples + 1) * votes.n_classes
    return Cost(COPIES * cells, PASSES * cells)


@jit_inline("n_classes")
def certain(decisions: Int[Array, "*item"], n_classes: int) -> Float[Array, "*item class"]:
    """Return log-probabilities with all mass on one class: 0 there, -inf elsewhere."""
    chosen = decisions[..., None] == jnp.arange(n_classes)
    return jnp.where(chosen, 0.0, -jnp.inf)
