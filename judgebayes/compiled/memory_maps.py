"""Forget compiled programs before a process has more memory maps than the system allows.

On a CPU every compiled program takes dozens of memory maps, and a method on votes of a new shape some
hundreds of programs. Linux allows a process 65,530 maps by default, and XLA ends it with a segmentation
fault when there are no more: after about twenty calibrations of different shapes in one notebook.
"""

import time
from pathlib import Path

import jax

__all__ = ["make_room"]

MAPS, MOST = Path("/proc/self/maps"), Path("/proc/sys/vm/max_map_count")
SHARE = 0.5
"""The share of the allowed maps from which programs are forgotten."""
INTERVAL = 1.0
"""Seconds between two counts; one takes milliseconds."""

last_count = [-INTERVAL]
"""When maps were last counted."""


def make_room() -> None:
    """Forget all compiled programs if the maps of this process are nearly used up.

    They are compiled again when they are next called, or read from the cache. Other systems than Linux
    have no such limit.
    """
    now = time.monotonic()
    if now - last_count[0] < INTERVAL:
        return
    last_count[0] = now
    try:
        with MAPS.open("rb") as maps:
            used = sum(1 for _ in maps)
        allowed = int(MOST.read_text())
    except (OSError, ValueError):
        return
    if used > SHARE * allowed:
        jax.clear_caches()
