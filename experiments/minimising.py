"""One minimum in a box, by the library's minimiser of many."""

from collections.abc import Callable

import jax
from jaxtyping import Array, Float

from judgebayes.inference.optimise import Solution, Vector, differentiated, minimise_each


def minimise(
    objective: Callable[[Vector], Float[Array, ""]],
    start: Vector,
    lower: Vector,
    upper: Vector,
    *,
    max_steps: int = 200,
    tolerance: float = 1e-9,
) -> Solution:
    """Minimise a smooth function in a box from one start, as `minimise_each` does."""
    solutions = minimise_each(
        differentiated(objective),
        start[None],
        lower,
        upper,
        max_steps=max_steps,
        tolerance=tolerance,
    )
    return jax.tree.map(lambda a: a[0], solutions)
