"""Which kind of device programs are compiled for."""

import contextlib
import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import jax

P = ParamSpec("P")
R = TypeVar("R")

ACCELERATOR: bool | None = None
"""What `on_accelerator` returns; None asks JAX. A test sets it, and clears JAX's caches."""


def on_accelerator() -> bool:
    """Tell whether the default device is no CPU: many lanes cost little, a trip of a loop much."""
    return jax.default_backend() != "cpu" if ACCELERATOR is None else ACCELERATOR


def on_cpu(function: Callable[P, R]) -> Callable[P, R]:
    """Run a function on the CPU also where an accelerator is the default; in compiled code, no change.

    A sampler's steps of one data set follow one another and are too small for an accelerator.
    """

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        cpu = jax.default_device(jax.local_devices(backend="cpu")[0])
        with cpu if on_accelerator() else contextlib.nullcontext():
            return function(*args, **kwargs)

    return wrapped
