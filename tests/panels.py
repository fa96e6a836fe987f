"""Simulated panels of judges whose reliability is known."""

import jax
import jax.numpy as jnp
import numpy as np

from judgebayes.votes import Votes


def judged(
    accuracy: np.ndarray,
    items: int,
    *,
    n_classes: int = 2,
    samples: int = 1,
    missing: float = 0.0,
    seed: int = 0,
) -> tuple[Votes, np.ndarray]:
    """Return one-coin votes (K classes, equally common) and their labels."""
    wrong = (1 - accuracy) / (n_classes - 1)
    confusion = np.where(
        np.eye(n_classes, dtype=bool), accuracy[:, None, None], wrong[:, None, None]
    )
    labels = np.random.default_rng(seed).integers(0, n_classes, items)
    return confused(confusion, labels, samples=samples, missing=missing, seed=seed + 1), labels


def confused(
    confusion: np.ndarray,
    labels: np.ndarray,
    *,
    samples: int = 1,
    missing: float = 0.0,
    seed: int = 0,
) -> Votes:
    """Return votes drawn from confusion matrices (judge, label, vote)."""
    rng = np.random.default_rng(seed)
    ends = confusion.cumsum(-1)[:, labels].swapaxes(0, 1)[:, :, None]
    uniform = rng.random((len(labels), len(confusion), samples))
    index = (uniform[..., None] > ends).sum(-1).clip(max=confusion.shape[-1] - 1)
    index = np.where(rng.random(index.shape) < missing, -1, index)
    with jax.enable_x64(True):
        return Votes(jnp.asarray(index, jnp.int8), None, None, None, confusion.shape[-1])
