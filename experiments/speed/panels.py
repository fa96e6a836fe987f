"""Simulated panels of any size."""

import numpy as np
from jaxtyping import Int


def dense_panel(
    items: int, judges: int, *, missing: float = 0.05, seed: int = 0
) -> tuple[Int[np.ndarray, "item judge"], Int[np.ndarray, " item"]]:
    """Return binary votes of judges with sensitivities and specificities of .55 to .92."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, items)
    right = rng.random((items, judges)) < rng.uniform(0.55, 0.92, (2, judges))[labels]
    votes = np.where(right, labels[:, None], 1 - labels[:, None])
    return np.where(rng.random(votes.shape) < missing, -1, votes).astype(np.int8), labels
