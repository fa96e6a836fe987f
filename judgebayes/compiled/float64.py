"""64-bit arithmetic inside public entry points, without touching JAX's global settings."""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import jax

from judgebayes.compiled.memory_maps import make_room

__all__ = ["in_float64", "inside"]

P = ParamSpec("P")
R = TypeVar("R")


def in_float64(function: Callable[P, R]) -> Callable[P, R]:
    """Run `function` with 64-bit arithmetic, whatever the caller's setting is.

    Every public computation begins here, so old programs are forgotten here if there are too many.
    """

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        make_room()
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return wrapped


def inside(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function under `in_float64` without it, for code that already has 64-bit arithmetic."""
    bare: Callable[P, R] = vars(function)["__wrapped__"]
    return bare
