"""The error of a majority vote against the number of votes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from judgebayes.errors import JudgeBayesError


@dataclass(frozen=True)
class ErrorCurve:
    """A majority vote's error at each number of votes, with its interval."""

    size: Int[np.ndarray, " size"]
    error: Float[np.ndarray, " size"]
    low: Float[np.ndarray, " size"]
    high: Float[np.ndarray, " size"]
    extrapolated: Bool[np.ndarray, " size"]
    """Whether no item has this many votes, so that the error depends on the model only."""


def odd_sizes(most: int) -> tuple[int, ...]:
    """Return 1, 3, 5 .. up to `most`.

    >>> odd_sizes(8)
    (1, 3, 5, 7)
    """
    return tuple(range(1, most + 1, 2))


def check_sizes(sizes: Sequence[int]) -> None:
    """Raise unless every number of votes is odd (P3 Definition 3.2: no ties).

    Raises
    ------
    JudgeBayesError
        If a number is even or below 1, or there is none.
    """
    wrong = [size for size in sizes if size < 1 or size % 2 == 0]
    if wrong or not sizes:
        raise JudgeBayesError(
            f"A majority of {wrong[0] if wrong else 'no'} votes is not defined; use odd numbers "
            "of votes (1, 3, 5, ...)."
        )
