"""Models are run by one thread at a time: NumPyro's handlers stand on one stack for all threads."""

import functools
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

__all__ = ["alone"]

P = ParamSpec("P")
R = TypeVar("R")

_HANDLERS = threading.RLock()


def alone(function: Callable[P, R]) -> Callable[P, R]:
    """Let no two threads be in a function that runs models, at the same time.

    For what Python runs while a program is traced: compiled programs run beside one another as before.
    """

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with _HANDLERS:
            return function(*args, **kwargs)

    return wrapped
