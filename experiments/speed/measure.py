"""Time and memory of several programs in one run, in turns."""

import contextlib
import ctypes
import gc
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np

COLUMNS = (
    "what",
    "peer",
    "ours cold, s",
    "ours warm, s",
    "peer, s",
    "ratio",
    "bar",
    "memory ours, MB",
    "memory peer, MB",
    "the same?",
)

TURN = 0.5
"""Seconds of a side's turn in a round."""
REST = 0.1
"""Seconds between turns: threads of the one before may wait busily for more work (OpenBLAS does)."""


@dataclass
class Side:
    """One program: the function to run, and the share of the whole work that it does."""

    run: Callable[[], Any]
    share: float = 1.0
    """A slow peer runs on a sample; its time is divided by this share."""
    cold: float = float("nan")
    seconds: list[float] = field(default_factory=list)
    memory: float = float("nan")
    answer: Any = None


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str
    peer: str
    ours: Side
    theirs: Side
    bar: float | None
    same: str
    """The comparison of the answers and its result."""

    def cells(self) -> dict[str, str]:
        """Return the line's cells as text."""
        each = np.array(self.theirs.seconds) / np.array(self.ours.seconds)
        return {
            "what": self.what,
            "peer": self.peer + (" (sample)" if self.theirs.share < 1 else ""),
            "ours cold, s": f"{self.ours.cold:.3g}",
            "ours warm, s": f"{np.median(self.ours.seconds):.3g}",
            "peer, s": f"{np.median(self.theirs.seconds):.3g}",
            "ratio": f"{np.median(each):.3g} ({each.min():.3g} to {each.max():.3g})",
            "bar": "" if self.bar is None else f"{self.bar:g}",
            "memory ours, MB": f"{self.ours.memory:.0f}",
            "memory peer, MB": f"{self.theirs.memory:.0f}",
            "the same?": self.same,
        }


def race(sides: list[Side], rounds: int) -> None:
    """Run every side once cold, then `rounds` rounds in turns, so that the load is the same for all.

    A round repeats a side for `TURN` seconds, at least once, and records the mean: a single short
    call would measure the state of the caches after the other sides.
    """
    for side in sides:
        if side.answer is not None:
            continue
        with peak() as usage:
            started = time.perf_counter()
            side.answer = jax.block_until_ready(side.run())
            side.cold = (time.perf_counter() - started) / side.share
        side.memory = usage.megabytes
    gc.collect()
    gc.freeze()  # else the collector scans all objects, 0.2 s now and then
    for _ in range(rounds):
        for side in sides:
            time.sleep(REST)
            calls, started, took = 0, time.perf_counter(), 0.0
            while calls == 0 or took < TURN:
                jax.block_until_ready(side.run())
                calls, took = calls + 1, time.perf_counter() - started
            side.seconds.append(took / calls / side.share)
    gc.unfreeze()


class peak:  # noqa: N801  (used as a verb)
    """Measure the rise of memory in a `with` block (Linux; NaN elsewhere)."""

    megabytes: float = float("nan")
    highest: float = float("nan")
    """The peak memory of the whole process, in megabytes."""

    def __enter__(self) -> "peak":
        """Reset the recorded peak."""
        _give_back()
        try:
            Path("/proc/self/clear_refs").write_text("5")
        except OSError:
            self._before = float("nan")
            return self
        self._before = _status("VmRSS")
        return self

    def __exit__(self, *_: object) -> None:
        """Read the recorded peak."""
        self.highest = _status("VmHWM")
        self.megabytes = self.highest - self._before


def _give_back() -> None:
    """Return freed memory to the system, so that later allocations are measured (glibc)."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def _status(name: str) -> float:
    """Return a memory field of `/proc/self/status` in megabytes."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return float("nan")
    return next((int(x.split()[1]) / 1024 for x in lines if x.startswith(name)), float("nan"))


def markdown(rows: list[Row]) -> str:
    """Return the table, followed by the machine and its load."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS)]
    lines += [f"| {' | '.join(row.cells().values())} |" for row in rows]
    lines += ["", f"{load()} Ratios are medians over rounds, least and largest in brackets."]
    return "\n".join(lines)


def load() -> str:
    """Return a sentence about the machine and its current load."""
    one, five, _ = os.getloadavg()
    return (
        f"{os.cpu_count()} cores, JAX {jax.__version__} on {jax.devices()[0].platform}; load "
        f"{one:.1f} (last minute) and {five:.1f} (last five) when finished."
    )
