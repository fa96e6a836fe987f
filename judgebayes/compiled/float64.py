"""64-bit arithmetic inside public entry points, without touching JAX's global settings."""

import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

import jax

P = ParamSpec("P")
R = TypeVar("R")

MAPS, MOST = Path("/proc/self/maps"), Path("/proc/sys/vm/max_map_count")
INTERVAL = 1.0
"""Seconds between two counts of memory maps; one takes milliseconds."""
_last_count = [-INTERVAL]


def in_float64(function: Callable[P, R]) -> Callable[P, R]:
    """Run `function` with 64-bit arithmetic, whatever the caller's setting is.

    Every public computation begins here, so old programs are forgotten here (`make_room`).
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


def make_room() -> None:
    """Forget all compiled programs if they use half of the memory maps that a process may have.

    Without more maps XLA ends the process: after about twenty calibrations of different shapes in one
    notebook. Only Linux has such a limit. Programs are compiled, or read from the cache, again.
    """
    now = time.monotonic()
    if now - _last_count[0] < INTERVAL:
        return
    _last_count[0] = now
    try:
        used, allowed = MAPS.read_bytes().count(b"\n"), int(MOST.read_text())
    except (OSError, ValueError):
        return
    if used > allowed / 2:
        jax.clear_caches()
