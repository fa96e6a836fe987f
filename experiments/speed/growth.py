"""Time by items, judges and splits: log-log slopes of warm fits, with sizes in turns."""

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from judgebayes import Beta, Calibrated, Davidson, DawidSkene, OneCoin, Stacking
from judgebayes.compiled.float64 import in_float64
from judgebayes.evaluate.splits import random_splits
from judgebayes.evaluate.sweeps import evaluate_splits
from judgebayes.experiments.speed.measure import Side, race
from judgebayes.experiments.speed.panels import dense_panel
from judgebayes.inference import EM
from judgebayes.inference.fit import Method, status_of
from judgebayes.votes import Votes

LABELLED = 0.5
STEPS = EM(max_steps=20, tolerance=0.0)
"""The number of steps, the same at every size, so that convergence does not affect the time."""


def slopes(rounds: int, smoke: bool = False) -> str:
    """Return a Markdown table: the size that grows, its range, the times, and the slope."""
    doubled = (1, 2) if smoke else (1, 2, 4, 8)
    few = 10 if smoke else 1
    calibrated = Calibrated(OneCoin(), Beta(), share=None)
    tables: list[tuple[str, str, Sequence[int], Callable[[int], Callable[[], Any]]]] = [
        (
            "items",
            "Dawid-Skene, 20 judges, 20 steps",
            [20_000 // few * n for n in doubled],
            lambda n: fit(DawidSkene(STEPS), n, 20),
        ),
        (
            "judges",
            "Dawid-Skene, 20,000 items, 20 steps",
            [20 * n for n in doubled],
            lambda n: fit(DawidSkene(STEPS), 20_000 // few, n),
        ),
        (
            "judges",
            "stacking, 1,000 items",
            [20 * n for n in doubled],
            lambda n: fit(Stacking(), 1_000 // few, n),
        ),
        (
            "splits",
            "one-coin + beta, 2,000 items, 40 judges",
            [50 // few * n for n in doubled],
            lambda n: sweep(calibrated, 2_000 // few, 40, n),
        ),
        (
            "splits",
            "Davidson, 1,000 items, 8 judges pooled",
            [50 // few * n for n in doubled],
            lambda n: sweep(Davidson(), 1_000 // few, 8, n),
        ),
    ]
    lines = ["| what grows | of | from, to | s, warm | slope |", "|---|---|---|---|---|"]
    for what, of, sizes, make in tables:
        sides = [Side(make(n)) for n in sizes]
        race(sides, rounds)
        took = [float(np.median(side.seconds)) for side in sides]
        times = ", ".join(f"{t:.3g}" for t in took)
        lines.append(
            f"| {what} | {of} | {sizes[0]:,} to {sizes[-1]:,} | {times} | {slope(sizes, took):.2f} |"
        )
    return "\n".join(lines)


def slope(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """Return the slope of the logarithm of the time on the logarithm of the size."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


@in_float64
def panel(items: int, judges: int) -> tuple[Votes, np.ndarray]:
    """Return binary votes and labels, half of them hidden."""
    votes, labels = dense_panel(items, judges)
    unknown = np.arange(items) >= LABELLED * items
    panel_votes = Votes(jnp.asarray(votes[..., None]), None, None, None, 2)
    return panel_votes, np.where(unknown, -1, labels)


def fit(method: Method, items: int, judges: int) -> Callable[[], Any]:
    """Return a fit to a panel, to be timed."""
    votes, labels = panel(items, judges)
    return lambda: status_of(method.fit(votes, labels))


def sweep(method: Method, items: int, judges: int, splits: int) -> Callable[[], Any]:
    """Return a sweep over the splits of a panel, to be timed."""
    votes, labels = panel(items, judges)
    labelled = np.flatnonzero(labels >= 0)
    parts = random_splits(items, splits=splits, calibration=0.5, among=labelled)
    return lambda: evaluate_splits(method, votes, labels, parts, fit_on="calibration").log_probs
