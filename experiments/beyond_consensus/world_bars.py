"""What `audit-worlds` asks of `Panel` in each cell, with intervals that hold for all cells at once.

A ratio of means over replays has a max-t interval: replays are resampled in pairs, and the critical
value is the 95 % quantile of the largest standardised deviation of a cell's log ratio. A share of
covered generators has a Beta interval (`share_interval`) at Bonferroni's level. It counts as many
independent trials as its standard error over replays says, at least one and at most three for each
replay: the generators of a world share their judges.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from judgebayes.measures.significance import share_interval

RESAMPLES = 2000
TRIALS = 3
"""The most independent trials that the generators of one replay count as."""


class Ends(NamedTuple):
    """An estimate of each cell with the ends of its simultaneous interval."""

    value: Float[np.ndarray, " cell"]
    low: Float[np.ndarray, " cell"]
    high: Float[np.ndarray, " cell"]


def ratios(
    own: Float[np.ndarray, "replay cell"],
    rivals: Float[np.ndarray, "rival replay cell"],
    *,
    level: float = 0.95,
    seed: int = 0,
) -> Ends:
    """Return each cell's mean over that of the rival with the smallest mean.

    A resample chooses the best rival anew, so that the interval counts the choice.
    """
    replays = len(own)
    rng = np.random.default_rng(seed)
    weight = rng.multinomial(replays, np.full(replays, 1 / replays), RESAMPLES) / replays

    def log_ratio(weight: np.ndarray) -> np.ndarray:
        best = np.stack([weight @ rival for rival in rivals]).min(0)
        return np.asarray(np.log(weight @ own) - np.log(best))

    point = log_ratio(np.full((1, replays), 1 / replays))[0]
    resampled = log_ratio(weight)
    error = np.maximum(resampled.std(0), 1e-12)
    largest = (np.abs(resampled - resampled.mean(0)) / error).max(1)
    half = np.quantile(largest, level) * error
    return Ends(np.exp(point), np.exp(point - half), np.exp(point + half))


def shares(covered: Float[np.ndarray, "part replay cell"], *, level: float = 0.95) -> Ends:
    """Return each cell's share of covered generators, as the mean over parts with own replays."""
    parts, replays, cells = covered.shape
    mean = covered.mean((0, 1))
    error = np.sqrt((covered.var(1, ddof=1) / replays).sum(0)) / parts
    spread = mean * (1 - mean)
    most = TRIALS * parts * replays
    trials = np.where(error > 0, spread / np.where(error > 0, error, 1.0) ** 2, parts * replays)
    trials = np.clip(trials, parts * replays, most)
    low, high = share_interval(mean * trials, trials, level=1 - (1 - level) / cells)
    return Ends(mean, low, high)
