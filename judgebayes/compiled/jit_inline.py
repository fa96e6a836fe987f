"""A `jax.jit` for small functions that is inlined inside compiled code."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import jax

P = ParamSpec("P")
R = TypeVar("R")


def jit_inline(*static: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Compile a function as one program; inside compiled code it is inlined.

    Without this decorator, JAX compiles each operation of the function for each new shape, about 20 ms
    per operation, which makes the first call slow even on a handful of items.

    Parameters
    ----------
    static
        The names of the arguments that are not arrays.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        compiled: Callable[P, R] = jax.jit(function, static_argnames=static, inline=True)
        return compiled

    return decorate
