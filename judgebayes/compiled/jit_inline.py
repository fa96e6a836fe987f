"""Small functions as one program each, also where they are called outside compiled code."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import jax

__all__ = ["fused"]

P = ParamSpec("P")
R = TypeVar("R")


def fused(*static: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Compile a function as a whole; inside compiled code it is what it was.

    Called as it stands, JAX compiles each of its operations for each shape that comes, some 20 ms a
    time: ten of them are what a user waits for at a first answer on a handful of items.

    Parameters
    ----------
    static
        The names of the arguments that are not arrays.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        compiled: Callable[P, R] = jax.jit(function, static_argnames=static, inline=True)
        return compiled

    return decorate
