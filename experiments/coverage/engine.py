"""Trials of an interval, and tests of its coverage against the nominal level.

A trial is one data set, drawn from a process or a population whose truth is known, with the interval
at every nominal level. If a data set has many intervals of a kind (one per judge, for example), each
trial uses one of them, in turn, so that trials are independent and the binomial test is exact.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from judgebayes.experiments.core import Run

LEVELS = (0.5, 0.8, 0.9, 0.95)
SLACK = 1e-9
"""Tolerance for rounding: an interval of zero width at the truth contains it."""
SIGNIFICANT = 0.05

Ends = Sequence[tuple[float, float]]
"""Both ends of the interval at every level; NaN where the program prints no interval."""


@dataclass(frozen=True)
class Setting:
    """The data folder, the number of data sets to draw, and the seed."""

    run: Run
    replays: int

    def rng(self, *place: int) -> np.random.Generator:
        """Return the random generator of one use, identified by integers."""
        return np.random.default_rng([self.run.seed, *place])

    def fewer(self, part: int) -> int:
        """Return a fraction of the replays, for intervals that take long."""
        return max(self.replays // part, 4)


class Trials(NamedTuple):
    """One kind of interval on data sets from one source."""

    interval: str
    data: str
    """What the data sets are drawn from; begins with "simulated" or the name of real data."""
    low: Float[np.ndarray, "replay level"]
    high: Float[np.ndarray, "replay level"]
    truth: Float[np.ndarray, " replay"]

    @property
    def printed(self) -> Bool[np.ndarray, " replay"]:
        """Whether the program prints an interval."""
        return np.asarray(np.isfinite(self.low + self.high).all(1))


def trials(interval: str, data: str, intervals: Iterable[tuple[Ends, float]]) -> Trials:
    """Return trials from the ends at every level and the truth of each."""
    ends, truth = zip(*intervals, strict=True)
    if not np.isfinite(truth).all():
        raise ValueError(f"{interval}, {data}: a true value is NaN.")
    both = np.asarray(ends, float)
    return Trials(interval, data, both[..., 0], both[..., 1], np.asarray(truth, float))


def at_levels(one: Callable[[float], tuple[float, float]]) -> Ends:
    """Return the ends of an interval, a function of the level, at every level."""
    return [one(level) for level in LEVELS]


def assess(all_trials: Sequence[Trials]) -> pd.DataFrame:
    """Return a row per interval, data and level: coverage, its error, and the verdict.

    `p` is the exact two-sided binomial p-value of the hypothesis that coverage equals the level;
    `p_holm` is adjusted for all rows (Holm 1979, valid under any dependence). `below` and `above` are
    the shares of trials whose truth lies below or above the interval, `without` counts trials in which
    the program prints no interval.
    """
    from scipy.stats import binomtest

    rows = []
    for one in all_trials:
        for place, level in enumerate(LEVELS):
            low, high = (x[one.printed, place] for x in (one.low, one.high))
            truth = one.truth[one.printed]
            below, above = truth < low - SLACK, truth > high + SLACK
            n = len(truth)
            inside = n - int((below | above).sum())
            share = inside / n if n else np.nan
            rows.append(
                {
                    "interval": one.interval,
                    "data": one.data,
                    "level": level,
                    "replays": n,
                    "without": len(one.truth) - n,
                    "coverage": share,
                    "error": float(np.sqrt(share * (1 - share) / n)) if n else np.nan,
                    "below": float(below.mean()) if n else np.nan,
                    "above": float(above.mean()) if n else np.nan,
                    "width": float((high - low).mean()) if n else np.nan,
                    "p": float(binomtest(inside, n, level).pvalue) if n else 1.0,
                }
            )
    table = pd.DataFrame(rows)
    table["p_holm"] = holm(table["p"].to_numpy())
    off = table["coverage"] - table["level"]
    sure = table["p_holm"] < SIGNIFICANT
    table["verdict"] = np.where(~sure, "holds", np.where(off < 0, "too narrow", "too wide"))
    return table


def holm(p: Float[np.ndarray, " test"]) -> Float[np.ndarray, " test"]:
    """Return p-values adjusted for all tests (Holm 1979)."""
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * (len(p) - np.arange(len(p))))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted
