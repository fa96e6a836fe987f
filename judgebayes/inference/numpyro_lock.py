"""A lock for running models: all threads share NumPyro's one stack of handlers."""

import functools
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

HANDLERS = threading.RLock()
"""The lock itself, for a block of code."""


def numpyro_lock(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function that runs models, so that only one thread at a time is inside such a function.

    The lock covers what Python runs while a program is traced; compiled programs still run in parallel.
    """

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with HANDLERS:
            return function(*args, **kwargs)

    return wrapped
