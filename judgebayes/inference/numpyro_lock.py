"""A lock for running models: all threads share NumPyro's one stack of handlers."""

import functools
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

__all__ = ["numpyro_lock"]

P = ParamSpec("P")
R = TypeVar("R")

_HANDLERS = threading.RLock()


def numpyro_lock(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function that runs models, so that only one thread at a time is inside such a function.

    The lock covers what Python runs while a program is traced; compiled programs still run in parallel.
    """

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with _HANDLERS:
            return function(*args, **kwargs)

    return wrapped
